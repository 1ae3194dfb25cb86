//! Leases of workers, and the queue of runs with work.

use std::collections::BTreeSet;
use std::time::Duration;

use positronic_core::record::{Claim, Epoch, RunSummary, Seq, Status, Timestamp};
use positronic_core::store::{Deferral, DueFilter, EventStore, Lease, StoreError};

use super::Sample;

/// How long a test waits for a lease to lapse; longer than any time to live that a store has in tests.
const PATIENCE: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_hours(1);

/// Waits until a lease that was dropped or not renewed has lapsed: at once where a store notices the death of a worker.
async fn lapsed(store: &impl EventStore, owner: &str) {
    let lapsed = async {
        while store.is_lease_live(owner).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, lapsed).await.expect("the lease lapses");
}

/// A lease is live for every handle until it lapses, its name is not used again, and a lapsed lease cannot be renewed.
pub async fn lease_is_live_until_it_lapses<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let first = store.acquire_lease().await.unwrap();
    let second = other.acquire_lease().await.unwrap();
    assert_ne!(first.owner(), second.owner());
    for owner in [first.owner(), second.owner()] {
        assert_eq!(store.is_lease_live(owner).await, Ok(true));
        assert_eq!(other.is_lease_live(owner).await, Ok(true));
        assert_eq!(store.renew_lease(owner).await, Ok(()));
    }

    let (owner, expires) = (first.owner().to_owned(), first.ttl().is_some());
    drop(first);
    lapsed(&other, &owner).await;

    assert_eq!(store.is_lease_live(&owner).await, Ok(false));
    if expires {
        assert_eq!(store.renew_lease(&owner).await, Err(StoreError::LeaseLapsed { owner: owner.clone() }));
        assert_eq!(store.is_lease_live(&owner).await, Ok(false));
    }
    assert_ne!(store.acquire_lease().await.unwrap().owner(), owner);
    for name in ["", "no-worker", "../lock", "lock", "0-0", "\0"] {
        assert_eq!(store.is_lease_live(name).await, Ok(false), "{name:?}");
    }
}

fn filter(lease: &Lease, code: &str) -> DueFilter {
    DueFilter::builder().now(Timestamp(9_000_000)).owner(lease.owner()).code(code).limit(100).reserve(HOUR).build()
}

fn changed(mut filter: DueFilter, change: impl FnOnce(&mut DueFilter)) -> DueFilter {
    change(&mut filter);
    filter
}

async fn due(store: &impl EventStore, filter: &DueFilter) -> Vec<String> {
    store.due(filter).await.unwrap().iter().map(|due| due.summary.run.to_string()).collect()
}

async fn run(store: &impl EventStore, run: &str, row: impl FnOnce(&mut RunSummary)) -> Sample {
    Sample::new(run).says("one").row(row).appended(store).await
}

fn claimed_by(owner: &str) -> Option<Claim> {
    Some(Claim { epoch: Epoch(1), owner: owner.into(), released: false })
}

/// A run is due if it has work and no worker with a live lease has claimed it; the one that is due earliest comes first.
pub async fn due_runs_are_free_ones_with_work<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let (worker, gone) = (store.acquire_lease().await.unwrap(), store.acquire_lease().await.unwrap());
    let dead = gone.owner().to_owned();
    drop(gone);
    lapsed(&store, &dead).await;
    let waits = |wake| move |row: &mut RunSummary| (row.status, row.wake) = (Status::Waiting, Some(Timestamp(wake)));
    run(&store, "waits-long", waits(9_000_001)).await;
    run(&store, "late", waits(8_000_000)).await;
    run(&store, "early", waits(7_000_000)).await;
    run(&store, "running", |_| {}).await;
    run(&store, "over", |row| row.status = Status::Completed).await;
    run(&store, "paused", |row| row.status = Status::Paused).await;
    run(&store, "claimed", |row| row.claim = claimed_by(worker.owner())).await;
    run(&store, "orphaned", |row| row.claim = claimed_by(&dead)).await;
    let released = claimed_by(worker.owner()).map(|claim| Claim { released: true, ..claim });
    run(&store, "released", |row| row.claim = released).await;
    run(&store, "mail", |row| (row.status, row.mail, row.claim) = (Status::Waiting, true, claimed_by(&dead))).await;

    let only = changed(filter(&worker, "a"), |filter| {
        filter.runs = vec!["early".into(), "claimed".into(), "unknown".into()];
    });
    assert_eq!(due(&store, &only).await, ["early"]);
    let two = changed(filter(&worker, "a"), |filter| filter.limit = 2);
    let first: BTreeSet<_> = due(&store, &two).await.into_iter().collect();
    let rest = due(&store, &filter(&worker, "a")).await;

    assert_eq!(first.len(), 2);
    let all: BTreeSet<_> = first.iter().chain(&rest).map(String::as_str).collect();
    assert_eq!(all, BTreeSet::from(["running", "orphaned", "released", "mail", "late"]));
    assert_eq!(rest.last().map(String::as_str), Some("late"), "a wait comes after the runs without one");
}

