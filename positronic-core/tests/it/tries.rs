//! Retries and timeouts of loops and of the brains that a stage runs.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::dsl::{IntoBrain, Retry, each};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::{NodeKind, Timeline};
use positronic_core::record::{EndReason, Event, EventKind, Failure, Seq, SignalKind, ToolResult};
use positronic_core::runner::{Fork, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::testing::Test;
use serde_json::{Value, json};

use crate::support::boundaries::{Baseline, Ledger, Tale, kinds};
use crate::support::disturbances;

const HOUR: Duration = Duration::from_hours(1);

fn test() -> Test {
    Test::new(ScriptedModel::from_fn(|_| Reply::text("yes")))
}

fn busy() -> Error {
    Error::transient("the line is busy")
}

/// Returns which try of its brain a path belongs to, of a brain that is not one of a group: the first number in the path.
fn attempt(path: &str) -> u32 {
    let numbers = path.split('/').find_map(|part| part.split_once('.'));
    numbers.map_or(0, |(attempt, _)| attempt.parse().unwrap())
}

/// A brain whose first `fails` tries fail. It returns the try that has succeeded.
fn flaky(fails: u32) -> Brain<(), u32> {
    brain("Flaky")
        .step("Call", move |cx| {
            let attempt = attempt(cx.path().as_str());
            async move { if attempt < fails { Err(busy()) } else { Ok(attempt) } }
        })
        .retry(Retry::times(0))
        .build()
}

#[tokio::test(start_paused = true)]
async fn failed_brain_is_tried_again_under_a_path_of_its_own() {
    let outer = brain("Outer").brain("Call", flaky(1)).map_output(|(), tried| tried).retry(Retry::times(2));
    let run = test().start(outer, ()).await;
    assert_eq!(run.result().await.unwrap(), 1);
    let log = run.events(Seq(0)).await.unwrap();
    insta::assert_snapshot!(kinds(&log), @r"
    BRAIN_START
    RUN_CLAIMED
    BRAIN_START Call
    STEP_START Call/Call
    STEP_RETRY Call
    BRAIN_ERROR Call
    BRAIN_START Call/1.0
    STEP_START Call/1.0/Call
    STEP_COMPLETE Call/1.0/Call
    BRAIN_COMPLETE Call/1.0
    STEP_COMPLETE Call
    BRAIN_COMPLETE
    ");
    let timeline = Timeline::of(log.iter().map(|event| &**event));
    let stages = timeline.nodes().filter_map(|node| match &node.kind {
        NodeKind::Stage(stage) => Some(format!("{} {:?}", stage.name, node.status)),
        NodeKind::Retry { message, .. } => Some(message.clone()),
        _ => None,
    });
    assert_eq!(
        stages.collect::<Vec<_>>().join("; "),
        "Call Done; Call Failed; the step `Call/Call` failed: the line is busy; Call, try 2 Done; Call Done"
    );
}

#[tokio::test(start_paused = true)]
async fn last_failure_fails_the_stage() {
    let outer = brain("Outer").brain("Call", flaky(9)).map_output(|(), tried| tried).retry(Retry::times(2));
    let run = test().start(outer, ()).await;
    let Settled::Failed(failure) = run.settled().await else { panic!("{:?}", run.settled().await) };
    assert_eq!(failure.message, "the brain `Call/2.0` failed: the step `Call/2.0/Call` failed: the line is busy");
}

#[tokio::test(start_paused = true)]
async fn author_chooses_the_failures_that_are_tried_again() {
    let fails = |error: &Error| error.source().downcast_ref::<Failure>().is_some_and(|it| it.code == EndReason::Step);
    for (retried, tries) in [(true, 3), (false, 1)] {
        let inner = brain("Broken").step("Break", async |_| Err::<(), _>(Error::new("no such customer"))).build();
        let outer = brain("Outer")
            .brain("Call", inner)
            .map_output(|(), ()| ())
            .retry(Retry::times(2).on(move |error| retried && fails(error)));
        let run = test().start(outer, ()).await;
        assert!(matches!(run.settled().await, Settled::Failed(_)));
        let log = run.events(Seq(0)).await.unwrap();
        assert_eq!(log.iter().filter(|event| event.kind.name() == "STEP_START").count(), tries);
    }
}

#[tokio::test(start_paused = true)]
async fn items_members_arms_and_rounds_are_tried_again_one_by_one() {
    let item = brain("Item")
        .options::<u32>()
        .step("Call", async |cx| {
            let first = cx.path().as_str().contains("/0.");
            if first && *cx.options == 1 { Err(busy()) } else { Ok(*cx.options) }
        })
        .retry(Retry::times(0));
    let outer = brain("Outer")
        .state(vec![0_u32, 1, 2])
        .map("Items", Vec::clone, each(item).limit(1), |_, all| all.iter().sum::<u32>())
        .retry(Retry::times(1))
        .all(
            "All",
            |g| (g.run("Flaky", flaky(1), |_| ()), g.attempt("Hopeless", flaky(9), |_| ())),
            |sum, (tried, hopeless)| (sum, tried, hopeless.is_err()),
        )
        .retry(Retry::times(1))
        .race("Race", |r| r.run("Flaky", flaky(1), |_| ()), |state, won| (state, won))
        .retry(Retry::times(1))
        .branch("Arm", |mut b| {
            let arm = b.arm("Flaky", flaky(1), |_| (), |state, tried| (state, tried));
            b.choose(move |_| arm)
        })
        .retry(Retry::times(1))
        .step("Begin", async |cx| Ok(json!(cx.state)))
        .repeat("Rounds", 3, round(), |_| (), |state, ()| json!([state]), |state| state[0][0][0][0].is_array())
        .retry(Retry::times(1));
    let run = test().start(outer, ()).await;
    assert_eq!(run.result().await.unwrap(), json!([[[[[3, 1, true], 1], 1]]]));
    let log = run.events(Seq(0)).await.unwrap();
    let again = log.iter().filter(|event| event.kind.name() == "STEP_RETRY").map(|event| event.path.as_str());
    assert_eq!(again.collect::<Vec<_>>().join(" "), "Items/0.1 All/0.0 All/0.1 Race/0.0 Arm Rounds/0.0 Rounds/1.0");
    let begun = log.iter().filter(|event| event.kind.name() == "BRAIN_START").map(|event| event.path.as_str());
    assert_eq!(
        begun.skip(1).collect::<Vec<_>>().join(" "),
        "Items/0.0 Items/0.1 Items/1.1 Items/0.2 All/0.0 All/0.1 All/1.0 All/1.1 Race/0.0 Race/1.0 Arm Arm/1.0 \
         Rounds/0.0 Rounds/0.1 Rounds/1.0 Rounds/1.1"
    );
}

/// A round whose first try fails.
fn round() -> Brain<(), ()> {
    brain("Round")
        .step("Call", async |cx| if cx.path().as_str().contains(".0/") { Err(busy()) } else { Ok(()) })
        .retry(Retry::times(0))
        .build()
}

/// A brain that sleeps for this time.
fn sleeper(time: Duration) -> Brain<(), ()> {
    brain("Sleeper").sleep("Rest", move |()| time).build()
}

#[tokio::test(start_paused = true)]
async fn brain_that_takes_too_long_ends_with_the_code_timeout() {
    let outer = brain("Outer").all(
        "All",
        |g| (g.attempt("Slow", sleeper(2 * HOUR), |()| ()), g.attempt("Quick", sleeper(HOUR / 2), |()| ())),
        |(), (slow, quick)| (slow.unwrap_err(), quick.is_ok()),
    );
    let run = test().start(outer.timeout(HOUR).build(), ()).await;
    let (failure, is_quick) = run.result().await.unwrap();
    assert!(is_quick);
    assert_eq!(
        failure,
        Failure {
            code: EndReason::Timeout,
            message: "the brain `All/0.0` took longer than 3600s".to_owned(),
            retryable: true,
        }
    );
}

#[tokio::test(start_paused = true)]
async fn timeout_of_a_loop_ends_its_open_calls_and_requests() {
    let asks = brain("Ask")
        .r#loop("Chat", |cx| {
            cx.system("Pay.").tool("pay", |t| {
                t.description("Pays")
                    .approval(|_: &NoArgs, _| Some("money".to_owned()))
                    .execute(async |_, _| Ok("paid"))
            })
        })
        .timeout(HOUR);
    let run = Test::new(ScriptedModel::new([Reply::call("pay", json!({}))])).start(asks.build(), ()).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("{:?}", run.settled().await) };
    assert_eq!(pending.len(), 1);
    tokio::time::sleep(2 * HOUR).await;
    let Settled::Failed(failure) = run.settled().await else { panic!("{:?}", run.settled().await) };
    assert_eq!((failure.code, &*failure.message), (EndReason::Timeout, "the loop `Chat` took longer than 3600s"));
    let log = run.events(Seq(0)).await.unwrap();
    let is_skipped = |event: &&Arc<Event>| {
        matches!(&event.kind, EventKind::LoopToolResult { result: ToolResult::Skipped { .. }, .. })
    };
    assert_eq!(log.iter().filter(is_skipped).count(), 1);
    assert!(log.iter().any(|event| event.kind.name() == "LOOP_APPROVAL_WITHDRAWN"));
}

