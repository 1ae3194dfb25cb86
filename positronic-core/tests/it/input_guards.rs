//! Guards of people's messages: what does not pass is not sent to a model, in this run or a later one.

use std::sync::Arc;

use positronic_core::dsl::{IntoBrain as _, Loop, Options, Services, State, Verdict};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::{NodeKind, Timeline};
use positronic_core::record::{EndReason, EventKind, Message, ModelRequest, Path, Pending, Seq, SignalKind};
use positronic_core::runner::Settled;
use positronic_core::store::MemoryStore;
use positronic_core::testing::Test;
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale};
use crate::support::disturbances;

/// A loop that never reads a card number, refuses politics, and stops at an attack.
fn guarded<O, S, V>(chat: Loop<O, S, V>) -> Loop<O, S, V>
where
    O: Options,
    S: State,
    V: Services,
{
    chat.guard_input("No cards", async |_, message| match message.text.contains("4111") {
        true => Verdict::Replace(json!(message.text.replace("4111", "[card]"))),
        false => Verdict::Pass,
    })
    .guard_input("No politics", async |_, message| match message.text.as_str() {
        text if text.contains("election") => Err("it is about politics".to_owned()),
        _ => Ok(()),
    })
    .guard_input("No attacks", async |_, message| match message.text.as_str() {
        text if text.contains("attack") => Verdict::Stop("it is an attack".to_owned()),
        _ => Verdict::Pass,
    })
}

fn desk(input: &'static str) -> Brain<(), ()> {
    brain("Desk").r#loop("Chat", move |cx| guarded(cx.system("Help.").input(input))).build()
}

fn said(request: &ModelRequest) -> Vec<String> {
    let messages = request.messages.messages();
    let said = messages.into_iter().filter_map(|message| match message {
        Message::User { text, .. } => Some(text),
        _ => None,
    });
    said.collect()
}

const WITHHELD: &str =
    "(A message of the user was withheld: it is about politics. Tell the user that you cannot take it.)";

#[tokio::test(start_paused = true)]
async fn model_reads_what_comes_in_the_place_of_a_message_and_people_read_the_message() {
    let model = Arc::new(ScriptedModel::new([Reply::text("Thanks.")]));
    let run = Test::new(Arc::clone(&model)).start(desk("My card is 4111."), ()).await;
    run.result().await.unwrap();
    assert_eq!(said(&model.requests()[0]), ["My card is [card]."]);
    assert_eq!(run.prompts().get(&Path::root().stage("Chat")).unwrap().input.as_deref(), Some("My card is [card]."));

    let log = run.events(Seq(0)).await.unwrap();
    let timeline = Timeline::of(log.iter().map(|event| &**event));
    let shown: Vec<_> = timeline
        .nodes()
        .filter_map(|node| match &node.kind {
            NodeKind::Message { text, .. } => Some(text.clone()),
            NodeKind::GuardReplaced { guard, replaced } => Some(format!("{guard}: {replaced}")),
            _ => None,
        })
        .collect();
    assert_eq!(shown, ["My card is 4111.", "No cards: \"My card is 4111.\""]);
}

#[tokio::test(start_paused = true)]
async fn model_reads_that_a_refused_message_was_withheld() {
    let model = Arc::new(ScriptedModel::new([Reply::text("I cannot help with that.")]));
    let run = Test::new(Arc::clone(&model)).start(desk("Who wins the election?"), ()).await;
    run.result().await.unwrap();
    assert_eq!(said(&model.requests()[0]), [WITHHELD]);
}

