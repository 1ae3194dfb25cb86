//! Branches: one arm, chosen once, whatever happens afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use positronic_core::dsl::IntoBrain;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::NodeKind;
use positronic_core::record::{Seq, SignalKind};
use positronic_core::runner::{Fork, ResumeError, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::testing::Test;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Kind {
    Refund(u32),
    Question,
    Other,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Ticket {
    kind: Kind,
    log: Vec<String>,
}

impl Ticket {
    fn of(kind: Kind) -> Self {
        Self { kind, log: Vec::new() }
    }

    fn and(mut self, what: impl Into<String>) -> Self {
        self.log.push(what.into());
        self
    }
}

#[derive(Deserialize, JsonSchema)]
struct Paid {
    amount: u32,
}

/// Waits for the bank.
fn refund() -> Brain<u32, String> {
    brain("Refund")
        .options::<u32>()
        .step("Begin", async |cx| Ok(*cx.options))
        .wait(
            "Bank",
            |w| w.on(webhook::<Paid>("bank"), |amount| format!("refund-{amount}")),
            |amount, paid| format!("paid {} of {amount}", paid.amount),
        )
        .build()
}

fn answer() -> Brain<(), String> {
    brain("Answer").step("Write", async |cx| cx.model().ask("Answer the question.").await).build()
}

/// A desk whose choice counts how often it is made.
fn desk(kind: Kind, chosen: &Arc<AtomicUsize>) -> Brain<(), Ticket> {
    let chosen = Arc::clone(chosen);
    brain("Desk")
        .state(Ticket::of(kind))
        .branch("By kind", move |mut b| {
            let amount = |ticket: &Ticket| match ticket.kind {
                Kind::Refund(amount) => amount,
                Kind::Question | Kind::Other => 0,
            };
            let refund = b.arm("Refund", refund(), amount, Ticket::and);
            let answer = b.arm("Answer", answer(), |_| (), Ticket::and);
            let nothing = b.pass("Nothing", |ticket| ticket.and("nothing"));
            b.choose(move |ticket| {
                chosen.fetch_add(1, Ordering::SeqCst);
                match ticket.kind {
                    Kind::Refund(_) => refund,
                    Kind::Question => answer,
                    Kind::Other => nothing,
                }
            })
        })
        .step("Close", async |cx| Ok(cx.state.clone().and("closed")))
        .build()
}

fn test() -> Test {
    Test::new(ScriptedModel::from_fn(|_| Reply::text("It is.")))
}

#[tokio::test(start_paused = true)]
async fn chosen_arm_runs_and_the_others_do_not() {
    for (kind, log) in [(Kind::Question, ["It is.", "closed"]), (Kind::Other, ["nothing", "closed"])] {
        let run = test().start(desk(kind, &Arc::default()), ()).await;
        assert_eq!(run.result().await.unwrap().log, log);
    }
}

#[tokio::test(start_paused = true)]
async fn choice_is_in_the_log_and_in_the_timeline() {
    let story = test().run(desk(Kind::Question, &Arc::default()), ()).await;
    let kinds: Vec<_> =
        story.log().iter().map(|event| format!("{} {}", event.kind.name(), event.path).trim().to_owned()).collect();
    insta::assert_snapshot!(kinds.join("\n"), @r"
    BRAIN_START
    RUN_CLAIMED
    BRANCH_CHOSEN By kind
    BRAIN_START By kind
    STEP_START By kind/Write
    LOOP_MODEL_CALL By kind/Write/0
    LOOP_MODEL_RESULT By kind/Write/0
    STEP_COMPLETE By kind/Write
    BRAIN_COMPLETE By kind
    STEP_COMPLETE By kind
    STEP_START Close
    STEP_COMPLETE Close
    BRAIN_COMPLETE
    ");
    let timeline = story.timeline();
    let arm = timeline.nodes().find_map(|node| match &node.kind {
        NodeKind::Stage(stage) if stage.name == "By kind" => stage.arm.clone(),
        _ => None,
    });
    assert_eq!(arm.as_deref(), Some("Answer"));
}

#[tokio::test(start_paused = true)]
async fn resume_inside_an_arm_does_not_choose_again() {
    let (store, chosen) = (MemoryStore::new(), Arc::default());
    let first = test().runner().clone().store(store.clone());
    let run = first.start(desk(Kind::Refund(30), &chosen), ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let id = run.id().clone();
    drop(run);
    first.release().await;

    let second = test().runner().clone().store(store.clone()).brain(desk(Kind::Other, &chosen));
    let run = second.resume(&id).await.unwrap();
    run.webhook("bank", "refund-30", json!({ "amount": 20 })).await.unwrap();

    assert_eq!(run.result().await.unwrap()["log"], json!(["paid 20 of 30", "closed"]));
    assert_eq!(chosen.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn code_without_the_chosen_arm_does_not_continue_the_run() {
    let store = MemoryStore::new();
    let first = test().runner().clone().store(store.clone());
    let run = first.start(desk(Kind::Refund(30), &Arc::default()), ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let id = run.id().clone();
    drop(run);
    first.release().await;
    let changed = brain("Desk").state(Ticket::of(Kind::Other)).branch("By kind", |mut b| {
        let nothing = b.pass("Nothing", |ticket| ticket);
        b.choose(move |_| nothing)
    });

    let refused = test().runner().clone().store(store).brain(changed).resume(&id).await.unwrap_err();

    assert!(matches!(refused, ResumeError::Changed { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn cancel_inside_an_arm_ends_its_brain_first() {
    let run = test().start(desk(Kind::Refund(30), &Arc::default()), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    run.cancel("no longer needed").await.unwrap();
    assert!(matches!(run.settled().await, Settled::Cancelled));
    let log = run.events(Seq(0)).await.unwrap();
    let cancelled: Vec<_> =
        log.iter().filter(|event| event.kind.name() == "BRAIN_CANCELLED").map(|event| event.path.as_str()).collect();
    assert_eq!(cancelled, ["By kind", ""]);
}

#[tokio::test(start_paused = true)]
async fn fork_inside_an_arm_stays_in_it_and_one_before_it_chooses_again() {
    let (test, chosen) = (test(), Arc::default());
    let run = test.start(desk(Kind::Question, &chosen), ()).await;
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    let at = |name| log.iter().find(|event| event.kind.name() == name).unwrap().seq;
    let runner = test.runner().clone().brain(desk(Kind::Other, &chosen));
    for (seq, choices) in [(at("BRANCH_CHOSEN"), 1), (at("STEP_START"), 1), (at("RUN_CLAIMED"), 2)] {
        chosen.store(1, Ordering::SeqCst);
        let fork = runner.client().fork(run.id(), seq, Fork::default()).await.unwrap();
        let fork = runner.resume(&fork).await.unwrap();
        assert_eq!(fork.result().await.unwrap()["log"], json!(["It is.", "closed"]), "the state is that of the log");
        assert_eq!(chosen.load(Ordering::SeqCst), choices, "after {seq}");
    }
}

#[test]
#[should_panic(expected = "two arms named `Nothing`")]
fn two_arms_of_one_name_panic() {
    let _ = brain("Desk").branch("By kind", |mut b| {
        let nothing = b.pass("Nothing", |()| ());
        b.pass("Nothing", |()| ());
        b.choose(move |()| nothing)
    });
}

#[tokio::test(start_paused = true)]
async fn choice_that_panics_fails_the_brain() {
    let brain = brain("Desk").branch("By kind", |mut b| {
        b.pass("Nothing", |()| ());
        b.choose(|()| panic!("no such kind"))
    });
    let error = test().start(brain, ()).await.result().await.unwrap_err().to_string();
    assert!(error.contains("the branch `By kind` cannot choose") && error.contains("no such kind"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn branches_in_branches_survive_a_crash_at_any_moment() {
    let inner = desk(Kind::Refund(30), &Arc::default());
    let outer = brain("Outer")
        .state(Ticket::of(Kind::Other))
        .branch("First", |mut b| {
            let desk = b.arm("Desk", inner, |_| (), |ticket: Ticket, inner: Ticket| ticket.and(inner.log.join("; ")));
            b.choose(move |_| desk)
        })
        .branch("Second", |mut b| {
            let note = b.pass("Note", |ticket: Ticket| ticket.and("noted"));
            b.choose(move |_| note)
        })
        .build();
    let tale = Tale {
        definition: IntoBrain::definition(&outer),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|_| Reply::text("")),
        answers: Arc::new(|pending| {
            let identifier = pending.kind.waits()[0].identifier.clone();
            vec![SignalKind::Webhook { name: "bank".to_owned(), identifier, payload: json!({ "amount": 9 }) }]
        }),
    };
    let baseline = tale.undisturbed().await;
    assert_eq!(baseline.end.state["log"], json!(["paid 9 of 30; closed", "noted"]));
    for death in &baseline.deaths {
        let Some((end, _)) = tale.after(&baseline, death).await else { continue };
        assert_eq!(end, baseline.end, "after {}", death.until);
    }
}
