//! Brains that run at the same time or again: all of several, the first of several, one for each item, and rounds.

mod disturbances;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use positronic_core::dsl::{IntoBrain, Race, RaceOf, each};
use positronic_core::machine::pending;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::{NodeKind, NodeStatus, Timeline};
use positronic_core::record::{Amounts, EndReason, EventKind, Failure, Path, Seq, SignalKind};
use positronic_core::runner::{Fork, ResumeError, Retried, RetryError, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::testing::Test;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale, kinds};

#[derive(Debug, Deserialize, JsonSchema)]
struct Paid {
    amount: u32,
}

/// Waits for the bank, and returns what it paid.
fn bank() -> Brain<u32, u32> {
    brain("Bank")
        .options::<u32>()
        .step("Begin", async |cx| Ok(*cx.options))
        .wait("Payment", |w| w.on(webhook::<Paid>("bank"), |order| format!("order-{order}")), |_, paid| paid.amount)
        .build()
}

/// Asks a model, and returns its answer with a number.
fn ask() -> Brain<u32, String> {
    brain("Ask")
        .options::<u32>()
        .step("Ask", async |cx| Ok(format!("{} {}", cx.options, cx.model().ask("Say something.").await?)))
        .build()
}

fn failing() -> Brain<u32, u32> {
    brain("Failing").options::<u32>().step("Fail", async |cx| -> Result<u32> { bail(*cx.options) }).build()
}

fn bail(number: u32) -> Result<u32> {
    Err(Error::new(format!("number {number} is broken")))
}

fn test() -> Test {
    Test::new(ScriptedModel::from_fn(|_| Reply::text("yes")))
}

fn paid(order: u32, amount: u32) -> SignalKind {
    SignalKind::Webhook {
        name: "bank".to_owned(),
        identifier: format!("order-{order}"),
        payload: json!({ "amount": amount }),
    }
}

/// Both brains of a group, one of which waits.
fn both() -> Brain<(), String> {
    brain("Both")
        .state(7)
        .all(
            "Both",
            |g| (g.run("Bank", bank(), |order| *order), g.run("Ask", ask(), |order| *order)),
            |order, (paid, answer)| format!("{order}: paid {paid}, {answer}"),
        )
        .build()
}

