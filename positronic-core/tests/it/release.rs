//! A runner lets go of its runs, and another one goes on with them.

use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::model::{DeltaSink, Model};
use positronic_core::record::{
    EventKind, ModelError, ModelRequest, ModelResponse, RunId, Seq, SignalId, Start, ToolResult,
};
use positronic_core::runner::{ResumeError, Runner, Settled, StartError};
use positronic_core::store::{EventStore, MemoryStore};
use positronic_core::testing::{CountedIds, FaultyStore, TestClock};
use serde_json::json;

use crate::support::{Journal, ShopBuilder, batch, done, settled, slow_batch, tools, waits, worker, workshop};

fn runner(store: &(impl EventStore + Clone)) -> Runner {
    let model = ScriptedModel::from_fn(|request: &ModelRequest| match request.path.as_str() {
        "Work/0" => slow_batch([("safe", "a", 20_000)]),
        "Work/1" => batch([("gated", "b")]),
        _ => done(),
    });
    let builder = Runner::builder().model(model).store(store.clone()).clock(TestClock::default());
    builder.ids(CountedIds::default()).linger(Duration::MAX).release_grace(Duration::from_secs(300)).build()
}

#[tokio::test(start_paused = true)]
async fn what_is_in_flight_ends_and_nothing_new_begins_where_a_runner_lets_go() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let shop = workshop(&journal, tools);
    let (one, other) = (runner(&store), runner(&store).brain(shop.clone()));
    let run = one.start(&shop, ()).await.unwrap();
    while journal.take().is_empty() {
        tokio::task::yield_now().await;
    }
    let held = other.resume(run.id()).await;

    one.release().await;

    assert!(matches!(held, Err(ResumeError::Claimed { .. })), "{held:?}");
    assert_eq!(journal.take(), ["a-"], "the tool that was in flight has ended");
    let log = store.read(run.id(), Seq(0), usize::MAX).await.unwrap();
    let [.., result, released] = log.as_slice() else { panic!("{log:?}") };
    assert!(matches!(&result.kind, EventKind::LoopToolResult { result: ToolResult::Success { .. }, .. }));
    assert!(matches!(&released.kind, EventKind::RunReleased { .. }), "the model is not asked any more");
    assert!(matches!(settled(&run).await, Settled::Stopped(reason) if reason.contains("another one goes on")));
    // The other one is not kept from it by the first one being alive.
    let taken = other.resume(run.id()).await.unwrap();
    assert_eq!(waits(&taken).await, ["Work/1.0"]);
    assert_eq!(taken.document(), json!({"done": ["a"]}));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_is_let_go_of_at_once_and_none_is_taken_any_more() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let shop = workshop(&journal, tools);
    let one = runner(&store).brain(shop.clone());
    let run = one.start(&shop, ()).await.unwrap();
    assert_eq!(waits(&run).await, ["Work/1.0"]);

    one.release().await;

    assert!(store.run(run.id()).await.unwrap().claim.is_some_and(|claim| claim.released));
    assert!(matches!(one.start(&shop, ()).await, Err(StartError::Leaves)), "a new run is not begun");
    run.approve(&"Work/1.0".parse().unwrap(), "ann").await.unwrap();
    assert!(matches!(one.resume(run.id()).await, Err(ResumeError::Leaves)), "work is left to others");
    assert_eq!(settled(&runner(&store).brain(shop).resume(run.id()).await.unwrap()).await, {
        Settled::Completed(json!({"done": ["a", "b"]}))
    });
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_being_begun_is_let_go_of_too() {
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
    assert!(tokio::time::timeout(Duration::from_secs(1), begins).await.is_err(), "it reads what was before");

    one.release().await;

    let row = store.run(&RunId::new("next")).await.unwrap();
    assert!(row.claim.is_some_and(|claim| claim.released));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_end_within_the_grace_is_abandoned_and_goes_on_elsewhere() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let slow =
        workshop(&journal, |config| config.tools([worker("safe", ShopBuilder::idempotent), worker("pays", |t| t)]));
    let model = |takes: u64| {
        ScriptedModel::from_fn(move |request: &ModelRequest| match request.path.as_str() {
            "Work/0" => slow_batch([("safe", "quick", 1_000), ("safe", "a", takes), ("pays", "b", takes)]),
            _ => done(),
        })
    };
    let make =
        |takes: u64| Runner::builder().model(model(takes)).store(store.clone()).clock(TestClock::default()).build();
    let (one, other) = (make(30_000), make(30_000).brain(slow.clone()));
    let run = one.start(&slow, ()).await.unwrap();
    while journal.take().is_empty() {
        tokio::task::yield_now().await;
    }
    let began = tokio::time::Instant::now();

    one.release().await;

    assert_eq!(began.elapsed(), Duration::from_secs(8), "the grace, where nothing is said");
    let log = store.read(run.id(), Seq(0), usize::MAX).await.unwrap();
    assert!(matches!(&log.last().unwrap().kind, EventKind::RunReleased { .. }));
    let result = |call: &str, log: &[std::sync::Arc<positronic_core::record::Event>]| {
        log.iter().find_map(|event| match &event.kind {
            EventKind::LoopToolResult { result, .. } if event.path.as_str() == call => Some(result.clone()),
            _ => None,
        })
    };
    assert!(result("Work/0.0", &log).is_some_and(|result| result.is_success()), "what has ended is recorded");
    assert_eq!((result("Work/0.1", &log), result("Work/0.2", &log)), (None, None));
    let taken = other.resume(run.id()).await.unwrap();
    assert!(matches!(taken.settled().await, Settled::Completed(_)));
    let log = store.read(run.id(), Seq(0), usize::MAX).await.unwrap();
    assert!(result("Work/0.1", &log).is_some_and(|result| result.is_success()), "it may run twice");
    assert!(matches!(result("Work/0.2", &log), Some(ToolResult::Interrupted { .. })), "nobody knows what it did");
}

/// Never answers, as a model that thinks.
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
async fn an_answer_that_takes_minutes_keeps_no_process_and_is_asked_for_again() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let shop = workshop(&journal, tools);
    let one = Runner::builder().model(Thinks).store(store.clone()).clock(TestClock::default()).build();
    let run = one.start(&shop, ()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = tokio::time::Instant::now();

    one.release().await;

    assert_eq!(began.elapsed(), Duration::from_secs(8));
    let taken = runner(&store).brain(shop).resume(run.id()).await.unwrap();
    assert_eq!(waits(&taken).await, ["Work/1.0"]);
}
