//! Unusable answers: refusals, filtered, truncated and empty ones.

use std::sync::Arc;

use positronic_core::dsl::Loop;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{
    AnswerFault, EndReason, EventKind, Finish, LoopOutcome, Message, OutputKind, Part, Settings, ToolResult,
};
use positronic_core::runner::Settled;
use positronic_core::testing::Story;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::support::{Play, results};

fn worker(
    config: impl Fn(Loop<(), Option<LoopOutcome>>) -> Loop<(), Option<LoopOutcome>> + Send + Sync + 'static,
) -> Brain<(), Option<LoopOutcome>> {
    brain("Worker")
        .state(None)
        .r#loop("Work", move |cx| {
            let config = config(cx.system("Work.").input("Go."));
            config
                .tool("look", |t| t.execute(async |_: NoArgs, _| Ok("a tree")))
                .tool("finish", |t| t.exit().execute(async |_: NoArgs, _| Ok("done")))
                .on_exit(|state, outcome| *state = Some(outcome.clone()))
        })
        .build()
}

fn empty() -> Reply {
    Reply::calls::<&str>([])
}

/// The event that stopped the loop, and the brain's failure.
fn stopped(story: &Story) -> (AnswerFault, String) {
    let stopped = story.log().iter().find_map(|event| match &event.kind {
        EventKind::LoopStopped { cause, message } => Some((cause.clone(), message.clone())),
        _ => None,
    });
    stopped.unwrap_or_else(|| panic!("nothing stopped it:\n{}", story.events()))
}

#[tokio::test(start_paused = true)]
async fn refusal_and_filtered_answer_fail_the_brain_at_once() {
    let cases = [
        (Reply::refusal("I cannot help."), AnswerFault::Refused, "the model of the loop `Work` refused to answer"),
        (
            Reply::text("I would").finish(Finish::Filtered),
            AnswerFault::Filtered,
            "the content filter of the provider stopped the answer of the model of the loop `Work`",
        ),
    ];
    for (reply, fault, sentence) in cases {
        let play = Play::free([reply]);

        let story = play.run(&worker(|config| config), ()).await;

        assert_eq!(play.requests().len(), 1, "it is not asked again");
        assert_eq!(stopped(&story), (fault, sentence.to_owned()));
        let Settled::Failed(failure) = story.settled() else { panic!("it fails:\n{}", story.events()) };
        assert_eq!((failure.code, failure.message.as_str()), (EndReason::Answer, sentence));
    }
}

#[tokio::test(start_paused = true)]
async fn author_can_end_the_loop_instead() {
    let play = Play::free([Reply::refusal("I cannot help.")]);

    let story = play.run(&worker(|config| config.on_useless_answer(OnLimit::Exit)), ()).await;

    let Settled::Completed(state) = story.settled() else { panic!("the loop did not continue:\n{}", story.events()) };
    assert_eq!(state["type"], "stopped");
    assert_eq!(state["cause"], json!({"type": "refused"}));
    assert!(story.transcript().contains("assistant refuses: I cannot help.\n"), "{}", story.transcript());
    let outcome = positronic_core::projection::Prompts::of(story.log().iter().map(|event| &**event));
    let prompt = outcome.iter().next().unwrap();
    let OutputKind::Text { parts, .. } = &prompt.output[0].kind else { panic!("an answer") };
    assert_eq!(**parts, [Part::Refusal { text: "I cannot help.".to_owned() }], "it stays a refusal");
}

