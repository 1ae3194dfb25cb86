//! A worker that loses its lease, and stores whose answers are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use positronic_core::record::{Actor, EventKind, Path, RunId, Seq, Status, ToolResult};
use positronic_core::runner::{ResumeError, Settled};
use positronic_core::store::prelude::*;
use positronic_core::store::{MemoryStore, StoreError};
use positronic_core::testing::TestClock;
use positronic_store_suite::{Fault, FaultyStore};

use crate::network::Connection;
use crate::shop::{Ledger, machine, shop};

const TTL: Duration = Duration::from_secs(10);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

async fn status(store: &MemoryStore, run: &RunId) -> Status {
    store.run(run).await.unwrap().status
}

fn call(text: &str) -> Path {
    Path::parse(text).unwrap()
}

#[tokio::test(start_paused = true)]
async fn cut_off_worker_stops_before_another_one_takes_over() {
    let (store, ledger, clock) = (MemoryStore::new().lease_ttl(TTL), Ledger::default(), TestClock::default());
    let line = Connection::new(&store, 1, 0, 0);
    let first = machine(line.clone(), clock.clone(), &ledger, 60_000);
    let run = first.start(shop(&ledger), ()).await.unwrap();
    tokio::time::sleep(seconds(1)).await;
    line.cut(true);

    let Settled::Stopped(ResumeError::LeaseLost { in_flight, .. }) = run.settled().await else {
        panic!("{:?}", run.state())
    };

    assert_eq!(in_flight, [call("Work/0.0"), call("Work/0.1")]);
    let second = machine(store.clone(), clock, &ledger, 60_000);
    let _service = second.serve();
    tokio::time::sleep(seconds(5 * 60)).await;
    // `pay` is not repeatable, so it counts as interrupted; `note` began again.
    assert_eq!((ledger.count(run.id(), "Work/0.0"), ledger.count(run.id(), "Work/0.1")), (2, 1));
    let effects = ledger.all();
    let notes = &effects[&(run.id().clone(), "Work/0.0".to_owned())];
    assert!(notes[0].over.unwrap() <= notes[1].begun, "{notes:?}");
    let log = store.read(run.id(), Seq(0), usize::MAX).await.unwrap();
    let interrupted = log.iter().any(|event| {
        matches!(&event.kind, EventKind::LoopToolResult { result: ToolResult::Interrupted { .. }, .. })
            && event.path == call("Work/0.1")
    });
    assert!(interrupted, "{log:#?}");
}

#[tokio::test(start_paused = true)]
async fn call_that_ended_without_a_record_counts_as_abandoned() {
    let (store, ledger) = (MemoryStore::new().lease_ttl(TTL), Ledger::default());
    let line = Connection::new(&store, 1, 0, 0);
    let runner = machine(line.clone(), TestClock::default(), &ledger, 12_000);
    let run = runner.start(shop(&ledger), ()).await.unwrap();
    tokio::time::sleep(seconds(11)).await;
    line.cut(true);

    let Settled::Stopped(ResumeError::LeaseLost { in_flight, .. }) = run.settled().await else {
        panic!("{:?}", run.state())
    };

    assert_eq!(in_flight, [call("Work/0.1")]);
    assert!(ledger.all()[&(run.id().clone(), "Work/0.1".to_owned())][0].completed);
}