/// A returned run is not returned again, until its reservation ends or a claim ends it.
pub async fn due_run_is_reserved_for_one_worker<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let (one, two) = (store.acquire_lease().await.unwrap(), other.acquire_lease().await.unwrap());
    let sample = run(&store, "run-1", |_| {}).await;
    let next = sample.append.expected;

    assert_eq!(due(&store, &filter(&one, "a")).await, ["run-1"]);
    assert_eq!(due(&other, &filter(&two, "a")).await, [""; 0]);
    assert_eq!(due(&store, &filter(&one, "a")).await, [""; 0]);

    store.defer(&sample.run, next, &Deferral::Released).await.unwrap();
    let brief = changed(filter(&two, "a"), |filter| filter.reserve = Duration::ZERO);
    assert_eq!(due(&other, &brief).await, ["run-1"]);
    assert_eq!(due(&other, &filter(&two, "a")).await, ["run-1"]);
    _ = sample.claimed(1).appended(&store).await;
    assert_eq!(due(&store, &filter(&one, "a")).await, ["run-1"]);
}

/// Workers that look at the same time get different runs, and each run is returned once.
pub async fn many_workers_reserve_each_run_once<S: EventStore>(open: impl Fn() -> S) {
    const RUNS: usize = 60;
    let store = open();
    for number in 0..RUNS {
        run(&store, &format!("run-{number}"), |_| {}).await;
    }
    let workers = (0..4).map(|_| {
        let store = open();
        tokio::spawn(async move {
            let lease = store.acquire_lease().await.unwrap();
            let filter = changed(filter(&lease, "a"), |filter| filter.limit = 7);
            let mut got = Vec::new();
            for _ in 0..RUNS {
                got.extend(due(&store, &filter).await);
            }
            // The lease must outlive the last look of the others.
            (got, lease)
        })
    });
    let mut all = Vec::new();
    let mut leases = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        let (got, lease) = worker.await.unwrap();
        all.extend(got);
        leases.push(lease);
    }
    assert_eq!(all.len(), RUNS);
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), RUNS);
}

/// The runs that a dead worker had reserved are due at the end of its lease.
pub async fn reservation_ends_with_its_lease<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let (dies, stays) = (store.acquire_lease().await.unwrap(), other.acquire_lease().await.unwrap());
    run(&store, "run-1", |_| {}).await;
    assert_eq!(due(&store, &filter(&dies, "a")).await, ["run-1"]);

    let owner = dies.owner().to_owned();
    drop(dies);
    lapsed(&other, &owner).await;

    // Its own lease may lapse as well meanwhile: no test renews it.
    assert_eq!(due(&other, &filter(&stays, "a")).await, ["run-1"]);
}

/// A pause hides a run from all workers, until it is over or a signal arrives; the count of failures stays.
pub async fn paused_run_is_due_after_its_pause_or_a_signal<S: EventStore>(open: impl Fn() -> S) {
    let (store, lease) = (open(), open().acquire_lease().await.unwrap());
    let mut sample = run(&store, "run-1", |_| {}).await;
    let paused = |failures, pause| Deferral::Paused { failures, pause };

    store.defer(&sample.run, sample.append.expected, &paused(1, HOUR)).await.unwrap();
    assert_eq!(due(&store, &filter(&lease, "a")).await, [""; 0]);
    let again = changed(filter(&lease, "a"), |filter| {
        (filter.paused, filter.reserve) = (true, Duration::ZERO);
    });
    assert_eq!(due(&store, &again).await, ["run-1"]);

    store.defer(&sample.run, sample.append.expected, &paused(2, Duration::ZERO)).await.unwrap();
    let found = store.due(&filter(&lease, "a")).await.unwrap();
    assert_eq!(found.iter().map(|due| due.failures).collect::<Vec<_>>(), [2]);

    store.defer(&sample.run, sample.append.expected, &paused(3, HOUR)).await.unwrap();
    sample = sample.not_claimed().appended(&store).await;
    assert_eq!(due(&store, &filter(&lease, "a")).await, [""; 0], "a note is not a signal");
    _ = sample.says("signal").appended(&store).await;
    let found = store.due(&filter(&lease, "a")).await.unwrap();
    assert_eq!(found.iter().map(|due| due.failures).collect::<Vec<_>>(), [3]);
}

