//! A runner releases its runs, and another one continues them.

use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::model::{DeltaSink, Model};
use positronic_core::record::{
    EventKind, ModelError, ModelRequest, ModelResponse, RunId, Seq, SignalId, Start, ToolResult,
};
use positronic_core::runner::{ResumeError, Runner, Settled, StartError};
use positronic_core::store::prelude::*;
use positronic_core::store::{EventStore, MemoryStore, StoreError};
use positronic_core::testing::{CountedIds, TestClock};
use positronic_store_suite::{Fault, FaultyStore};
use serde_json::json;

use crate::support::{Journal, ShopBuilder, batch, done, settled, slow_batch, tools, waits, worker, workshop};

fn runner(store: &(impl EventStore + Clone)) -> Runner {
    let model = ScriptedModel::from_fn(|request: &ModelRequest| match request.path.as_str() {
        "Work/0" => slow_batch([("safe", "a", 20_000)]),
        "Work/1" => batch([("gated", "b")]),
        _ => done(),
    });
    Runner::new(model)
        .store(store.clone())
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .linger(Duration::MAX)
        .release_grace(Duration::from_secs(300))
}

#[tokio::test(start_paused = true)]
async fn release_finishes_effects_in_flight_and_starts_none() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let shop = workshop(&journal, tools);
    let (one, other) = (runner(&store), runner(&store).brain(shop.clone()));
    let run = one.start(&shop, ()).await.unwrap();
    while journal.take().is_empty() {
        tokio::task::yield_now().await;
    }
    let held = other.resume(run.id()).await;

    let release = one.release().await;

    assert_eq!((release.released, release.kept), (vec![run.id().clone()], vec![]));
    assert!(matches!(held, Err(ResumeError::Claimed { .. })), "{held:?}");
    assert_eq!(journal.take(), ["a-"], "the tool that was in flight has ended");
    let log = store.read(run.id(), Seq(0), usize::MAX).await.unwrap();
    let [.., result, released] = log.as_slice() else { panic!("{log:?}") };
    assert!(matches!(&result.kind, EventKind::LoopToolResult { result: ToolResult::Success { .. }, .. }));
    assert!(matches!(&released.kind, EventKind::RunReleased { .. }), "the model is not called");
    assert!(matches!(settled(&run).await, Settled::Stopped(ResumeError::Leaves)));
    // The other runner can claim it although the first one is alive.
    let taken = other.resume(run.id()).await.unwrap();
    assert_eq!(waits(&taken).await, ["Work/1.0"]);
    assert_eq!(taken.document(), json!({"done": ["a"]}));
}

#[tokio::test(start_paused = true)]
async fn waiting_run_is_released_at_once_and_no_run_is_claimed_afterwards() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let shop = workshop(&journal, tools);
    let one = runner(&store).brain(shop.clone());
    let run = one.start(&shop, ()).await.unwrap();
    assert_eq!(waits(&run).await, ["Work/1.0"]);

    one.release().await;

    assert!(store.run(run.id()).await.unwrap().claim.is_some_and(|claim| claim.released));
    assert!(matches!(one.start(&shop, ()).await, Err(StartError::Leaves)), "a new run is not begun");
    run.approve(&"Work/1.0".parse().unwrap(), "ann").await.unwrap();
    assert!(matches!(one.resume(run.id()).await, Err(ResumeError::Leaves)), "other runners claim the work");
    assert_eq!(settled(&runner(&store).brain(shop).resume(run.id()).await.unwrap()).await, {
        Settled::Completed(json!({"done": ["a", "b"]}))
    });
}

#[tokio::test(start_paused = true)]
async fn starting_run_is_released_too() {
    let store = MemoryStore::new();
    let shop = workshop(&Journal::default(), tools);
    let first = runner(&store).start(&shop, ()).await.unwrap();
    first.cancel("the next one comes after it").await.unwrap();
    settled(&first).await;
    let slow = FaultyStore::new(store.clone(), |_, _| None)
        .slowly(|method| (method == "read").then_some(Duration::from_secs(60)));
    let one = runner(&slow);
    let start = Start { id: Some(SignalId::from("next")), after: Some(first.id().clone()), ..Start::default() };
    let begins = one.start_with(&shop, (), start);
    assert!(tokio::time::timeout(Duration::from_secs(1), begins).await.is_err(), "it reads the earlier messages");

    one.release().await;

    let row = store.run(&RunId::new("next")).await.unwrap();
    assert!(row.claim.is_some_and(|claim| claim.released));
}

