//! Tool calls that run apart from the worker of their run, and runs that another engine schedules.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use positronic_core::dsl::{IntoBrain as _, Runnable};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, Seq, SignalId, SignalKind, Start, ToolResult};
use positronic_core::runner::detached::{DetachedCall, DetachedOutcome, ToolExecutor};
use positronic_core::runner::{Driven, Fork, Settled};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::bench::{Bench, approve, by, named, result_of, run_id};
use crate::stores::{Fresh, on_both_stores};
use crate::support::{Board, Job, Journal, Shop, ShopBuilder, batch, done, settled, tools, worker, workshop};

on_both_stores! {
    promise_05_next_worker_gets_the_outcome_of_a_detached_call
    promise_05_fork_does_not_perform_a_detached_call_of_its_origin_again
    parallel_updates_of_one_place_are_an_error_of_the_later_call
    detached_calls_record_values_and_files_and_update_the_state
    promise_16_cancel_reaches_a_detached_call
    driven_run_is_left_to_its_caller_at_each_wait
}

type Running = Shared<BoxFuture<'static, DetachedOutcome>>;

/// Performs each call once, in another process, and remembers its outcome.
#[derive(Clone, Default)]
struct Elsewhere {
    process: Arc<OnceLock<Runner>>,
    calls: Arc<Mutex<HashMap<DetachedCall, Running>>>,
}

impl Elsewhere {
    /// Creates a process whose calls run elsewhere.
    fn process<S: Fresh>(
        &self,
        bench: &Bench<S>,
        name: &str,
        brain: &impl Runnable<Options = (), Result = Board>,
        says: fn(&str) -> Reply,
    ) -> Runner {
        self.process.get_or_init(|| bench.process("elsewhere", says).brain(brain));
        bench.process(name, says).brain(brain).tool_executor(self.clone())
    }
}

impl ToolExecutor for Elsewhere {
    fn execute(&self, call: DetachedCall) -> BoxFuture<'static, DetachedOutcome> {
        let process = self.process.get().unwrap().clone();
        let perform = |call: DetachedCall| {
            // Through JSON, as between processes.
            let call: DetachedCall = serde_json::from_value(json!(call)).unwrap();
            let task = tokio::spawn(async move { process.prepare_call(call).await.unwrap().perform().await });
            async move { serde_json::from_value(json!(task.await.unwrap())).unwrap() }.boxed().shared()
        };
        self.calls.lock().unwrap().entry(call.clone()).or_insert_with(|| perform(call)).clone().boxed()
    }
}

/// Does not know what became of a call.
struct Forgetful;

impl ToolExecutor for Forgetful {
    fn takes(&self, call: &DetachedCall) -> bool {
        call.tool != "safe"
    }

    fn execute(&self, call: DetachedCall) -> BoxFuture<'static, DetachedOutcome> {
        let known = call.may_repeat && call.attempt > 0;
        let outcome = match known {
            true => json!({"returned": {"output": "found"}}),
            false => json!({"in_doubt": {"reason": "its process ended"}}),
        };
        std::future::ready(serde_json::from_value(outcome).unwrap()).boxed()
    }
}

/// A tool that notes its job and ends when it may.
fn patient(gate: &Arc<Semaphore>) -> crate::support::ShopTool {
    let gate = Arc::clone(gate);
    Tool::new("pay", move |t| {
        t.execute(move |job: Job, cx: Shop| {
            let gate = Arc::clone(&gate);
            async move {
                cx.services.note(format!("{} begins", job.id));
                gate.acquire().await?.forget();
                cx.services.note(format!("{} ends", job.id));
                cx.update(|board| board.done.push(job.id));
                Ok("paid")
            }
        })
    })
}

fn pays_twice(place: &str) -> Reply {
    if place == "Work/0" { batch([("pay", "a"), ("pay", "b")]) } else { done() }
}

async fn begun(journal: &Journal, count: usize) {
    let mut notes = Vec::new();
    while notes.len() < count {
        tokio::task::yield_now().await;
        notes.extend(journal.take());
    }
    notes.sort();
    assert_eq!(notes, ["a begins", "b begins"][..count]);
}

async fn promise_05_next_worker_gets_the_outcome_of_a_detached_call<S: Fresh>() {
    let (bench, journal, gate) = (Bench::<S>::fresh(), Journal::default(), Arc::new(Semaphore::new(0)));
    let tool = Arc::clone(&gate);
    let shop = workshop(&journal, move |config| config.tools([patient(&tool)]));
    let elsewhere = Elsewhere::default();
    let first = bench.start(&elsewhere.process(&bench, "first", &shop, pays_twice), &shop).await;
    begun(&journal, 2).await;

    bench.declare_dead().await;
    let second = elsewhere.process(&bench, "second", &shop, pays_twice).resume(&run_id()).await.unwrap();
    gate.add_permits(2);

    assert!(matches!(settled(&second).await, Settled::Completed(_)));
    drop(first);
    let log = bench.checked().await;
    assert_eq!(named(&log, "LOOP_TOOL_START"), ["Work/0.0", "Work/0.1"], "neither runs again");
    let mut notes = journal.take();
    notes.sort();
    assert_eq!(notes, ["a ends", "b ends"]);
    assert!(matches!(result_of(&log, "Work/0.0"), ToolResult::Success { .. }));
    assert_eq!(second.document(), json!({"done": ["a", "b"]}), "parallel calls lose no update");
}

