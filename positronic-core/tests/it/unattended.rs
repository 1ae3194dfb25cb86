//! Runs without a handle: their runner continues them, and a run that no worker can claim reports it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use positronic_core::dsl::Runnable;
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::record::{Actor, ClaimRefusal, EventKind, ModelRequest, RunId, Seq, SignalId, Start, Status};
use positronic_core::runner::{ResumeError, Server, Settled};
use positronic_core::store::prelude::*;
use positronic_core::store::{EventStore, MemoryStore, StoreError};
use positronic_core::testing::TestClock;
use positronic_store_suite::{Fault, FaultyStore};
use serde_json::json;

use crate::support::{
    Board, Journal, ShopLoop, batch, done, path, settled, slow_batch, tools, waits, worker, workshop,
};

fn runner(store: impl EventStore) -> Runner {
    let model = ScriptedModel::from_fn(|request: &ModelRequest| match request.path.as_str() {
        "Work/0" => batch([("gated", "a")]),
        _ => done(),
    });
    Runner::new(model).store(store).clock(TestClock::default())
}

/// Starts a run, and drops its handle after it waits for a decision and its worker has released it.
async fn left(runner: &Runner, store: &MemoryStore, brain: &impl Runnable<Options = (), Result = Board>) -> RunId {
    let run = runner.start(brain, ()).await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.0"]);
    let id = run.id().clone();
    drop(run);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(store.run(&id).await.unwrap().claim.unwrap().released);
    id
}

async fn status(store: &MemoryStore, run: &RunId) -> Status {
    tokio::time::sleep(Duration::from_secs(60)).await;
    store.run(run).await.unwrap().status
}

