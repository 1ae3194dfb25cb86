//! Guards of people's messages: what does not pass is not sent to a model, in this run or a later one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use positronic_core::dsl::{IntoBrain as _, Loop, Options, Services, State, Verdict};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::Prompts;
use positronic_core::projection::timeline::{NodeKind, Timeline};
use positronic_core::record::{
    Amounts, EndReason, EventKind, Message, ModelRequest, Path, Pending, Seq, SignalKind, Usage,
};
use positronic_core::runner::{Fork, RunHandle, Settled};
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
            NodeKind::GuardReplaced { guard, replaced, .. } => Some(format!("{guard}: {replaced}")),
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

/// A desk whose model calls `finish` so many times, after five seconds each.
fn finishing(times: usize) -> (Arc<ScriptedModel>, Brain<(), ()>) {
    let finish = || Reply::call("finish", json!({})).after(Duration::from_secs(5));
    let model = Arc::new(ScriptedModel::new(std::iter::repeat_with(finish).take(times)));
    let desk = brain("Desk").r#loop("Chat", |cx| {
        guarded(cx.system("Help.")).tool("finish", |t| t.exit().execute(async |_: NoArgs, _| Ok("done")))
    });
    (model, desk.build())
}

/// Sends a message to a conversation, by a process of its own, and another one while the model answers.
async fn send(store: &MemoryStore, model: &Arc<ScriptedModel>, desk: &Brain<(), ()>, said: [&str; 2]) -> RunHandle<()> {
    let runner = Runner::new(Arc::clone(model)).store(store.clone());
    let run = runner.conversation("c").send(desk, (), said[0]).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    if !said[1].is_empty() {
        run.message(said[1], "ann").await.unwrap();
    }
    run
}

#[tokio::test(start_paused = true)]
async fn message_that_no_loop_has_read_is_checked_by_the_next_run() {
    let (store, (model, desk)) = (MemoryStore::new(), finishing(3));
    let first = send(&store, &model, &desk, ["Hello.", "My card is 4111."]).await;
    first.result().await.unwrap();
    let second = send(&store, &model, &desk, ["Are you there?", "And the election?"]).await;
    second.result().await.unwrap();
    send(&store, &model, &desk, ["Goodbye.", ""]).await.result().await.unwrap();

    let requests = model.requests();
    assert_eq!(said(&requests[0]), ["Hello."]);
    assert_eq!(said(&requests[1]), ["Hello.", "My card is [card].\n\nAre you there?"]);
    assert_eq!(
        said(&requests[2]),
        ["Hello.", "My card is [card].\n\nAre you there?", &format!("{WITHHELD}\n\nGoodbye.")],
        "what was replaced once is not checked again, also by another process"
    );
    let log = second.events(Seq(0)).await.unwrap();
    let replaced = log.iter().find_map(|event| match &event.kind {
        EventKind::LoopGuardReplaced { input: Some(input), .. } => Some(input.clone()),
        _ => None,
    });
    assert!(replaced.is_some_and(|input| input.earlier && input.message == 0));
    let known = Prompts::of(first.events(Seq(0)).await.unwrap().iter().map(|event| &**event));
    let known = known.get(&Path::root().stage("Chat")).unwrap();
    assert!(format!("{:?}", known.output).contains("My card is 4111."), "the record of its own run keeps it");
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_run_that_was_cancelled_before_its_guards_are_checked_by_the_next_one() {
    let (store, (model, desk)) = (MemoryStore::new(), finishing(2));
    let run = send(&store, &model, &desk, ["Hello.", "My card is 4111."]).await;
    run.cancel("never mind").await.unwrap();
    send(&store, &model, &desk, ["Again.", ""]).await.result().await.unwrap();

    assert_eq!(said(&model.requests()[1]), ["Hello.\n\nMy card is [card].\n\nAgain."]);
}

#[tokio::test(start_paused = true)]
async fn unread_message_that_stops_a_run_does_not_stop_the_one_after_it() {
    let (store, (model, desk)) = (MemoryStore::new(), finishing(2));
    send(&store, &model, &desk, ["Hello.", "This is an attack."]).await.result().await.unwrap();
    let stopped = send(&store, &model, &desk, ["Again.", ""]).await.result().await;
    assert!(stopped.is_err());
    send(&store, &model, &desk, ["Good morning.", ""]).await.result().await.unwrap();

    let said = said(&model.requests()[1]).concat();
    assert!(said.contains("Again.") && said.contains("Good morning."), "{said}");
    assert!(!said.contains("This is an attack."), "{said}");
}

#[tokio::test(start_paused = true)]
async fn loop_that_continues_another_begins_with_what_that_one_has_not_read() {
    let finish = || Reply::call("finish", json!({})).after(Duration::from_secs(5));
    let model = Arc::new(ScriptedModel::new([finish(), Reply::text("Noted.")]));
    let desk = brain("Desk")
        .r#loop("Chat", |cx| {
            let chat = cx.system("Help.").input("Hello.");
            chat.tool("finish", |t| t.exit().execute(async |_: NoArgs, _| Ok("done")))
        })
        .r#loop("Note", |cx| guarded(cx.system("Note it.")).continue_from("Chat"));
    let run = Test::new(Arc::clone(&model)).start(desk.build(), ()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    run.message("My card is 4111.", "ann").await.unwrap();
    run.result().await.unwrap();

    assert_eq!(said(&model.requests()[1]), ["Hello.", "My card is [card]."]);
    let conversation = run.prompts().conversation();
    let said = conversation.iter().filter(|message| matches!(message, Message::User { .. })).count();
    assert_eq!(said, 2, "it is once in the conversation: {conversation:?}");
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

/// The system prompts of requests.
type Asked = Arc<Mutex<Vec<String>>>;

/// A model that finds everything fine, for ten tokens, and what it is asked.
fn watched() -> (ScriptedModel, Asked) {
    let asked = Asked::default();
    let noted = Arc::clone(&asked);
    let model = ScriptedModel::from_fn(move |request| {
        noted.lock().unwrap().push(request.system.to_string());
        match &*request.system {
            "Help." => Reply::text("Hello."),
            _ => Reply::text("fine").usage(Usage { input: 10, ..Usage::default() }),
        }
    });
    (model, asked)
}

/// A loop whose messages are judged by two questions of one guard.
fn judged_twice(budget: u64) -> (ScriptedModel, Brain<(), ()>, Asked) {
    let (model, asked) = watched();
    let brain = brain("Desk").r#loop("Chat", move |cx| {
        cx.system("Help.").input("My bill?").max_tokens(budget).ask_for_more().guard_input(
            "Judges",
            async |cx, message| {
                for judge in ["First.", "Second."] {
                    cx.model().system(judge).ask(message.text.as_str()).await?;
                }
                Ok(Verdict::Pass)
            },
        )
    });
    (model, brain.build(), asked)
}

