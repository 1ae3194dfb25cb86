//! The undo of completed stages: when a brain fails, is cancelled or loses a race, and by hand.

mod called;

use std::sync::Arc;

use positronic_core::dsl::{BrainBuilder, IntoBrain, NoServices, Phase, Staged, TakesStages, Tried, Untried, each};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::{NodeKind, NodeStatus, Timeline};
use positronic_core::record::{EventKind, Seq, Signal, SignalKind, Status};
use positronic_core::runner::{RetryError, Settled, UndoError};
use positronic_core::testing::Test;
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale, kinds};

/// Books and cancels by the ledger. `fails` is what cannot be booked.
fn trip(ledger: &Ledger, fails: &'static str) -> Brain<(), Vec<String>> {
    let trip = booked(brain("Trip").state(Vec::new()), ledger, "Flight", fails);
    booked(booked(trip, ledger, "Hotel", fails), ledger, "Car", fails).build()
}

fn booked<P: Phase + TakesStages>(
    trip: BrainBuilder<(), Vec<String>, NoServices, P>,
    ledger: &Ledger,
    what: &'static str,
    fails: &'static str,
) -> BrainBuilder<(), Vec<String>, NoServices, P::Next<Tried>> {
    let (does, undoes) = (ledger.clone(), ledger.clone());
    trip.step(what, move |cx| {
        let ledger = does.clone();
        async move {
            if what == fails {
                return Err(Error::new(format!("no {what} is free")));
            }
            ledger.act_once(cx.path().as_str(), &format!("book {what}"));
            let mut booked = cx.state.clone();
            booked.push(what.to_owned());
            Ok(booked)
        }
    })
    .compensate(move |cx| {
        let ledger = undoes.clone();
        async move {
            ledger.act_once(cx.path().as_str(), &format!("cancel {}", cx.state.join("+")));
            Ok(())
        }
    })
}

fn test() -> Test {
    Test::new(ScriptedModel::from_fn(|_| Reply::text("yes")))
}

fn deeds(ledger: &Ledger) -> String {
    ledger.deeds().into_iter().map(|(_, deed)| deed).collect::<Vec<_>>().join(", ")
}

