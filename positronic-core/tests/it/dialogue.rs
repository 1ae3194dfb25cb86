//! Every request is a dialogue that all providers accept, and the log contains all its parts.

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Event, EventKind, Message, ModelError, ModelErrorKind, Speaker, Start, UserMessage};
use positronic_core::runner::{ConversationError, Settled, SignalError, StartError};
use positronic_core::testing::Test;
use serde_json::json;
use std::time::Duration;

use crate::support::Play;
use crate::support::checks::check_dialogue;

fn user(text: &str) -> Message {
    Message::user(text)
}

fn helper() -> Brain<(), ()> {
    brain("Helper").r#loop("Chat", |cx| cx.system("Help.")).build()
}

/// Lists the messages of each request that come from people and the engine.
fn said(play: &Play) -> Vec<Vec<String>> {
    let texts = |messages: Vec<Message>| {
        let text = |message| match message {
            Message::User { text, .. } => text,
            Message::Assistant { .. } => "(model)".to_owned(),
            Message::Tool { .. } => "(result)".to_owned(),
        };
        messages.into_iter().map(text).collect()
    };
    play.requests().into_iter().map(|request| texts(request.messages.messages())).collect()
}

#[tokio::test(start_paused = true)]
async fn loop_without_an_input_begins_with_a_message_of_the_engine() {
    for blank in [None, Some(" \n")] {
        let silent = brain("Silent").r#loop("Work", move |cx| match blank {
            Some(input) => cx.system("Work.").input(input),
            None => cx.system("Work."),
        });
        let play = Play::new([Reply::text("Done.")]);

        let story = play.run(&silent, ()).await;

        assert_eq!(play.requests()[0].messages.messages(), [user("Begin.")]);
        let opens = |event: &Event| match &event.kind {
            EventKind::LoopStart { input, from, .. } => Some((input.clone(), *from)),
            _ => None,
        };
        let opening = story.log().iter().find_map(|event| opens(event));
        assert_eq!(opening, Some((Some("Begin.".to_owned()), Speaker::Engine)));
        assert_eq!(story.transcript(), "# Work\nengine: Begin.\nassistant: Done.\n= {\"type\":\"answered\"}\n");
    }
}

#[tokio::test(start_paused = true)]
async fn message_opens_the_first_loop_of_a_brain_in_place_of_its_input() {
    let own = brain("Own")
        .brain("Before", helper())
        .map_output(|(), ()| ())
        .r#loop("Work", |cx| cx.system("Work.").input("Read the book."));
    let play = Play::new([Reply::text("Ready."), Reply::text("Read.")]);
    let start = Start { message: Some(UserMessage::new("The red one.")), ..Start::default() };

    let run = play.test.runner().start_with(&own, (), start).await.unwrap();
    let story = play.story(&run).await;

    assert_eq!(said(&play), [["Begin."], ["The red one."]], "nested loops accept no messages");
    assert!(!story.transcript().contains("Read the book."), "{}", story.transcript());
}

#[tokio::test(start_paused = true)]
async fn undeliverable_message_is_refused() {
    let deaf = brain("Deaf").step("Work", async |_| Ok(()));
    let test = Test::new(ScriptedModel::new([]));
    let runner = test.runner();
    let start = Start { message: Some(UserMessage::new("Hello?")), ..Start::default() };

    let started = runner.start_with(&deaf, (), start).await.map(|_| ());
    let sent = runner.conversation("c").send(&deaf, (), "Hello?").await.map(|_| ());

    let sentence = "`Deaf` takes no message: it has no loop of its own; start it without a message";
    assert!(matches!(&started, Err(error @ StartError::NoListener { .. }) if error.to_string() == sentence));
    assert!(matches!(sent, Err(ConversationError::Start(StartError::NoListener { .. }))));
}

#[tokio::test(start_paused = true)]
async fn empty_message_is_refused_and_changes_nothing() {
    let play = Play::free([Reply::text("Yes?").after(Duration::from_secs(2))]);
    let run = play.start(&helper(), ()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = run.state().next;

    let refused = run.message(" ", "ann").await;

    assert!(
        matches!(&refused, Err(SignalError::Refused(why)) if why.to_string() == "the message is empty; send a text")
    );
    assert_eq!(run.state().next, before);
    run.result().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn empty_question_is_refused_before_the_model_call() {
    let asking = brain("Asking").state(0).step("Ask", async |cx| {
        cx.model().system("Be brief.").ask("\n").await?;
        Ok(1)
    });
    let play = Play::free([]);

    let story = play.run(&asking, ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("it fails") };
    assert!(failure.message.ends_with("the question to the model is empty"), "{failure}");
    assert!(play.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn reasoning_only_answer_is_not_sent_back() {
    let works = brain("Works").r#loop("Work", |cx| {
        cx.system("Work.").input("Go.").tool("finish", |t| t.exit().execute(async |_: NoArgs, _| Ok("done")))
    });
    let thought = Reply::calls::<&str>([]).and_reasoning("Hm.");
    let play = Play::new([thought, Reply::call("finish", json!({}))]);

    play.run(&works, ()).await;

    let [_, second] = &*said(&play) else { panic!("two requests") };
    assert!(matches!(&**second, [only] if only.starts_with("Go.\n\n")), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn failed_prompt_and_the_next_one_are_one_message() {
    let broken = ModelError::new(ModelErrorKind::Auth, "no key");
    let play = Play::free([Reply::error(broken), Reply::text("Sunny.")]);
    let chat = play.test.runner().conversation("c");

    chat.send(&helper(), (), "How is the weather?").await.unwrap().settled().await;
    chat.send(&helper(), (), "Hello?").await.unwrap().result().await.unwrap();

    assert_eq!(said(&play)[1], ["How is the weather?\n\nHello?"]);
    play.requests().iter().for_each(check_dialogue);
}