#[tokio::test(start_paused = true)]
async fn judge_of_messages_without_budget_waits_for_more_and_asks_nothing_twice() {
    let (model, brain, asked) = judged_twice(5);
    let run = Test::new(model).start(brain, ()).await;
    let asked = || asked.lock().unwrap().clone();
    let Settled::Waiting(pending) = run.settled().await else { panic!("it does not ask for more") };
    assert_eq!((pending.len(), asked()), (1, vec!["First.".to_owned()]));
    run.grant(&pending[0].call, Amounts { tokens: 1_000, ..Amounts::default() }, "ann").await.unwrap();
    run.result().await.unwrap();
    assert_eq!(asked(), ["First.", "Second.", "Help."]);
}

#[tokio::test(start_paused = true)]
async fn judge_of_messages_without_budget_ends_the_loop_when_it_gets_no_more() {
    let (model, brain, asked) = judged_twice(5);
    let run = Test::new(model).start(brain, ()).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("it does not ask for more") };
    run.reject(&pending[0].call, "enough", "ann").await.unwrap();
    _ = run.settled().await;
    let log = run.events(Seq(0)).await.unwrap();
    assert!(log.iter().any(|event| matches!(event.kind, EventKind::LoopLimit(_))));
    assert_eq!(*asked.lock().unwrap(), ["First."], "neither the second judge nor the loop's model is asked");
}

#[tokio::test(start_paused = true)]
async fn guard_that_asks_another_question_after_a_crash_gets_an_answer_to_each() {
    let begun = Arc::new(AtomicU32::new(0));
    let (model, asked) = watched();
    let brain = brain("Desk").r#loop("Chat", move |cx| {
        let begun = Arc::clone(&begun);
        cx.system("Help.").input("My bill?").guard_input("Judge", move |cx, _| {
            let tries = begun.fetch_add(1, Ordering::SeqCst);
            async move {
                let questions: &[&str] = if tries == 0 { &["Old."] } else { &["New.", "New."] };
                for judge in questions {
                    cx.model().system(judge.to_owned()).ask("Is it fine?").await?;
                }
                Ok(Verdict::Pass)
            }
        })
    });
    let brain = brain.build();
    let runner = Runner::new(model).store(MemoryStore::new()).brain(brain.clone());
    let run = runner.start(brain, ()).await.unwrap();
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    let first = log.iter().find(|event| matches!(&event.kind, EventKind::LoopModelCall { question: Some(_), .. }));

    let forked = runner.client().fork(run.id(), first.unwrap().seq, Fork::default()).await.unwrap();
    let forked = runner.resume(&forked).await.unwrap();
    assert!(matches!(forked.settled().await, Settled::Completed(_)));
    assert_eq!(*asked.lock().unwrap(), ["Old.", "Help.", "New.", "New.", "Help."]);
}
