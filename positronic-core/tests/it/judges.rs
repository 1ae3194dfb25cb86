//! Guards of answers that ask a model: each question is recorded, and is asked again only about another answer.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use positronic_core::dsl::{IntoBrain as _, Verdict};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::{NodeKind, Timeline};
use positronic_core::record::{
    EndReason, Event, EventKind, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Path, Seq, Usage,
};
use positronic_core::runner::{Fork, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::testing::Test;
use serde_json::Value;

use crate::support::boundaries::{Ledger, Tale, kinds, last_text};
use crate::support::disturbances;

/// A brain whose answers a model judges.
fn doctor() -> Brain<(), ()> {
    brain("Doctor")
        .r#loop("Chat", |cx| {
            cx.system("Help.").input("My head hurts.").guard_answer(
                "No advice",
                async |cx, answer: Arc<ModelResponse>| match &*cx.model().system("Judge.").ask(answer.text()).await? {
                    "fine" => Ok(Verdict::Pass),
                    reason => Ok(Verdict::Refuse(reason.to_owned())),
                },
            )
        })
        .build()
}

/// Answers as the model and as the judge.
fn says(request: &ModelRequest) -> Reply {
    Reply::text(match (&*request.system, &*last_text(request)) {
        ("Judge.", "Take two pills.") => "it is advice",
        ("Judge.", _) => "fine",
        (_, last) if last.contains("it is advice") => "Please see a doctor.",
        _ => "Take two pills.",
    })
}

fn model() -> ScriptedModel {
    ScriptedModel::from_fn(says)
}