#[tokio::test(start_paused = true)]
async fn truncated_answer_names_its_limit() {
    for (limit, what) in
        [(Some(64), "`max_output_tokens` is 64; raise it"), (None, "a limit of tokens that the loop does not set")]
    {
        let play = Play::free([Reply::text("The tree is").finish(Finish::Length)]);

        let brain = worker(move |config| match limit {
            Some(limit) => config.settings(Settings::builder().max_output_tokens(limit).build()),
            None => config,
        });
        let story = play.run(&brain, ()).await;

        let (fault, sentence) = stopped(&story);
        assert_eq!(fault, AnswerFault::Length { max_output_tokens: limit });
        assert!(sentence.contains(what), "{sentence}");
        assert!(matches!(story.settled(), Settled::Failed(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn empty_answer_is_requested_again_twice_in_a_row() {
    let finish = || Reply::call("finish", json!({}));
    let play = Play::new([empty(), empty(), Reply::call("look", json!({})), empty(), finish()]);
    let story = play.run(&worker(|config| config), ()).await;
    assert!(matches!(story.settled(), Settled::Completed(_)), "{}", story.events());

    for (retries, requests) in [(None, 3), (Some(0), 1)] {
        let play = Play::free((0..requests).map(|_| empty().and_reasoning("Hm.")));
        let brain = worker(move |config| match retries {
            Some(retries) => config.answer_retries(retries),
            None => config,
        });
        let story = play.run(&brain, ()).await;
        assert_eq!(play.requests().len(), requests);
        let times = if requests > 1 { ", 3 times in a row" } else { "" };
        let sentence = format!("the model of the loop `Work` gave an empty answer{times}");
        assert_eq!(stopped(&story), (AnswerFault::Empty { reason: None }, sentence));
    }
}

#[tokio::test(start_paused = true)]
async fn empty_answer_does_not_end_a_loop_without_exit_tools() {
    let chat = brain("Chat").r#loop("Chat", |cx| cx.system("Chat.").input("Hello?"));
    let play = Play::new([empty(), Reply::text("Hello.")]);

    let story = play.run(&chat, ()).await;

    assert!(story.transcript().ends_with("assistant: Hello.\n= {\"type\":\"answered\"}\n"), "{}", story.transcript());
    assert!(play.model_read("Hello?\\n\\nYour last answer was empty. Answer, or call a tool."));
}

#[tokio::test(start_paused = true)]
async fn repeatedly_truncated_calls_end_the_loop() {
    let cut = || Reply::call("look", json!("{\"at\": \"the tr")).finish(Finish::Length);
    let play = Play::free([cut(), cut(), cut()]);

    let story = play.run(&worker(|config| config), ()).await;

    assert_eq!(play.requests().len(), 3);
    let (fault, sentence) = stopped(&story);
    assert_eq!(fault, AnswerFault::Length { max_output_tokens: None });
    assert!(sentence.ends_with(", 3 times in a row"), "{sentence}");
    let ToolResult::Error { message } = &results(&story, "Work")[0] else { panic!("it does not run") };
    assert!(message.contains("was cut off at a limit of tokens that the loop does not set"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_filtered_answer_do_not_run() {
    let play = Play::free([Reply::call("finish", json!({})).finish(Finish::Filtered)]);

    let story = play.run(&worker(|config| config), ()).await;

    assert_eq!(stopped(&story).0, AnswerFault::Filtered);
    assert!(matches!(&results(&story, "Work")[..], [ToolResult::Error { message }] if message.contains("do not run")));
}

#[tokio::test(start_paused = true)]
async fn refusal_in_structured_actions_is_not_a_misfit() {
    let deciding = brain("Deciding").r#loop("Work", |cx| {
        cx.system("Work.")
            .input("Go.")
            .structured_actions()
            .tool("finish", |t| t.exit().execute(async |_: NoArgs, _| Ok("done")))
    });
    let play = Play::free([Reply::refusal("I cannot help.")]);

    let story = play.run(&deciding, ()).await;

    assert_eq!((stopped(&story).0, play.requests().len()), (AnswerFault::Refused, 1));
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Ruling {
    refund: bool,
}

fn asking(retries: Option<u32>) -> Brain<(), bool> {
    brain("Asking")
        .state(false)
        .step("Rule", move |cx| async move {
            let call = cx.model().system("Rule.");
            let call = match retries {
                Some(retries) => call.retries(retries),
                None => call,
            };
            Ok(call.ask_for::<Ruling>("It is broken.").await?.refund)
        })
        .build()
}

fn failure(story: &Story) -> String {
    match story.settled() {
        Settled::Failed(failure) => failure.message.clone(),
        _ => panic!("it fails:\n{}", story.events()),
    }
}

#[tokio::test(start_paused = true)]
async fn typed_question_is_asked_again_with_the_misfit() {
    let play = Play::new([
        Reply::text("Yes, I would refund it."),
        Reply::text("{\"refund\": \"yes\"}"),
        Reply::text("```json\n{\"refund\": true}\n```"),
    ]);

    let story = play.run(&asking(None), ()).await;

    assert!(matches!(story.settled(), Settled::Completed(done) if *done == json!(true)), "{}", story.events());
    assert!(play.model_read("Yes, I would refund it.") && play.model_read("That answer does not match the schema: "));
    let last = play.requests().remove(2);
    assert_eq!(last.messages.len(), 5, "each answer with its misfit");
}

#[tokio::test(start_paused = true)]
async fn question_is_asked_again_up_to_its_limit_and_never_after_a_refusal() {
    let misfit = || Reply::text("Yes.");
    for (retries, asked, times) in [(None, 3, ", asked 3 times"), (Some(0), 1, "")] {
        let play = Play::free((0..asked).map(|_| misfit()));
        let story = play.run(&asking(retries), ()).await;
        assert_eq!(play.requests().len(), asked);
        let message = failure(&story);
        assert!(message.contains(&format!("the model's answer does not match the schema{times}: ")), "{message}");
    }
    let play = Play::free([Reply::refusal("I rule on nothing.")]);
    let message = failure(&play.run(&asking(None), ()).await);
    assert!(message.ends_with("the model refused to answer: I rule on nothing."), "{message}");
}

#[tokio::test(start_paused = true)]
async fn paused_answer_is_continued_without_a_message() {
    let replies = [Reply::text("I search. ").finish(Finish::Paused), Reply::text("Found.")];
    let model = Arc::new(ScriptedModel::new(replies));
    let runner = Runner::new(Arc::clone(&model));

    let search = brain("Search").r#loop("Look", |cx| cx.system("Search.").input("Go."));
    let run = runner.start(&search, ()).await.unwrap();
    run.result().await.unwrap();

    let continued = model.requests()[1].messages.messages();
    assert_eq!(continued.len(), 2);
    assert!(matches!(&continued[1], Message::Assistant { parts, .. } if parts.len() == 1), "{continued:?}");
    assert_eq!(run.answer().as_deref(), Some("Found."));
}