#[tokio::test(start_paused = true)]
async fn failed_brain_undoes_its_completed_stages_and_the_last_one_first() {
    let ledger = Ledger::default();
    let run = test().start(trip(&ledger, "Car"), ()).await;
    let Settled::Failed(failure) = run.settled().await else { panic!("{:?}", run.settled().await) };
    assert_eq!(failure.message, "the step `Car` failed: no Car is free");
    assert_eq!(deeds(&ledger), "book Flight, book Hotel, cancel Flight+Hotel, cancel Flight");
    let log = run.events(Seq(0)).await.unwrap();
    insta::assert_snapshot!(kinds(&log), @r"
    BRAIN_START
    RUN_CLAIMED
    STEP_START Flight
    STEP_COMPLETE Flight
    STEP_START Hotel
    STEP_COMPLETE Hotel
    STEP_START Car
    UNDO_START
    STEP_START Undo Hotel
    STEP_COMPLETE Undo Hotel
    STEP_START Undo Flight
    STEP_COMPLETE Undo Flight
    BRAIN_ERROR
    ");
    let timeline = Timeline::of(log.iter().map(|event| &**event));
    let stages: Vec<_> = timeline
        .nodes()
        .filter_map(|node| match &node.kind {
            NodeKind::Stage(stage) => Some((stage.name.as_str(), node.status)),
            _ => None,
        })
        .collect();
    use NodeStatus::{Done, Failed};
    assert_eq!(
        stages,
        [("Flight", Done), ("Hotel", Done), ("Car", Failed), ("Undo Hotel", Done), ("Undo Flight", Done)]
    );
}

#[tokio::test(start_paused = true)]
async fn undone_run_is_not_retried() {
    let test = test();
    let ledger = Ledger::default();
    let run = test.start(trip(&ledger, "Car"), ()).await;
    run.settled().await;
    let refused = test.runner().client().retry(run.id(), "ann").await;
    assert!(matches!(refused, Err(RetryError::Undone)), "{refused:?}");
}

/// A brain whose nested brains, arms, items and rounds can be undone, and which fails then.
fn nested(ledger: &Ledger) -> Brain<(), ()> {
    let item = |title: &str| {
        let (does, undoes) = (ledger.clone(), ledger.clone());
        brain(title)
            .options::<u32>()
            .step("Do", move |cx| {
                let ledger = does.clone();
                async move {
                    ledger.act_once(cx.idempotency_key(), &format!("do {}", cx.options));
                    Ok(*cx.options + 1)
                }
            })
            .compensate(move |cx| {
                let ledger = undoes.clone();
                async move {
                    ledger.act_once(cx.idempotency_key(), &format!("undo {} to {}", cx.state, cx.options));
                    Ok(())
                }
            })
            .build()
    };
    let (first, second, third, fourth, replaced) =
        (item("First"), item("Second"), item("Third"), item("Fourth"), item("Replaced"));
    let whole = ledger.clone();
    brain("Nested")
        .state(10_u32)
        .brain("Stage", first)
        .map_input(|state| *state)
        .map_output(|state, _| state + 10)
        .branch("Arm", move |mut b| {
            let other = b.arm("Other", second.clone(), |_| 99, |state, _| state);
            let taken = b.arm("Taken", second, |state| *state, |state, _| state + 10);
            b.choose(move |state| if *state > 1000 { other } else { taken })
        })
        .map("Items", |state| vec![*state, state + 1], each(third), |state, _| state + 10)
        .repeat("Rounds", 3, fourth, |state| *state, |state, _| state + 10, |state| *state > 50)
        .brain("Whole", replaced)
        .map_input(|state| *state)
        .map_output(|state, _| state)
        .compensate(move |cx| {
            let ledger = whole.clone();
            async move {
                ledger.act_once(cx.idempotency_key(), &format!("undo the whole of {}", cx.state));
                Ok(())
            }
        })
        .step("Fail", async |_| -> Result<()> { Err(Error::new("enough")) })
        .build()
}

#[tokio::test(start_paused = true)]
async fn stages_of_completed_nested_brains_are_undone_with_their_own_options_and_states() {
    let ledger = Ledger::default();
    let run = test().start(nested(&ledger), ()).await;
    assert!(matches!(run.settled().await, Settled::Failed(_)));
    assert_eq!(
        deeds(&ledger),
        "do 10, do 20, do 30, do 31, do 40, do 50, do 60, undo the whole of 60, undo 51 to 50, undo 41 to 40, \
         undo 32 to 31, undo 31 to 30, undo 21 to 20, undo 11 to 10"
    );
    let log = run.events(Seq(0)).await.unwrap();
    let names = log.iter().find_map(|event| match &event.kind {
        EventKind::UndoStart { steps, .. } => {
            Some(steps.iter().map(|step| format!("{} = {}", step.name, step.undoes)).collect::<Vec<_>>().join("; "))
        }
        _ => None,
    });
    assert_eq!(
        names.unwrap(),
        "Undo Whole = Whole; Undo Do = Rounds/1.0/Do; Undo Do 2 = Rounds/0.0/Do; Undo Do 3 = Items/0.1/Do; \
         Undo Do 4 = Items/0.0/Do; Undo Do 5 = Arm/Do; Undo Do 6 = Stage/Do"
    );
}

#[tokio::test(start_paused = true)]
async fn undo_is_the_same_after_a_crash_at_any_moment() {
    let ledger = Ledger::default();
    let outer = brain("Outer").state(String::new()).all(
        "All",
        |g| (g.attempt("Trip", trip(&ledger, "Car"), |_| ()), g.attempt("Nested", nested(&ledger), |_| ())),
        |_, (trip, nested)| format!("{} {}", trip.is_err(), nested.is_err()),
    );
    let tale = Tale {
        definition: IntoBrain::definition(&outer),
        options: Value::Null,
        ledger: ledger.clone(),
        says: Arc::new(|_| Reply::text("yes")),
        answers: Arc::new(|pending| panic!("{pending:?}")),
    };
    let baseline = tale.undisturbed().await;
    assert_eq!(baseline.end.state, json!("true true"));
    assert!(baseline.deaths.len() > 20);
    for death in &baseline.deaths {
        let Some((end, _)) = tale.after(&baseline, death).await else { continue };
        assert_eq!(end.state, baseline.end.state, "after {}", death.until);
        assert_eq!(end.deeds, baseline.end.deeds, "after {}", death.until);
    }
}

#[tokio::test(start_paused = true)]
async fn undo_that_fails_is_recorded_and_the_rest_is_undone() {
    let ledger = Ledger::default();
    let undoes = ledger.clone();
    let brain = brain("Trip")
        .step("Flight", async |_| Ok(1))
        .compensate(move |cx| {
            let ledger = undoes.clone();
            async move {
                ledger.act_once(cx.idempotency_key(), "cancel Flight");
                Ok(())
            }
        })
        .step("Hotel", async |_| Ok(2))
        .compensate(async |_| Err(Error::new("the hotel does not answer")))
        .step("Car", async |_| -> Result<u32> { Err(Error::new("no car")) });
    let run = test().start(brain.build(), ()).await;
    let Settled::Failed(failure) = run.settled().await else { panic!("{:?}", run.settled().await) };
    assert_eq!(failure.message, "the step `Car` failed: no car; 1 of 2 undo steps failed, the first that of `Hotel`");
    assert_eq!(deeds(&ledger), "cancel Flight");
    let log = run.events(Seq(0)).await.unwrap();
    let failed = log.iter().find_map(|event| match &event.kind {
        EventKind::UndoFailed { message } => Some(message.clone()),
        _ => None,
    });
    assert_eq!(failed.as_deref(), Some("the step `Undo Hotel` failed: the hotel does not answer"));
}

/// A trip that waits for its payment after two bookings.
fn unpaid(ledger: &Ledger) -> Brain<(), Vec<String>> {
    let trip = booked(brain("Trip").state(Vec::new()), ledger, "Flight", "");
    let trip = booked(trip, ledger, "Hotel", "");
    trip.wait("Payment", |w| w.on(webhook::<Value>("bank"), |_| "7".to_owned()), |trip, _| trip).build()
}

#[tokio::test(start_paused = true)]
async fn cancelled_run_undoes_its_stages_and_a_pause_holds_them_back() {
    let ledger = Ledger::default();
    let test = test();
    let run = test.start(unpaid(&ledger), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    run.pause().await.unwrap();
    let client = test.runner().client();
    let cancel = Signal {
        id: "stop".into(),
        actor: "ann".into(),
        kind: SignalKind::Cancel { reason: Some("too dear".to_owned()) },
    };
    let accepted = client.send(run.id(), cancel.clone()).await.unwrap();
    run.settled().await;
    assert_eq!(deeds(&ledger), "book Flight, book Hotel");
    run.resume().await.unwrap();
    assert!(matches!(run.settled().await, Settled::Cancelled));
    assert_eq!(deeds(&ledger), "book Flight, book Hotel, cancel Flight+Hotel, cancel Flight");
    let log = run.events(Seq(0)).await.unwrap();
    let Some(EventKind::BrainCancelled { reason, .. }) =
        log.iter().rev().map(|event| &event.kind).find(|kind| matches!(kind, EventKind::BrainCancelled { .. }))
    else {
        panic!("{log:?}")
    };
    assert_eq!(reason.as_deref(), Some("too dear"));
    assert_eq!(client.send(run.id(), cancel).await.unwrap(), accepted, "a repeated signal has one place in the log");
}

#[tokio::test(start_paused = true)]
async fn second_cancel_ends_the_run_without_the_rest_of_the_undo() {
    let ledger = Ledger::default();
    let run = test().start(unpaid(&ledger), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    run.pause().await.unwrap();
    run.cancel("too dear").await.unwrap();
    run.cancel("at once").await.unwrap();
    assert!(matches!(run.settled().await, Settled::Cancelled));
    assert_eq!(deeds(&ledger), "book Flight, book Hotel");
}

/// A brain that begins with a signal.
fn signal() -> BrainBuilder<(), (), NoServices, Staged<Untried>> {
    brain("Signal").wait("Signal", |w| w.on(webhook::<Value>("signal"), |()| "go".to_owned()), |(), _| ())
}

#[tokio::test(start_paused = true)]
async fn loser_of_a_race_undoes_its_stages_before_the_race_ends() {
    let ledger = Ledger::default();
    let fast = signal().step("Say", async |_| Ok(vec!["here".to_owned()]));
    let race = brain("Race").state(Vec::<String>::new()).race(
        "Race",
        |r| r.run("Slow", unpaid(&ledger), |_| ()).or(r.run("Fast", fast.build(), |_| ())),
        |_, won| won,
    );
    let run = test().start(race.build(), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    run.webhook("signal", "go", json!(1)).await.unwrap();
    assert_eq!(run.result().await.unwrap(), ["here"]);
    assert_eq!(deeds(&ledger), "book Flight, book Hotel, cancel Flight+Hotel, cancel Flight");
    let log = run.events(Seq(0)).await.unwrap();
    let place = |name: &str, path: &str| {
        log.iter().position(|event| event.kind.name() == name && event.path.as_str() == path).unwrap()
    };
    assert!(place("UNDO_START", "Race/0.0") < place("BRAIN_CANCELLED", "Race/0.0"));
    assert!(place("BRAIN_CANCELLED", "Race/0.0") < place("STEP_COMPLETE", "Race"));
}

#[tokio::test(start_paused = true)]
async fn failed_sibling_undoes_what_others_of_the_group_have_done() {
    let ledger = Ledger::default();
    let failing = signal().step("Fail", async |_| -> Result<()> { Err(Error::new("no")) });
    let both = brain("Both").state(()).all(
        "Both",
        |g| (g.run("Trip", unpaid(&ledger), |()| ()), g.run("Failing", failing.build(), |()| ())),
        |(), _| (),
    );
    let run = test().start(both.build(), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    run.webhook("signal", "go", json!(1)).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Failed(_)));
    assert_eq!(deeds(&ledger), "book Flight, book Hotel, cancel Flight+Hotel, cancel Flight");
}

#[tokio::test(start_paused = true)]
async fn completed_run_is_undone_by_hand_once() {
    let test = test();
    let ledger = Ledger::default();
    let run = test.start(trip(&ledger, ""), ()).await;
    run.result().await.unwrap();
    let runner = test.runner().clone().brain(trip(&ledger, ""));
    let client = runner.client();

    let undone = client.undo(run.id(), "ann").await.unwrap();
    assert_eq!(client.undo(run.id(), "ben").await.unwrap(), undone);
    assert!(matches!(runner.resume(&undone).await.unwrap().settled().await, Settled::Cancelled));

    let all = "book Flight, book Hotel, book Car, cancel Flight+Hotel+Car, cancel Flight+Hotel, cancel Flight";
    assert_eq!(deeds(&ledger), all);
    assert_eq!(client.store().run(run.id()).await.unwrap().status, Status::Completed);
    let again = client.undo(&undone, "ann").await;
    assert!(matches!(again, Err(UndoError::NotCompleted { status: Status::Cancelled })), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn run_without_an_undo_is_not_undone_by_hand() {
    let test = test();
    let run = test.start(brain("Plain").step("Do", async |_| Ok(())).build(), ()).await;
    run.result().await.unwrap();
    let refused = test.runner().client().undo(run.id(), "ann").await;
    assert!(matches!(refused, Err(UndoError::NothingToUndo)), "{refused:?}");
}