#[tokio::test(start_paused = true)]
async fn results_of_all_have_their_own_types_and_the_names_of_their_brains() {
    let run = test().start(both(), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    run.webhook("bank", "order-7", json!({ "amount": 30 })).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "7: paid 30, 7 yes");

    let log = run.events(Seq(0)).await.unwrap();
    insta::assert_snapshot!(kinds(&log), @r"
    BRAIN_START
    RUN_CLAIMED
    GROUP_START Both
    BRAIN_START Both/0.0
    BRAIN_START Both/0.1
    STEP_START Both/0.0/Begin
    STEP_START Both/0.1/Ask
    LOOP_MODEL_CALL Both/0.1/Ask/0
    LOOP_MODEL_RESULT Both/0.1/Ask/0
    STEP_COMPLETE Both/0.0/Begin
    STEP_COMPLETE Both/0.1/Ask
    STAGE_WAIT Both/0.0/Payment
    BRAIN_COMPLETE Both/0.1
    STAGE_RESUME Both/0.0/Payment
    STEP_COMPLETE Both/0.0/Payment
    BRAIN_COMPLETE Both/0.0
    STEP_COMPLETE Both
    BRAIN_COMPLETE
    ");
    let timeline = Timeline::of(log.iter().map(|event| &**event));
    let group = timeline.at(&Path::parse("Both").unwrap()).unwrap();
    let NodeKind::Stage(stage) = &group.kind else { panic!("{group:?}") };
    let progress = stage.group.unwrap();
    assert_eq!((progress.count, progress.done, progress.failed), (2, 2, 0));
    assert_eq!(timeline.trail(&Path::parse("Both/0.0/Payment").unwrap()), ["Both", "Bank", "Payment"]);
}

#[tokio::test(start_paused = true)]
async fn brain_that_fails_cancels_the_others_and_fails_the_stage() {
    let brain = brain("Both").state(7).all(
        "Both",
        |g| (g.run("Bank", bank(), |order| *order), g.run("Failing", failing(), |order| *order)),
        |_, (paid, _)| paid,
    );
    let run = test().start(brain, ()).await;
    let failure = run.result().await.unwrap_err().to_string();
    assert!(failure.contains("the brain `Both/0.1` failed") && failure.contains("number 7 is broken"), "{failure}");
    let log = run.events(Seq(0)).await.unwrap();
    let ends: Vec<_> = kinds(&log).lines().filter(|line| line.starts_with("BRAIN_")).map(str::to_owned).collect();
    assert_eq!(ends[ends.len() - 3..], ["BRAIN_ERROR Both/0.1", "BRAIN_CANCELLED Both/0.0", "BRAIN_ERROR"]);
}

#[tokio::test(start_paused = true)]
async fn failure_of_an_attempt_is_a_value() {
    let brain = brain("Both").state(7).all(
        "Both",
        |g| (g.attempt("Failing", failing(), |order| *order), g.attempt("Ask", ask(), |order| *order)),
        |_, (failed, asked)| (failed.unwrap_err().code == EndReason::Step, asked.unwrap()),
    );
    assert_eq!(test().start(brain, ()).await.result().await.unwrap(), (true, "7 yes".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn list_of_members_gives_a_list_of_results() {
    let brain = brain("Many").state(7).all(
        "Many",
        |g| (0..20).map(|index| g.run(&format!("Ask {index}"), ask(), move |_| index)).collect::<Vec<_>>(),
        |_, answers| answers.len(),
    );
    assert_eq!(test().start(brain, ()).await.result().await.unwrap(), 20);
}

#[derive(Debug, PartialEq)]
enum Won {
    Bank(u32),
    Asked(String),
    TimedOut,
}

fn race(brains: impl FnOnce(RaceOf<u32, ()>) -> Race<u32, Won, ()>) -> Brain<(), String> {
    brain("Race").state(7).race("First", brains, |_, won| format!("{won:?}")).build()
}

#[tokio::test(start_paused = true)]
async fn first_that_completes_wins_and_the_others_are_cancelled() {
    let run = test()
        .start(race(|r| r.run("Bank", bank(), |n| *n).to(Won::Bank).or(r.run("Ask", ask(), |n| *n).to(Won::Asked))), ())
        .await;
    assert_eq!(run.result().await.unwrap(), r#"Asked("7 yes")"#);
    let log = run.events(Seq(0)).await.unwrap();
    let cancelled = log.iter().find(|event| event.kind.name() == "BRAIN_CANCELLED").unwrap();
    assert_eq!(cancelled.path.as_str(), "First/0.0");
    let after: Vec<_> =
        log.iter().skip_while(|event| event.seq <= cancelled.seq).map(|event| event.kind.name()).collect();
    assert_eq!(after[0], "STEP_COMPLETE");
    let refused = run.webhook("bank", "order-7", json!({ "amount": 1 })).await;
    assert!(refused.is_err(), "a wait that has lost takes nothing");
}

#[tokio::test(start_paused = true)]
async fn effect_of_a_loser_is_aborted() {
    let ended = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ended);
    let slow = brain("Slow").options::<u32>().step("Work", move |_| {
        let counted = Arc::clone(&counted);
        async move {
            tokio::time::sleep(Duration::from_hours(1)).await;
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(1)
        }
    });
    let runner = Runner::new(ScriptedModel::from_fn(|_| Reply::text("yes")));
    let brain = race(|r| r.run("Slow", slow, |n| *n).to(Won::Bank).or(r.run("Ask", ask(), |n| *n).to(Won::Asked)));
    let run = runner.start(brain, ()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), r#"Asked("7 yes")"#);
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert_eq!(ended.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn race_ends_at_its_time() {
    let minute = Duration::from_mins(1);
    let run =
        test().start(race(|r| r.run("Bank", bank(), |n| *n).to(Won::Bank).after(minute, || Won::TimedOut)), ()).await;
    assert_eq!(run.result().await.unwrap(), "TimedOut");
    assert!(pending(&run.state()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn race_whose_brains_all_fail_fails_or_waits_for_its_time() {
    let both = |r: RaceOf<u32, ()>| r.run("One", failing(), |_| 1).or(r.run("Two", failing(), |_| 2)).to(Won::Bank);
    let failure = test().start(race(both), ()).await.result().await.unwrap_err().to_string();
    assert!(failure.contains("is broken"), "{failure}");
    let timed = move |r| both(r).after(Duration::from_secs(60), || Won::TimedOut);
    assert_eq!(test().start(race(timed), ()).await.result().await.unwrap(), "TimedOut");
}

/// Pays for each order.
fn orders(count: u32) -> Brain<(), Vec<u32>> {
    brain("Orders").state((0..count).collect::<Vec<_>>()).map("Pay", Vec::clone, bank(), |_, paid| paid).build()
}

#[tokio::test(start_paused = true)]
async fn items_are_answered_in_any_order_and_results_keep_that_of_the_items() {
    let run = test().start(orders(3), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let waits = |state: &positronic_core::machine::RunState| {
        pending(state).iter().map(|pending| pending.call.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(waits(&run.state()), ["Pay/0.0/Payment", "Pay/0.1/Payment", "Pay/0.2/Payment"]);
    run.webhook("bank", "order-1", json!({ "amount": 11 })).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    assert_eq!(waits(&run.state()), ["Pay/0.0/Payment", "Pay/0.2/Payment"]);
    run.webhook("bank", "order-2", json!({ "amount": 12 })).await.unwrap();
    run.webhook("bank", "order-0", json!({ "amount": 10 })).await.unwrap();
    assert_eq!(run.result().await.unwrap(), [10, 11, 12]);
}

#[tokio::test(start_paused = true)]
async fn at_most_the_limit_works_at_the_same_time() {
    for (limit, items) in [(1, 5), (3, 10), (8, 3), (0, 2)] {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (count, peak) = (Arc::clone(&now), Arc::clone(&most));
        let work = brain("Work").options::<u32>().step("Work", move |cx| {
            let (count, peak) = (Arc::clone(&count), Arc::clone(&peak));
            async move {
                peak.fetch_max(count.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                count.fetch_sub(1, Ordering::SeqCst);
                Ok(*cx.options)
            }
        });
        let brain = brain("Map").state((0..items).collect::<Vec<u32>>()).map(
            "Work",
            Vec::clone,
            each(work).limit(limit),
            |_, results| results,
        );
        let results = test().start(brain, ()).await.result().await.unwrap();
        assert_eq!(results, (0..items).collect::<Vec<_>>());
        let expected = limit.max(1).min(items);
        assert_eq!(most.load(Ordering::SeqCst), usize::try_from(expected).unwrap(), "limit {limit}, {items} items");
    }
}

#[tokio::test(start_paused = true)]
async fn item_that_waits_gives_its_place_to_the_next_one() {
    let brain =
        brain("Orders")
            .state((0..5).collect::<Vec<u32>>())
            .map("Pay", Vec::clone, each(bank()).limit(1), |_, paid| paid);
    let run = test().start(brain, ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    assert_eq!(pending(&run.state()).len(), 5);
}

#[tokio::test(start_paused = true)]
async fn failures_of_items_fail_the_stage_are_collected_or_skipped() {
    let odd = || {
        brain("Odd")
            .options::<u32>()
            .step("Check", async |cx| if *cx.options % 2 == 0 { bail(*cx.options) } else { Ok(*cx.options) })
    };
    let items = || brain("Map").state(vec![1_u32, 2, 3]);
    let failed =
        test().start(items().map("Odd", Vec::clone, odd(), |_, odd| odd), ()).await.result().await.unwrap_err();
    assert!(failed.to_string().contains("number 2 is broken"), "{failed}");
    let collected = items().map("Odd", Vec::clone, each(odd()).collect_failures(), |_, odd| {
        odd.into_iter().map(|end: Result<u32, Failure>| end.map_err(|failure| failure.message)).collect::<Vec<_>>()
    });
    let collected = test().start(collected, ()).await.result().await.unwrap();
    assert!(matches!(&collected[..], [Ok(1), Err(message), Ok(3)] if message.contains("number 2 is broken")));
    let skipped = items().map("Odd", Vec::clone, each(odd()).skip_failures(), |_, odd| odd);
    assert_eq!(test().start(skipped, ()).await.result().await.unwrap(), [(0, 1), (2, 3)]);
}

#[tokio::test(start_paused = true)]
async fn map_without_items_completes_at_once() {
    assert_eq!(test().start(orders(0), ()).await.result().await.unwrap(), Vec::<u32>::new());
}

#[tokio::test(start_paused = true)]
async fn another_process_begins_what_is_left_with_the_recorded_items() {
    let (test, store) = (test(), MemoryStore::new());
    let first = test.runner().clone().store(store.clone());
    let items = Arc::new(AtomicUsize::new(0));
    let code = |items: &Arc<AtomicUsize>| {
        let items = Arc::clone(items);
        let list = move |_: &()| {
            items.fetch_add(1, Ordering::SeqCst);
            vec![0_u32, 1, 2]
        };
        brain("Orders").map("Pay", list, each(bank()).limit(1), |(), paid| paid).build()
    };
    let run = first.start(code(&items), ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let id = run.id().clone();
    run.webhook("bank", "order-1", json!({ "amount": 11 })).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    drop(run);
    first.release().await;

    let second = test.runner().clone().store(store).brain(code(&items));
    let run = second.resume(&id).await.unwrap();
    run.webhook("bank", "order-2", json!({ "amount": 12 })).await.unwrap();
    run.webhook("bank", "order-0", json!({ "amount": 10 })).await.unwrap();
    assert_eq!(run.result().await.unwrap(), json!([10, 11, 12]));
    assert_eq!(items.load(Ordering::SeqCst), 1, "the items are computed once");
}

#[tokio::test(start_paused = true)]
async fn code_with_other_brains_does_not_continue_an_open_group() {
    let store = MemoryStore::new();
    let first = test().runner().clone().store(store.clone());
    let run = first.start(both(), ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let id = run.id().clone();
    drop(run);
    first.release().await;
    let changed = brain("Both").state(7).all("Both", |g| g.run("Bank", bank(), |order| *order), |_, paid| paid);
    let refused = test().runner().clone().store(store).brain(changed).resume(&id).await.unwrap_err();
    assert!(matches!(&refused, ResumeError::Changed { .. }) && refused.to_string().contains("Both"), "{refused}");
}

/// Asks the bank until it has paid at least 10 in all.
fn instalments(rounds: u32) -> Brain<(), u32> {
    brain("Instalments")
        .state(0)
        .repeat("Pay", rounds, bank(), |sum| *sum, |sum, paid| sum + paid, |sum| *sum >= 10)
        .build()
}

#[tokio::test(start_paused = true)]
async fn each_round_waits_anew_and_sees_the_state_of_the_one_before() {
    let run = test().start(instalments(5), ()).await;
    for (sum, amount) in [(0, 3), (3, 4), (7, 5)] {
        assert!(matches!(run.settled().await, Settled::Waiting(_)));
        run.webhook("bank", &format!("order-{sum}"), json!({ "amount": amount })).await.unwrap();
    }
    assert_eq!(run.result().await.unwrap(), 12);
    let log = run.events(Seq(0)).await.unwrap();
    let starts: Vec<_> =
        log.iter().filter(|event| event.kind.name() == "BRAIN_START").map(|event| event.path.as_str()).collect();
    assert_eq!(starts, ["", "Pay/0.0", "Pay/1.0", "Pay/2.0"]);
}

#[tokio::test(start_paused = true)]
async fn brain_fails_after_the_last_round_with_the_limit_as_its_reason() {
    let run = test().start(instalments(1), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    run.webhook("bank", "order-0", json!({ "amount": 3 })).await.unwrap();
    let Settled::Failed(failure) = run.settled().await else { panic!("it has not failed") };
    assert_eq!(failure.code, EndReason::Limit);
    assert!(failure.message.contains("`Pay` is not done after 1 rounds"), "{failure}");
}