async fn promise_05_fork_does_not_perform_a_detached_call_of_its_origin_again<S: Fresh>() {
    let (bench, journal, gate) = (Bench::<S>::fresh(), Journal::default(), Arc::new(Semaphore::new(0)));
    let tool = Arc::clone(&gate);
    let shop = workshop(&journal, move |config| config.tools([patient(&tool)]));
    let elsewhere = Elsewhere::default();
    let origin = bench.start(&elsewhere.process(&bench, "first", &shop, pays_twice), &shop).await;
    begun(&journal, 2).await;
    let last = bench.log().await.last().unwrap().seq;

    let fork =
        elsewhere.process(&bench, "second", &shop, pays_twice).fork(&run_id(), last, Fork::default()).await.unwrap();

    assert!(matches!(settled(&fork).await, Settled::Completed(_)));
    let log = bench.store.read(fork.id(), Seq(0), usize::MAX).await.unwrap();
    assert!(matches!(result_of(&log, "Work/0.0"), ToolResult::Interrupted { .. }));
    assert!(journal.take().is_empty(), "no call begins in the fork");
    gate.add_permits(2);
    assert!(matches!(settled(&origin).await, Settled::Completed(_)));
    assert_eq!(origin.document(), json!({"done": ["a", "b"]}));
}

async fn parallel_updates_of_one_place_are_an_error_of_the_later_call<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let shop = workshop(&journal, |config| {
        config.tool("pay", |t| {
            t.execute(async |job: Job, cx: Shop| {
                let reply = cx.result("paid");
                Ok(reply.update(move |board: &mut Board| match board.done.first_mut() {
                    Some(all) => all.push_str(&job.id),
                    None => board.done.push(job.id),
                }))
            })
        })
    });
    let elsewhere = Elsewhere::default();
    let says = |place: &str| match place {
        "Work/0" => batch([("pay", "a")]),
        "Work/1" => batch([("pay", "b"), ("pay", "c")]),
        _ => done(),
    };

    let run = bench.start(&elsewhere.process(&bench, "first", &shop, says), &shop).await;

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(run.document(), json!({"done": ["ab"]}));
    let results = bench.last_results();
    assert_eq!(results[..2], ["paid", "paid"]);
    assert!(results[2].contains("its update of the state conflicts"), "{results:?}");
}

async fn detached_calls_record_values_and_files_and_update_the_state<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let shop = workshop(&journal, |config| {
        config.tool("pay", |t| {
            t.execute(async |job: Job, cx: Shop| {
                let number = cx.once("number", async { Ok(cx.services.count()) }).await?;
                assert_eq!(cx.once("number", async { Ok(cx.services.count()) }).await?, number);
                cx.file("bill.txt", "text/plain", format!("Bill {number}")).await?;
                let reply = cx.result(number);
                Ok(reply.update(move |board: &mut Board| board.done.push(format!("{} {number}", job.id))))
            })
        })
    });
    let elsewhere = Elsewhere::default();
    let says = |place: &str| if place == "Work/0" { batch([("pay", "a")]) } else { done() };

    let run = bench.start(&elsewhere.process(&bench, "first", &shop, says), &shop).await;

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(run.document(), json!({"done": ["a 1"]}));
    let log = bench.checked().await;
    let of_call: Vec<_> = log.iter().filter(|event| event.path.as_str() == "Work/0.0").collect();
    let names: Vec<_> = of_call.iter().map(|event| (event.kind.name(), event.epoch.is_some())).collect();
    assert_eq!(
        names,
        [
            ("LOOP_TOOL_CALL", true),
            ("LOOP_TOOL_START", true),
            ("VALUE_RECORDED", false),
            ("LOOP_OUTPUT", false),
            ("LOOP_TOOL_RESULT", true)
        ]
    );
}

async fn promise_16_cancel_reaches_a_detached_call<S: Fresh>() {
    let (bench, journal, gate) = (Bench::<S>::fresh(), Journal::default(), Arc::new(Semaphore::new(0)));
    let tool = Arc::clone(&gate);
    let shop = workshop(&journal, move |config| config.tools([patient(&tool)]));
    let elsewhere = Elsewhere::default();
    let says = |place: &str| if place == "Work/0" { batch([("pay", "a")]) } else { done() };
    let run = bench.start(&elsewhere.process(&bench, "first", &shop, says), &shop).await;
    begun(&journal, 1).await;

    let cancel = SignalKind::Cancel { reason: None };
    bench.client("people").signal(&run_id(), cancel, by("ann")).await.unwrap();

    assert_eq!(settled(&run).await, Settled::Cancelled);
    let running = elsewhere.calls.lock().unwrap().values().next().unwrap().clone();
    let DetachedOutcome::Failed { message, .. } = running.await else { panic!("it ended") };
    assert_eq!(message, "the run no longer awaits the call");
    assert!(journal.take().is_empty());
}