async fn approve(runner: &Runner, run: &RunId) {
    runner.client().approve(run, &path("Work/0.0"), Actor::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn runner_continues_its_run_after_a_decision_without_a_handle() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let runner = runner(store.clone());
    let run = left(&runner, &store, &workshop(&journal, tools)).await;

    approve(&runner, &run).await;

    assert_eq!(status(&store, &run).await, Status::Completed);
    assert_eq!(journal.take(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn decision_before_the_worker_releases_the_run_is_not_lost() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let runner = runner(store.clone());
    let run = runner.start(&workshop(&journal, tools), ()).await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.0"]);
    let id = run.id().clone();

    approve(&runner, &id).await;
    drop(run);

    assert_eq!(status(&store, &id).await, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn question_expires_without_a_handle() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let runner = runner(store.clone());
    let asks = workshop(&journal, |config: ShopLoop| {
        config.tools([worker("gated", |t| t.requires_approval("it pays").approval_expires(Duration::from_secs(3600)))])
    });
    let run = left(&runner, &store, &asks).await;
    assert_eq!(status(&store, &run).await, Status::Waiting);

    tokio::time::sleep(Duration::from_secs(3600)).await;

    assert_eq!(status(&store, &run).await, Status::Completed);
    assert_eq!(journal.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn dropped_runner_leaves_its_runs_to_others() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let (one, client) = (runner(store.clone()), runner(store.clone()));
    let run = left(&one, &store, &workshop(&journal, tools)).await;
    let worker = one.worker().await.unwrap();

    drop(one);
    approve(&client, &run).await;

    assert_eq!(status(&store, &run).await, Status::Running);
    assert_eq!(store.is_lease_live(&worker).await, Ok(false), "nothing keeps the runner");
}

#[tokio::test(start_paused = true)]
async fn started_brain_is_known_to_resume_and_serve() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let shop = workshop(&journal, tools);
    let one = runner(store.clone());
    let run = left(&one, &store, &shop).await;
    drop(one);
    let other = runner(store.clone());
    approve(&other, &run).await;
    assert!(matches!(other.resume(&run).await, Err(ResumeError::NoBrain { .. })));

    let own = other.start(&shop, ()).await.unwrap();

    assert_eq!(waits(&own).await, ["Work/0.0"]);
    let _service = other.serve();
    assert_eq!(status(&store, &run).await, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn unclaimable_run_is_reported_once_in_its_log_and_row() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let shop = workshop(&journal, tools);
    let one = runner(store.clone());
    let run = left(&one, &store, &shop).await;
    drop(one);
    let (stranger, another) = (runner(store.clone()), runner(store.clone()));
    let services = [stranger.serve(), another.serve()];
    approve(&stranger, &run).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(store.run(&run).await.unwrap().refused, None, "another worker may come");

    tokio::time::sleep(Duration::from_secs(3600)).await;

    let row = store.run(&run).await.unwrap();
    assert_eq!((row.status, row.refused), (Status::Running, Some(ClaimRefusal::NoBrain)));
    let why = "the run is of the brain `Workshop`, which this runner does not know; add it with `.brain(…)`";
    assert_eq!(row.why.as_deref(), Some(why));
    let log = store.read(&run, Seq(0), usize::MAX).await.unwrap();
    let notes = log.iter().filter(|event| matches!(event.kind, EventKind::RunNotClaimed { .. })).count();
    assert_eq!(notes, 1, "however often it is tried, and by however many");

    drop(services);
    let _service = stranger.brain(shop).serve();
    assert_eq!(status(&store, &run).await, Status::Completed);
    assert_eq!(store.run(&run).await.unwrap().refused, None);
}

#[tokio::test(start_paused = true)]
async fn server_that_ends_reports_the_runs_it_has_refused() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let one = runner(store.clone());
    let run = left(&one, &store, &workshop(&journal, tools)).await;
    drop(one);
    let stranger = runner(store.clone());
    approve(&stranger, &run).await;
    let server = Server::new(stranger.client(), stranger.clone());
    let serving = async { server.events().for_each(async |_| {}).await };
    let ending = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(store.run(&run).await.unwrap().refused, None, "another worker may come");
        server.release().await;
    };

    tokio::join!(serving, ending);

    assert_eq!(store.run(&run).await.unwrap().refused, Some(ClaimRefusal::NoBrain));
}

#[tokio::test(start_paused = true)]
async fn run_with_an_open_call_that_no_code_fits_is_claimed_once() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let shop = workshop(&journal, tools);
    let one = runner(store.clone());
    let run = left(&one, &store, &shop).await;
    drop(one);
    let changed = workshop(&journal, |config: ShopLoop| {
        config.tool("gated", |t| t.requires_approval("it pays").execute(async |_: NoArgs, _| Ok("paid")))
    });
    let other = brain("Other").state(Board::default()).step("Step", async |cx| Ok(cx.state));
    let (stranger, another) = (runner(store.clone()).brain(changed.clone()), runner(store.clone()).brain(changed));
    let another = another.brain(other);
    let services = [stranger.serve(), another.serve()];
    approve(&stranger, &run).await;

    tokio::time::sleep(Duration::from_secs(3600)).await;

    let log = store.read(&run, Seq(0), usize::MAX).await.unwrap();
    let names: Vec<_> = log.iter().rev().take(4).map(|event| event.kind.name()).collect();
    assert_eq!(names, ["RUN_NOT_CLAIMED", "RUN_RELEASED", "RUN_CLAIMED", "LOOP_APPROVAL_DECIDED"]);
    assert_eq!(store.run(&run).await.unwrap().refused, Some(ClaimRefusal::Changed));
    drop(services);
    let resumed = runner(store.clone()).brain(shop).resume(&run).await.unwrap();
    assert!(matches!(settled(&resumed).await, Settled::Completed(_)));
}

#[tokio::test(start_paused = true)]
async fn log_of_a_run_claimed_elsewhere_is_not_read() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let shop = workshop(&journal, tools);
    let model = ScriptedModel::from_fn(|_: &ModelRequest| slow_batch([("safe", "a", 500), ("read", "b", 300)]));
    let one = Runner::new(model).store(store.clone()).clock(TestClock::default());
    let run = one.start(&shop, ()).await.unwrap();
    let reads = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&reads);
    let watched = FaultyStore::new(store.clone(), |_, _| None).slowly(move |method| {
        counted.fetch_add(u64::from(matches!(method, "read" | "snapshot")), Ordering::Relaxed);
        None
    });
    let other = runner(watched).brain(&shop);
    let _service = other.serve();

    tokio::time::sleep(Duration::from_secs(10)).await;

    let resumed = other.resume(run.id()).await;
    assert!(matches!(resumed, Err(ResumeError::Claimed { .. })), "{resumed:?}");
    assert!(store.run(run.id()).await.unwrap().next > Seq(100), "it continues meanwhile");
    assert_eq!(reads.load(Ordering::Relaxed), 0);
    run.cancel("enough").await.unwrap();
    assert_eq!(run.document()["done"][0], json!("b"));
}