#[tokio::test(start_paused = true)]
async fn work_of_a_brain_that_took_too_long_is_dropped_and_the_next_try_has_its_own_time() {
    let ledger = Ledger::default();
    let works = ledger.clone();
    let slow = brain("Slow")
        .step("Work", move |cx| {
            let (ledger, key) = (works.clone(), cx.idempotency_key().to_owned());
            let again = attempt(cx.path().as_str()) > 0;
            async move {
                tokio::time::sleep(if again { HOUR / 2 } else { 2 * HOUR }).await;
                ledger.act(&key, "worked");
                Ok(())
            }
        })
        .build();
    let outer = brain("Outer").brain("Slow", slow).map_output(|(), ()| ()).retry(Retry::times(1)).timeout(HOUR);
    test().start(outer, ()).await.result().await.unwrap();
    let deeds = ledger.deeds();
    assert_eq!(deeds.len(), 1);
    assert!(deeds[0].0.ends_with("Slow/1.0/Work"), "{deeds:?}");
}

#[tokio::test(start_paused = true)]
async fn time_runs_over_a_restart_and_the_code_does_not_move_it() {
    let outer = |timeout| brain("Outer").brain("Rest", sleeper(9 * HOUR)).map_output(|(), ()| ()).timeout(timeout);
    let (test, store) = (test(), MemoryStore::new());
    let first = test.runner().clone().store(store.clone());
    let run = first.start(outer(HOUR), ()).await.unwrap();
    tokio::time::sleep(HOUR / 60).await;
    let (id, log) = (run.id().clone(), run.events(Seq(0)).await.unwrap());
    let due = log.iter().find(|event| event.path.as_str() == "Rest").unwrap().at.after(HOUR);
    drop(run);
    first.release().await;
    assert_eq!(first.client().store().run(&id).await.unwrap().wake, Some(due), "no worker is needed until then");
    tokio::time::sleep(HOUR).await;
    let run = test.runner().clone().store(store).brain(outer(8 * HOUR)).resume(&id).await.unwrap();
    let Settled::Failed(failure) = run.settled().await else { panic!("{:?}", run.settled().await) };
    assert_eq!(failure.message, "the brain `Rest` failed: the brain `Rest` took longer than 3600s");
}