#[tokio::test(start_paused = true)]
async fn loop_is_stopped_before_its_model_is_asked() {
    let model = Arc::new(ScriptedModel::new([]));
    let run = Test::new(Arc::clone(&model)).start(desk("This is an attack."), ()).await;
    let Settled::Failed(failure) = run.settled().await else { panic!("it has not failed") };
    assert_eq!(failure.code, EndReason::Guard);
    assert_eq!(
        failure.message,
        "the loop `Chat` was stopped: the guard `No attacks` refused the message: it is an attack"
    );
    assert!(model.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn message_that_stopped_a_run_is_withheld_from_the_next_one() {
    let model = Arc::new(ScriptedModel::new([Reply::text("Hello.")]));
    let runner = Runner::new(Arc::clone(&model)).store(MemoryStore::new());
    let brain = brain("Desk").r#loop("Chat", |cx| guarded(cx.system("Help.")));
    let chat = runner.conversation("c");
    let stopped = chat.send(&brain, (), "This is an attack.").await.unwrap().result().await;
    assert!(stopped.is_err());
    chat.send(&brain, (), "Good morning.").await.unwrap().result().await.unwrap();
    let said = said(&model.requests()[0]).concat();
    assert!(said.contains("Good morning.") && !said.contains("This is an attack."), "{said}");
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_conversation_stay_replaced_in_later_runs() {
    let model = Arc::new(ScriptedModel::new([Reply::text("Thanks."), Reply::text("No."), Reply::text("Bye.")]));
    let runner = Runner::new(Arc::clone(&model)).store(MemoryStore::new());
    let brain = brain("Desk").r#loop("Chat", |cx| guarded(cx.system("Help.")));
    let chat = runner.conversation("c");
    for text in ["My card is 4111.", "Who wins the election?", "Goodbye."] {
        chat.send(&brain, (), text).await.unwrap().result().await.unwrap();
    }
    assert_eq!(said(&model.requests()[2]), ["My card is [card].", WITHHELD, "Goodbye."]);
}

#[tokio::test(start_paused = true)]
async fn guards_of_a_loop_that_hands_over_check_later_messages() {
    let model = Arc::new(ScriptedModel::new([
        Reply::call("billing", json!({})),
        Reply::call("ask", json!({})),
        Reply::text("Thanks."),
    ]));
    let billing = brain("Billing").r#loop("Talk", |cx| {
        cx.system("Bills.")
            .tool("ask", |t| t.execute(async |_: NoArgs, cx| Ok(cx.result("").wait_for_reply::<String>("?"))))
    });
    // The loop that talks is in a brain of a stage of the brain that took over.
    let billing = brain("Bills").brain("Billing", billing).map_input(|()| ()).map_output(|(), ()| ()).build();
    let brain = brain("Desk")
        .r#loop("Chat", move |cx| guarded(cx.system("Help.").input("My bill?").handoff("billing", billing.clone())));
    let run = Test::new(Arc::clone(&model)).start(brain, ()).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("it does not wait") };
    run.message("My card is 4111.", "ann").await.unwrap();
    run.reply(&pending[0].call, json!("done"), "ann").await.unwrap();
    run.result().await.unwrap();
    let requests = model.requests();
    let last = said(requests.last().unwrap());
    assert!(last.contains(&"My card is [card].".to_owned()) && !last.concat().contains("4111"), "{last:?}");
}

/// A tale whose messages a model judges, and which gets a further message while a tool waits.
fn tale() -> Tale {
    let brain = brain("Desk").r#loop("Chat", |cx| {
        cx.system("Help.")
            .input("My card is 4111.")
            .tool("ask", |t| {
                t.idempotent().execute(async |_: NoArgs, cx| Ok(cx.result("").wait_for_reply::<String>("Which?")))
            })
            .guard_input("Judge", async |cx, message| {
                match &*cx.model().system("Judge.").ask(message.text.as_str()).await? {
                    "fine" => Ok(Verdict::Pass),
                    other => Ok(Verdict::Replace(json!(other))),
                }
            })
    });
    Tale {
        definition: brain.definition(),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|request| {
            let said = said(request);
            let last = said.last().map_or("", String::as_str);
            match (&*request.system, last) {
                ("Judge.", last) if last.contains("4111") => Reply::text(last.replace("4111", "[card]")),
                ("Judge.", _) => Reply::text("fine"),
                (_, last) if said.concat().contains("4111") => panic!("the model reads {last}"),
                _ if request.messages.messages().len() > 1 => Reply::text("Thanks."),
                _ => Reply::call("ask", json!({})),
            }
        }),
        answers: Arc::new(|pending: &Pending| {
            let payload = json!("the blue one");
            vec![SignalKind::Reply { call: pending.call.clone(), payload }]
        }),
    }
}

#[tokio::test(start_paused = true)]
async fn judged_messages_are_judged_once_and_end_the_same_after_a_crash_at_every_boundary() {
    let tale = tale();
    let baseline = tale.undisturbed().await;
    let judged =
        baseline.log.iter().filter(|event| matches!(&event.kind, EventKind::LoopModelCall { question: Some(_), .. }));
    assert_eq!(judged.count(), 1);
    disturbances::crash(&tale, &baseline).await;
}

#[tokio::test(start_paused = true)]
async fn judged_messages_are_cancelled_at_every_boundary() {
    let tale = tale();
    disturbances::cancel(&tale, &tale.undisturbed().await).await;
}

#[tokio::test(start_paused = true)]
async fn judged_messages_pause_at_every_boundary() {
    let tale = tale();
    disturbances::pause(&tale, &tale.undisturbed().await).await;
}

#[tokio::test(start_paused = true)]
async fn judged_messages_end_the_same_in_a_fork_at_every_boundary() {
    let tale = tale();
    disturbances::fork(&tale, &tale.undisturbed().await).await;
}