#[tokio::test(start_paused = true)]
async fn decision_right_after_the_last_handle_is_dropped_is_not_lost() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let runner = runner(store.clone());
    let run = runner.start(&workshop(&journal, tools), ()).await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.0"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let id = run.id().clone();

    drop(run);
    approve(&self::runner(store.clone()), &id).await;

    assert_eq!(status(&store, &id).await, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn run_with_many_dropped_handles_is_continued_once() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let (runner, shop) = (runner(store.clone()), workshop(&journal, tools));
    let start = Start { id: Some(SignalId::from("shop")), ..Start::default() };
    for _ in 0..3 {
        let run = runner.start_with(&shop, (), start.clone()).await.unwrap();
        assert_eq!(waits(&run).await, ["Work/0.0"]);
        drop(run);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let run = RunId::new("shop");

    approve(&runner, &run).await;

    assert_eq!(status(&store, &run).await, Status::Completed);
    let log = store.read(&run, Seq(0), usize::MAX).await.unwrap();
    let claims = log.iter().filter(|event| matches!(event.kind, EventKind::RunClaimed { .. })).count();
    assert_eq!((claims, journal.take()), (2, vec!["a".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn each_of_many_runs_without_handles_is_continued() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let (runner, shop) = (runner(store.clone()), workshop(&journal, tools));
    let mut runs = Vec::new();
    for _ in 0..40 {
        runs.push(runner.start(&shop, ()).await.unwrap().id().clone());
    }
    tokio::time::sleep(Duration::from_secs(60)).await;

    for run in &runs {
        approve(&runner, run).await;
    }

    for run in &runs {
        assert_eq!(status(&store, run).await, Status::Completed, "{run}");
    }
}

fn unavailable() -> StoreError {
    StoreError::Failed { message: "the store is unavailable".to_owned() }
}

/// Starts a run that waits for a decision, and drops its handle after its worker has released it.
async fn asked(runner: &Runner, brain: &Brain<(), Board>) -> RunId {
    let run = runner.start(brain, ()).await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.0"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let id = run.id().clone();
    drop(run);
    id
}

#[tokio::test(start_paused = true)]
async fn decision_during_a_check_without_a_handle_is_not_lost() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let slow = FaultyStore::new(store.clone(), |_, _| None)
        .slowly(|method| (method == "run").then_some(Duration::from_secs(10)));
    let runner = runner(slow);
    let run = asked(&runner, &workshop(&journal, tools)).await;
    // The row that is checked now says that the run waits.
    tokio::time::sleep(Duration::from_secs(5)).await;

    approve(&self::runner(store.clone()), &run).await;

    assert_eq!(status(&store, &run).await, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn row_that_cannot_be_read_without_a_handle_is_read_again() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let fails = Arc::new(AtomicU64::new(0));
    let left = Arc::clone(&fails);
    let failing = FaultyStore::new(store.clone(), |_, _| None).reading(move |method| {
        let fails = method == "run" && left.load(Ordering::Relaxed) > 0;
        fails.then(|| {
            left.fetch_sub(1, Ordering::Relaxed);
            unavailable()
        })
    });
    let runner = runner(failing);
    let run = asked(&runner, &workshop(&journal, tools)).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    fails.store(3, Ordering::Relaxed);

    approve(&self::runner(store.clone()), &run).await;

    assert_eq!(status(&store, &run).await, Status::Completed);
    assert_eq!(fails.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn claim_that_fails_without_a_handle_is_tried_again_after_a_pause() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let fails = Arc::new(AtomicU64::new(0));
    let left = Arc::clone(&fails);
    let failing = FaultyStore::new(store.clone(), move |_, append| {
        let claims = append.events.iter().any(|event| matches!(event.kind, EventKind::RunClaimed { .. }));
        let fails = claims && left.load(Ordering::Relaxed) > 0;
        fails.then(|| {
            left.fetch_sub(1, Ordering::Relaxed);
            Fault::Refused(unavailable())
        })
    });
    let runner = runner(failing);
    let run = asked(&runner, &workshop(&journal, tools)).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    fails.store(3, Ordering::Relaxed);

    approve(&runner, &run).await;
    tokio::time::sleep(Duration::from_secs(5)).await;

    assert_eq!(store.run(&run).await.unwrap().status, Status::Running, "pauses of one, two and four seconds");
    assert_eq!(status(&store, &run).await, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn signal_ends_the_pause_of_a_run_without_a_handle() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let fails = Arc::new(AtomicBool::new(false));
    let is_failing = Arc::clone(&fails);
    let failing = FaultyStore::new(store.clone(), move |_, append| {
        let claims = append.events.iter().any(|event| matches!(event.kind, EventKind::RunClaimed { .. }));
        (claims && is_failing.load(Ordering::Relaxed)).then(|| Fault::Refused(unavailable()))
    });
    let runner = runner(failing);
    let run = asked(&runner, &workshop(&journal, tools)).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    fails.store(true, Ordering::Relaxed);
    approve(&runner, &run).await;
    // The seventh pause, of 64 seconds, has begun.
    tokio::time::sleep(Duration::from_secs(70)).await;
    fails.store(false, Ordering::Relaxed);
    assert_eq!(store.run(&run).await.unwrap().status, Status::Running);

    runner.client().pause(&run).await.unwrap();
    runner.client().resume(&run).await.unwrap();

    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(store.run(&run).await.unwrap().status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn run_without_a_handle_is_continued_after_the_death_of_its_worker() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let shop = workshop(&journal, tools);
    let slow = FaultyStore::new(store.clone(), |_, _| None)
        .slowly(|method| (method == "run").then_some(Duration::from_secs(2)));
    let one = runner(slow);
    let run = asked(&one, &shop).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let stuck = FaultyStore::new(store.clone(), |_, append| {
        let claims = append.events.iter().any(|event| matches!(event.kind, EventKind::RunClaimed { .. }));
        (!claims).then_some(Fault::Slow(Duration::from_secs(3600)))
    });
    let other = runner(stuck).brain(&shop);
    let _service = other.serve();
    approve(&runner(store.clone()), &run).await;
    assert_eq!(status(&store, &run).await, Status::Running, "its worker is alive");

    store.declare_dead(&other.worker().await.unwrap());

    assert_eq!(status(&store, &run).await, Status::Completed);
}