async fn driven_run_is_left_to_its_caller_at_each_wait<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let shop = workshop(&journal, tools);
    let says = |place: &str| if place == "Work/0" { batch([("gated", "a")]) } else { done() };
    let process = bench.process("first", says).brain(shop.clone());
    let start = Start { id: Some(SignalId::new("run")), ..Start::default() };

    let waiting = process.start_driven(shop.definition(), json!({}), start).await;
    let waiting = waiting.unwrap_or_else(|error| panic!("{error}"));
    let people = bench.client("people");
    let accepted = people.signal(&run_id(), approve("Work/0.0"), by("ann")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;

    assert!(matches!(&waiting.settled, Settled::Waiting(pending) if pending.len() == 1), "{waiting:?}");
    assert_eq!(accepted, waiting.next, "the first event after the wait has the number that was returned");
    assert!(journal.take().is_empty(), "the runner does not continue it by itself");
    let Driven { settled, wake, .. } = process.drive(&run_id()).await.unwrap();
    assert!(matches!(settled, Settled::Completed(_)) && wake.is_none());
    assert_eq!(journal.take(), ["a"]);
    let again = process.drive(&run_id()).await.unwrap();
    assert!(matches!(again.settled, Settled::Completed(_)), "the end of a run is no error");
    bench.checked().await;
}

#[tokio::test(start_paused = true)]
async fn promise_05_detached_call_in_doubt_runs_again_only_if_it_may() {
    let (bench, journal) = (Bench::new(), Journal::default());
    let shop = workshop(&journal, |config| {
        config.tools([worker("set", ShopBuilder::idempotent), worker("pay", |t| t), worker("safe", |t| t)])
    });
    let says = |place: &str| {
        if place == "Work/0" { batch([("set", "a"), ("pay", "b"), ("safe", "c")]) } else { done() }
    };

    let run = bench.start(&bench.process("first", says).tool_executor(Forgetful), &shop).await;

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(bench.last_results(), ["found", "Interrupted: its process ended", "c done"]);
    assert_eq!(journal.take(), ["c"], "the worker performs what the executor does not take");
    bench.checked().await;
}

#[tokio::test(start_paused = true)]
async fn promise_05_detached_call_without_an_executor_is_in_doubt() {
    let (bench, journal, gate) = (Bench::new(), Journal::default(), Arc::new(Semaphore::new(0)));
    let tool = Arc::clone(&gate);
    let shop = workshop(&journal, move |config| config.tools([patient(&tool)]));
    let elsewhere = Elsewhere::default();
    let says = |place: &str| if place == "Work/0" { batch([("pay", "a")]) } else { done() };
    let first = bench.start(&elsewhere.process(&bench, "first", &shop, says), &shop).await;
    begun(&journal, 1).await;

    bench.declare_dead().await;
    let run = bench.process("second", says).brain(shop.clone()).resume(&run_id()).await.unwrap();

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert!(matches!(result_of(&bench.checked().await, "Work/0.0"), ToolResult::Interrupted { .. }));
    drop(first);
}

/// Loses the process of every call.
struct Lost;

impl ToolExecutor for Lost {
    fn execute(&self, _: DetachedCall) -> BoxFuture<'static, DetachedOutcome> {
        let outcome = json!({"in_doubt": {"reason": "its process ended"}});
        std::future::ready(serde_json::from_value(outcome).unwrap()).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn promise_14_detached_tool_that_ends_its_process_is_interrupted_and_then_parked() {
    let (bench, journal) = (Bench::new(), Journal::default());
    let shop = workshop(&journal, |config| config.tools([worker("look", |t| t.idempotent())]));
    let says = |_: &str| batch([("look", "a")]);

    let run = bench.start(&bench.process("first", says).brain(shop.clone()).tool_executor(Lost), &shop).await;

    assert_eq!(settled(&run).await, Settled::Paused);
    let log = run.events(Seq(0)).await.unwrap();
    let count = |name: &str| log.iter().filter(|event| event.kind.name() == name).count();
    assert_eq!((count("LOOP_TOOL_START"), count("LOOP_TOOL_RETRY")), (12, 9), "each of three calls has four tries");
    let lost =
        |event: &EventKind| matches!(event, EventKind::LoopToolResult { result: ToolResult::Interrupted { .. }, .. });
    assert_eq!(log.iter().filter(|event| lost(&event.kind)).count(), 3);
    let parked = run.state().parked.unwrap();
    assert_eq!(parked.message, "the process ended 12 times in a row during a call of `look` in `Work`");
}