/// A refused run is due for workers with other code only, until its log grows by a signal.
pub async fn refused_run_is_hidden_from_the_same_code<S: EventStore>(open: impl Fn() -> S) {
    let (store, lease) = (open(), open().acquire_lease().await.unwrap());
    let sample = run(&store, "run-1", |_| {}).await;
    let brief = |code| changed(filter(&lease, code), |filter| filter.reserve = Duration::ZERO);
    let refused = |code: &str| Deferral::Refused { code: code.to_owned() };
    assert_eq!(due(&store, &filter(&lease, "a")).await, ["run-1"]);

    store.defer(&sample.run, sample.append.expected, &refused("a")).await.unwrap();
    assert_eq!(due(&store, &brief("a")).await, [""; 0]);
    assert_eq!(due(&store, &brief("b")).await, ["run-1"], "the refusal ended the reservation");
    store.defer(&sample.run, sample.append.expected, &refused("b")).await.unwrap();
    for code in ["a", "b"] {
        assert_eq!(due(&store, &brief(code)).await, [""; 0]);
    }
    assert_eq!(due(&store, &brief("c")).await, ["run-1"]);
    store.defer(&sample.run, sample.append.expected, &refused(lease.owner())).await.unwrap();
    assert_eq!(due(&store, &brief("c")).await, [""; 0], "the worker itself has refused it");

    _ = sample.says("signal").appended(&store).await;
    assert_eq!(due(&store, &brief("a")).await, ["run-1"]);
}

/// A deferral that was decided before the last append has no effect.
pub async fn deferral_of_a_changed_run_is_ignored<S: EventStore>(open: impl Fn() -> S) {
    let (store, lease) = (open(), open().acquire_lease().await.unwrap());
    let sample = run(&store, "run-1", |_| {}).await;
    let next = sample.append.expected;
    let run = sample.run.clone();
    _ = sample.says("signal").appended(&store).await;

    for deferral in [Deferral::Paused { failures: 1, pause: HOUR }, Deferral::Refused { code: "a".to_owned() }] {
        store.defer(&run, next, &deferral).await.unwrap();
    }
    store.defer(&"unknown".into(), Seq(0), &Deferral::Released).await.unwrap();

    assert_eq!(due(&store, &filter(&lease, "a")).await, ["run-1"]);
}

/// The position of a durable sink begins at 0 with a claim, never goes back, and goes with its run.
pub async fn sink_positions_are_kept<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let position = async |run: &str| other.sink_position(&run.into(), "audit").await.unwrap();
    let run = Sample::new("run-1").says("one").appended(&store).await;
    store.set_sink_position(&run.run, "audit", Seq(1), None).await.unwrap();
    assert_eq!(position("run-1").await, None, "no claim has named the sink");

    let run = run.fed(1, "anyone", "audit").appended(&store).await;
    assert_eq!(position("run-1").await, Some(Seq(0)));
    store.set_sink_position(&run.run, "audit", Seq(2), None).await.unwrap();
    store.set_sink_position(&run.run, "audit", Seq(1), Some("anyone")).await.unwrap();
    store.set_sink_position(&run.run, "another", Seq(1), None).await.unwrap();
    let run = run.fed(2, "another", "audit").row(|row| row.status = Status::Completed).appended(&store).await;

    assert_eq!(position("run-1").await, Some(Seq(2)));
    assert_eq!(position("run-2").await, None);
    assert_eq!(other.sink_position(&run.run, "another").await.unwrap(), None);
    assert_eq!(store.remove(std::slice::from_ref(&run.run)).await, Ok(1));
    assert_eq!(position("run-1").await, None);
    _ = Sample::new("run-1").says("anew").appended(&store).await;
    assert_eq!(position("run-1").await, None);
}

/// The durable sinks that a worker fed when its lease ended are taken by another one, each once.
pub async fn one_worker_takes_the_sinks_of_a_dead_one<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let (first, second) = (store.acquire_lease().await.unwrap(), store.acquire_lease().await.unwrap());
    let owner = first.owner().to_owned();
    for run in ["run-1", "run-2", "run-3"] {
        _ = Sample::new(run).fed(1, &owner, "audit").appended(&store).await;
    }
    // It has all events of this one, but not of that one.
    store.set_sink_position(&"run-2".into(), "audit", Seq(1), Some(&owner)).await.unwrap();
    store.set_sink_position(&"run-3".into(), "audit", Seq(0), Some(&owner)).await.unwrap();
    assert_eq!(store.take_sink("audit", second.owner(), 10).await.unwrap(), []);

    drop(first);
    lapsed(&store, &owner).await;

    assert_eq!(store.take_sink("another", second.owner(), 10).await.unwrap(), []);
    assert_eq!(store.take_sink("audit", second.owner(), 1).await.unwrap().len(), 1);
    assert_eq!(store.take_sink("audit", second.owner(), 10).await.unwrap().len(), 1);
    assert_eq!(store.take_sink("audit", second.owner(), 10).await.unwrap(), []);
}