#[tokio::test(start_paused = true)]
async fn fork_inside_the_second_try_stays_in_it() {
    let outer = || brain("Outer").brain("Call", flaky(1)).map_output(|(), tried| tried).retry(Retry::times(1));
    let test = test();
    let run = test.start(outer(), ()).await;
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    let begun = log.iter().find(|event| event.path.as_str() == "Call/1.0").unwrap().seq;
    let runner = test.runner().clone().brain(outer());
    let fork = runner.client().fork(run.id(), begun, Fork::default()).await.unwrap();
    let fork = runner.resume(&fork).await.unwrap();
    assert_eq!(fork.result().await.unwrap(), json!(1));
    let log = fork.events(Seq(0)).await.unwrap();
    assert_eq!(log.iter().filter(|event| event.kind.name() == "STEP_RETRY").count(), 1);
}

/// A shop with each kind of try: an item that fails once and undoes its payment, a brain that takes too long once, and a loop that takes too
/// long.
fn shop() -> Tale {
    let ledger = Ledger::default();
    let (pays, refunds) = (ledger.clone(), ledger.clone());
    let pay = brain("Pay")
        .options::<u32>()
        .step("Charge", move |cx| {
            pays.act_once(cx.path().as_str(), "charge");
            async move { Ok(*cx.options) }
        })
        .compensate(move |cx| {
            refunds.act_once(cx.path().as_str(), "refund");
            async { Ok(()) }
        })
        .step("Check", async |cx| {
            let first = cx.path().as_str().contains("/0.1/");
            if first { Err(busy()) } else { Ok(cx.state) }
        })
        .retry(Retry::times(0));
    let ship = brain("Ship")
        .step("Begin", async |cx| Ok(attempt(cx.path().as_str())))
        .sleep("Carry", |attempt| if *attempt == 0 { 2 * HOUR } else { HOUR / 2 });
    let chat = brain("Chat")
        .r#loop("Talk", |cx| {
            cx.system("Thank.").tool("send", |t| {
                t.description("Sends")
                    .approval(|_: &NoArgs, _| Some("it is public".to_owned()))
                    .execute(async |_, _| Ok(""))
            })
        })
        .timeout(HOUR);
    let shop = brain("Shop")
        .state(vec![10_u32, 20])
        .map("Pay", Vec::clone, each(pay).limit(1), |_, paid| paid.iter().sum::<u32>())
        .retry(Retry::times(2))
        .brain("Ship", ship)
        .map_output(|paid, attempt| (paid, attempt))
        .retry(Retry::times(1))
        .timeout(HOUR)
        .all("Thank", |g| (g.attempt("Chat", chat, |_| ()),), |state, (said,)| (state, said.unwrap_err().message));
    Tale {
        definition: IntoBrain::definition(&shop),
        options: Value::Null,
        ledger,
        says: Arc::new(|_| Reply::call("send", json!({}))),
        answers: Arc::new(|_| Vec::<SignalKind>::new()),
    }
}