#[tokio::test(start_paused = true)]
async fn judge_is_asked_about_each_answer_and_its_cost_is_the_loops() {
    let run = Test::new(model()).start(doctor(), ()).await;
    run.result().await.unwrap();
    assert_eq!(run.answer().as_deref(), Some("Please see a doctor."));
    let log = run.events(Seq(0)).await.unwrap();
    insta::assert_snapshot!(kinds(&log), @r"
    BRAIN_START
    RUN_CLAIMED
    LOOP_START Chat
    LOOP_ITERATION Chat/0
    LOOP_MODEL_CALL Chat/0
    LOOP_MODEL_CALL Chat/0~0
    LOOP_MODEL_RESULT Chat/0~0
    LOOP_ANSWER_REFUSED Chat/0
    LOOP_MODEL_CALL Chat/0
    LOOP_MODEL_CALL Chat/0~1
    LOOP_MODEL_RESULT Chat/0~1
    LOOP_MODEL_RESULT Chat/0
    LOOP_COMPLETE Chat
    BRAIN_COMPLETE
    ");
    let mut used = Usage::default();
    for event in &log {
        match &event.kind {
            EventKind::LoopModelResult { metadata, .. } => used += metadata.usage,
            EventKind::LoopAnswerRefused { metadata, .. } => used += metadata.usage,
            EventKind::LoopComplete { usage, .. } => assert_eq!(*usage, used),
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn loop_stops_with_the_code_guard_when_its_judge_cannot_answer() {
    let model = ScriptedModel::from_fn(|request| match &*request.system {
        "Judge." => Reply::error(ModelError::new(ModelErrorKind::Auth, "the key has expired")),
        _ => Reply::text("Take two pills."),
    });
    let run = Test::new(model).start(doctor(), ()).await;
    let Settled::Failed(failure) = run.settled().await else { panic!("it has not failed") };
    assert_eq!(failure.code, EndReason::Guard);
    assert!(failure.message.contains("the guard `No advice` stopped"), "{failure}");
    assert!(failure.message.contains("the key has expired"), "{failure}");
    assert_eq!(run.answer(), None);
}

#[tokio::test(start_paused = true)]
async fn judge_is_asked_again_after_an_error_that_may_pass() {
    let failed = AtomicBool::new(false);
    let model = ScriptedModel::from_fn(move |request| match &*request.system {
        "Judge." if !failed.swap(true, Ordering::SeqCst) => {
            Reply::error(ModelError::new(ModelErrorKind::Server, "later"))
        }
        "Judge." => Reply::text("fine"),
        _ => Reply::text("Hello!"),
    });
    let run = Test::new(model).start(doctor(), ()).await;
    run.result().await.unwrap();
    assert_eq!(run.answer().as_deref(), Some("Hello!"));
    let log = run.events(Seq(0)).await.unwrap();
    let retried = log.iter().filter(|event| matches!(event.kind, EventKind::LoopModelRetry { .. }));
    assert_eq!(retried.map(|event| event.path.as_str()).collect::<Vec<_>>(), ["Chat/0~0"]);
}

#[tokio::test(start_paused = true)]
async fn judge_is_not_asked_beyond_the_budget_of_its_loop() {
    let used = Usage { input: 60, ..Usage::default() };
    let model = ScriptedModel::from_fn(move |request| match &*request.system {
        "Judge." => Reply::text("it is advice").usage(used),
        _ => Reply::text("Take two pills.").usage(used),
    });
    let brain = brain("Doctor").budget(|budget| budget.max_tokens(100)).r#loop("Chat", |cx| {
        cx.system("Help.").input("My head hurts.").guard_answer("No advice", async |cx, answer: Arc<ModelResponse>| {
            cx.model().system("Judge.").ask(answer.text()).await.map(Verdict::Refuse)
        })
    });
    let run = Test::new(model).start(brain.build(), ()).await;
    let Settled::Failed(failure) = run.settled().await else { panic!("it has not failed") };
    assert!(failure.message.contains("used up its budget of tokens"), "{failure}");
    let log = run.events(Seq(0)).await.unwrap();
    let asked = log.iter().filter(|event| matches!(event.kind, EventKind::LoopModelCall { .. }));
    assert_eq!(asked.map(|event| event.path.as_str()).collect::<Vec<_>>(), ["Chat/0", "Chat/0~0"]);
}

#[tokio::test(start_paused = true)]
async fn timeline_shows_a_judge_below_its_iteration() {
    let run = Test::new(model()).start(doctor(), ()).await;
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    let timeline = Timeline::of(log.iter().map(|event| &**event));
    let answers = timeline.nodes().filter_map(|node| match &node.kind {
        NodeKind::Answer(answer) => {
            let parent = timeline.node(node.parent?)?;
            let is_iteration = matches!(parent.kind, NodeKind::Iteration { .. });
            Some((node.path.as_str(), answer.question.is_some(), is_iteration))
        }
        _ => None,
    });
    assert_eq!(
        answers.collect::<Vec<_>>(),
        [("Chat/0", false, true), ("Chat/0~0", true, true), ("Chat/0", false, true), ("Chat/0~1", true, true)]
    );
    assert_eq!(
        run.prompts().get(&Path::root().stage("Chat")).unwrap().output.len(),
        1,
        "what the judge said is no part of the conversation"
    );
}

fn tale() -> Tale {
    Tale {
        definition: doctor().definition(),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(says),
        answers: Arc::new(|pending| panic!("{pending:?}")),
    }
}

#[tokio::test(start_paused = true)]
async fn judged_loop_ends_the_same_after_a_crash_at_every_boundary() {
    let tale = tale();
    disturbances::crash(&tale, &tale.undisturbed().await).await;
}

#[tokio::test(start_paused = true)]
async fn judged_loop_is_cancelled_at_every_boundary() {
    let tale = tale();
    disturbances::cancel(&tale, &tale.undisturbed().await).await;
}

#[tokio::test(start_paused = true)]
async fn judged_loop_pauses_at_every_boundary() {
    let tale = tale();
    disturbances::pause(&tale, &tale.undisturbed().await).await;
}

#[tokio::test(start_paused = true)]
async fn judged_loop_ends_the_same_in_a_fork_at_every_boundary() {
    let tale = tale();
    disturbances::fork(&tale, &tale.undisturbed().await).await;
}

#[tokio::test(start_paused = true)]
async fn guard_that_asks_the_same_twice_gets_an_answer_to_each_also_after_a_crash() {
    let (asked, verdicts) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(Vec::new())));
    let model = ScriptedModel::from_fn(move |request| match &*request.system {
        "Judge." => Reply::text(asked.fetch_add(1, Ordering::SeqCst).to_string()),
        _ => Reply::text("Hello."),
    });
    let seen = Arc::clone(&verdicts);
    let brain = brain("Desk").r#loop("Chat", move |cx| {
        let seen = Arc::clone(&seen);
        cx.system("Help.").input("Good morning.").guard_answer("Judge", move |cx, _| {
            let seen = Arc::clone(&seen);
            async move {
                let first = cx.model().system("Judge.").ask("Is it fine?").await?;
                let second = cx.model().system("Judge.").ask("Is it fine?").await?;
                seen.lock().unwrap().push(format!("{first} {second}"));
                Ok(Verdict::Pass)
            }
        })
    });
    let brain = brain.build();
    let runner = Runner::new(model).store(MemoryStore::new()).brain(brain.clone());
    let run = runner.start(brain, ()).await.unwrap();
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    let is_question = |event: &&Arc<Event>| matches!(&event.kind, EventKind::LoopModelCall { question: Some(_), .. });
    let second = log.iter().filter(is_question).nth(1).unwrap();

    let forked = runner.client().fork(run.id(), second.seq, Fork::default()).await.unwrap();
    runner.resume(&forked).await.unwrap().settled().await;

    assert_eq!(*verdicts.lock().unwrap(), ["0 1", "0 2"]);
}
