//! A runner lets go of its runs, and another one goes on with them.

use std::time::Duration;

use positronic_core::model::scripted::ScriptedModel;
use positronic_core::record::{Body, ModelRequest, RunId, Seq, SignalId, Start, ToolResult};
use positronic_core::runner::{ResumeError, Runner, Settled, StartError};
use positronic_core::store::{EventStore, MemoryStore};
use positronic_core::testing::{CountedIds, FaultyStore, TestClock};
use serde_json::json;

use crate::support::{Journal, batch, done, settled, slow_batch, tools, waits, workshop};

fn runner(store: &(impl EventStore + Clone)) -> Runner {
    let model = ScriptedModel::from_fn(|request: &ModelRequest| match request.path.as_str() {
        "Work/0" => slow_batch([("safe", "a", 20_000)]),
        "Work/1" => batch([("gated", "b")]),
        _ => done(),
    });
    let builder = Runner::builder().model(model).store(store.clone()).clock(TestClock::default());
    builder.ids(CountedIds::default()).linger(Duration::MAX).build()
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

    assert!(matches!(held, Err(ResumeError::Held { .. })), "{held:?}");
    assert_eq!(journal.take(), ["a-"], "the tool that was in flight has ended");
    let log = store.read(run.id(), Seq(0), usize::MAX).await.unwrap();
    let [.., result, released] = log.as_slice() else { panic!("{log:?}") };
    assert!(matches!(&result.body, Body::LoopToolResult { result: ToolResult::Success { .. }, .. }));
    assert!(matches!(&released.body, Body::RunReleased { .. }), "the model is not asked any more");
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
    assert!(matches!(one.start(&shop, ()).await, Err(StartError::Store(_))), "a new run is not begun");
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