async fn undisturbed(tale: &Tale) -> Baseline {
    let baseline = tale.undisturbed().await;
    assert_eq!(baseline.end.state, json!([[30, 1], "the loop `Thank/0.0/Talk` took longer than 3600s"]));
    let deeds: Vec<_> = tale.ledger.deeds().into_iter().map(|(path, deed)| format!("{deed} {path}")).collect();
    assert_eq!(
        deeds,
        ["charge Pay/0.0/Charge", "charge Pay/0.1/Charge", "refund Pay/0.1/Undo Charge", "charge Pay/1.1/Charge"]
    );
    baseline
}

#[tokio::test(start_paused = true)]
async fn tries_are_the_same_after_a_crash_at_every_boundary() {
    let tale = shop();
    disturbances::crash(&tale, &undisturbed(&tale).await).await;
}

#[tokio::test(start_paused = true)]
async fn tries_are_cancelled_at_every_boundary() {
    let tale = shop();
    disturbances::cancel(&tale, &undisturbed(&tale).await).await;
}

#[tokio::test(start_paused = true)]
async fn tries_pause_at_every_boundary() {
    let tale = shop();
    disturbances::pause(&tale, &undisturbed(&tale).await).await;
}

#[tokio::test(start_paused = true)]
async fn tries_are_the_same_in_a_fork_at_every_boundary() {
    let tale = shop();
    disturbances::fork(&tale, &undisturbed(&tale).await).await;
}