#[tokio::test(start_paused = true)]
async fn worker_continues_its_run_under_a_new_lease_after_an_outage() {
    let (store, ledger) = (MemoryStore::new().lease_ttl(TTL), Ledger::default());
    let line = Connection::new(&store, 1, 0, 0);
    let runner = machine(line.clone(), TestClock::default(), &ledger, 1000);
    let run = runner.start(shop(&ledger), ()).await.unwrap();
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(status(&store, run.id()).await, Status::Waiting);
    let before = runner.worker().await.unwrap();
    line.cut(true);
    tokio::time::sleep(seconds(60)).await;
    runner.client().approve(run.id(), &call("Work/1.0"), Actor::default()).await.unwrap_err();
    line.cut(false);
    runner.client().approve(run.id(), &call("Work/1.0"), Actor::default()).await.unwrap();
    tokio::time::sleep(seconds(60)).await;

    assert_eq!(status(&store, run.id()).await, Status::Completed);
    assert_ne!(runner.worker().await.unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn server_continues_a_run_that_an_outage_has_stopped() {
    let (store, ledger) = (MemoryStore::new().lease_ttl(TTL), Ledger::default());
    let line = Connection::new(&store, 1, 0, 0);
    let runner = machine(line.clone(), TestClock::default(), &ledger, 1000);
    let run = runner.start(shop(&ledger), ()).await.unwrap();
    tokio::time::sleep(seconds(3)).await;
    // It still lingers, so its release fails.
    line.cut(true);
    tokio::time::sleep(seconds(60)).await;
    line.cut(false);
    assert!(matches!(run.settled().await, Settled::Stopped(ResumeError::Store(_))));

    let _service = runner.serve();
    runner.client().approve(run.id(), &call("Work/1.0"), Actor::default()).await.unwrap();
    tokio::time::sleep(seconds(60)).await;

    assert_eq!(status(&store, run.id()).await, Status::Completed);
}

/// The default lease of a database outlives its failover: 45 seconds, renewed every eleven.
#[tokio::test(start_paused = true)]
async fn work_in_flight_survives_an_outage_of_thirty_seconds() {
    let (store, ledger) = (MemoryStore::new().lease_ttl(seconds(45)), Ledger::default());
    let line = Connection::new(&store, 1, 0, 0);
    let runner = machine(line.clone(), TestClock::default(), &ledger, 20_000);
    let run = runner.start(shop(&ledger), ()).await.unwrap();
    tokio::time::sleep(seconds(10)).await;
    line.cut(true);
    tokio::time::sleep(seconds(30)).await;
    line.cut(false);
    tokio::time::sleep(seconds(30)).await;

    for place in ["Work/0.0", "Work/0.1"] {
        assert_eq!(ledger.count(run.id(), place), 1, "{place}");
    }
    let log = store.read(run.id(), Seq(0), usize::MAX).await.unwrap();
    let claims = log.iter().filter(|event| matches!(event.kind, EventKind::RunClaimed { .. })).count();
    assert_eq!((claims, status(&store, run.id()).await), (1, Status::Waiting));
}

/// Every append of a run, by anyone, loses its answer once.
#[tokio::test(start_paused = true)]
async fn lost_answers_of_appends_change_nothing() {
    let (store, ledger, lost) = (MemoryStore::new(), Ledger::default(), Arc::new(AtomicBool::new(false)));
    let every_second = move |_: &RunId, _: &positronic_core::store::Append| {
        let is_lost = !lost.fetch_xor(true, Ordering::SeqCst);
        is_lost.then(|| Fault::Unanswered(StoreError::Unknown { message: "no answer".to_owned() }))
    };
    let faulty = FaultyStore::new(store.clone(), every_second);
    let runner = machine(faulty, TestClock::default(), &ledger, 1000);
    let run = runner.start(shop(&ledger), ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    tokio::time::sleep(seconds(60)).await;
    let approved = runner.client().approve(run.id(), &call("Work/1.0"), Actor::default()).await.unwrap();

    run.result().await.unwrap();

    let log = store.read(run.id(), Seq(0), usize::MAX).await.unwrap();
    assert!(matches!(log[approved.index()].kind, EventKind::LoopApprovalDecided { .. }));
    for (key, effects) in ledger.all() {
        assert_eq!(effects.len(), 1, "{key:?}");
    }
    let named = |name: &str| log.iter().filter(|event| event.kind.name() == name).count();
    assert_eq!((named("BRAIN_START"), named("RUN_CLAIMED"), named("RUN_RELEASED")), (1, 2, 1));
}

/// Of many workers that see the same run, one loads it.
#[tokio::test(start_paused = true)]
async fn one_of_many_workers_loads_a_run() {
    let (store, ledger, clock) = (MemoryStore::new().lease_ttl(TTL), Ledger::default(), TestClock::default());
    let starter = machine(store.clone(), clock.clone(), &ledger, 1000);
    let run = starter.start(shop(&ledger), ()).await.unwrap();
    run.settled().await;
    let id = run.id().clone();
    drop((run, starter));
    tokio::time::sleep(TTL).await;
    let snapshots = Arc::new(std::sync::Mutex::new(0));
    let machines: Vec<_> = (0..20)
        .map(|_| {
            let counted = Arc::clone(&snapshots);
            let counting = move |method: &str| {
                *counted.lock().unwrap() += u32::from(method == "snapshot");
                None
            };
            let faulty = FaultyStore::new(store.clone(), |_, _| None).reading(counting);
            machine(faulty, clock.clone(), &ledger, 1000)
        })
        .collect();
    let _services: Vec<_> = machines.iter().map(positronic_core::runner::Runner::serve).collect();
    tokio::time::sleep(seconds(5)).await;

    positronic_core::runner::Client::new(store.clone())
        .approve(&id, &call("Work/1.0"), Actor::default())
        .await
        .unwrap();
    tokio::time::sleep(seconds(30)).await;

    assert_eq!(status(&store, &id).await, Status::Completed);
    assert_eq!(*snapshots.lock().unwrap(), 1, "each load reads the snapshot");
}