#[tokio::test(start_paused = true)]
async fn effect_beyond_the_grace_period_is_abandoned_and_repeated_elsewhere() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let slow =
        workshop(&journal, |config| config.tools([worker("safe", ShopBuilder::idempotent), worker("pays", |t| t)]));
    let model = |takes: u64| {
        ScriptedModel::from_fn(move |request: &ModelRequest| match request.path.as_str() {
            "Work/0" => slow_batch([("safe", "quick", 1_000), ("safe", "a", takes), ("pays", "b", takes)]),
            _ => done(),
        })
    };
    let make = |takes: u64| Runner::new(model(takes)).store(store.clone()).clock(TestClock::default());
    let (one, other) = (make(30_000), make(30_000).brain(slow.clone()));
    let run = one.start(&slow, ()).await.unwrap();
    while journal.take().is_empty() {
        tokio::task::yield_now().await;
    }
    let began = tokio::time::Instant::now();

    one.release().await;

    assert_eq!(began.elapsed(), Duration::from_secs(8), "the default grace period");
    let log = store.read(run.id(), Seq(0), usize::MAX).await.unwrap();
    assert!(matches!(&log.last().unwrap().kind, EventKind::RunReleased { .. }));
    let result = |call: &str, log: &[std::sync::Arc<positronic_core::record::Event>]| {
        log.iter().find_map(|event| match &event.kind {
            EventKind::LoopToolResult { result, .. } if event.path.as_str() == call => Some(result.clone()),
            _ => None,
        })
    };
    assert!(result("Work/0.0", &log).is_some_and(|result| result.is_success()), "finished effects are recorded");
    assert_eq!((result("Work/0.1", &log), result("Work/0.2", &log)), (None, None));
    let taken = other.resume(run.id()).await.unwrap();
    assert!(matches!(taken.settled().await, Settled::Completed(_)));
    let log = store.read(run.id(), Seq(0), usize::MAX).await.unwrap();
    assert!(result("Work/0.1", &log).is_some_and(|result| result.is_success()), "it may run twice");
    assert!(matches!(result("Work/0.2", &log), Some(ToolResult::Interrupted { .. })), "its effect is unknown");
}

/// Never answers, like a model that thinks.
struct Thinks;

impl Model for Thinks {
    fn name(&self) -> String {
        "test/thinks".to_owned()
    }

    fn call<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        Box::pin(std::future::pending())
    }

    fn wire(&self, _: &ModelRequest) -> String {
        String::new()
    }
}

#[tokio::test(start_paused = true)]
async fn slow_answer_does_not_delay_release_and_is_requested_again() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let shop = workshop(&journal, tools);
    let one = Runner::new(Thinks).store(store.clone()).clock(TestClock::default());
    let run = one.start(&shop, ()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = tokio::time::Instant::now();

    one.release().await;

    assert_eq!(began.elapsed(), Duration::from_secs(8));
    let taken = runner(&store).brain(shop).resume(run.id()).await.unwrap();
    assert_eq!(waits(&taken).await, ["Work/1.0"]);
}

/// A store without space after the first append of a tool's result.
fn full(store: &MemoryStore) -> FaultyStore<MemoryStore> {
    FaultyStore::new(store.clone(), |_, append| {
        let is_late = |event: &std::sync::Arc<positronic_core::record::Event>| {
            matches!(event.kind, EventKind::LoopToolResult { .. } | EventKind::RunReleased { .. })
        };
        let message = "no space left on the device for `runs.db`".to_owned();
        append.events.iter().any(is_late).then_some(Fault::Refused(StoreError::Failed { message }))
    })
}

fn filled(store: &FaultyStore<MemoryStore>) -> Runner {
    let model = ScriptedModel::from_fn(|_: &ModelRequest| slow_batch([("safe", "a", 0)]));
    Runner::new(model).store(store.clone()).clock(TestClock::default()).ids(CountedIds::default())
}

#[tokio::test(start_paused = true)]
async fn release_with_nothing_in_flight_ends_within_three_seconds_although_the_disk_is_full() {
    let store = MemoryStore::new();
    let journal = Journal::default();
    let runner = filled(&full(&store));
    let run = runner.start(&workshop(&journal, tools), ()).await.unwrap();
    while journal.take().is_empty() {
        tokio::task::yield_now().await;
    }

    let began = tokio::time::Instant::now();
    let release = runner.release().await;

    assert_eq!((release.released, release.kept), (vec![], vec![run.id().clone()]), "its release is not recorded");
    assert!(began.elapsed() <= Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn worker_whose_disk_is_full_says_so_after_45_seconds() {
    let store = MemoryStore::new();
    let began = tokio::time::Instant::now();
    let run = filled(&full(&store)).start(&workshop(&Journal::default(), tools), ()).await.unwrap();

    let settled = settled(&run).await;

    let Settled::Stopped(ResumeError::Store(error)) = settled else { panic!("{settled:?}") };
    assert!(error.to_string().contains("no space left on the device"), "{error}");
    let took = began.elapsed();
    assert!(took > Duration::from_secs(44) && took < Duration::from_secs(50), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn imported_run_has_waited_since_the_same_time() {
    let (store, imported) = (MemoryStore::new(), MemoryStore::new());
    let shop = workshop(&Journal::default(), tools);
    let one = runner(&store).brain(shop.clone());
    let run = one.start(&shop, ()).await.unwrap();
    assert_eq!(waits(&run).await, ["Work/1.0"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    one.release().await;
    let row = store.run(run.id()).await.unwrap();
    assert_eq!(row.at.since(row.since), Duration::from_secs(60), "its worker has released it later");

    let events = store.read(run.id(), Seq(0), usize::MAX).await.unwrap();
    positronic_core::runner::Client::new(imported.clone()).import(run.id(), &events).await.unwrap();

    assert_eq!(imported.run(run.id()).await.unwrap().since, row.since);
}
