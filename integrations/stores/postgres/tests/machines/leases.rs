//! Workers that die, are stopped, or claim one run at once.

use std::time::Duration;

use positronic_core::record::{Event, EventKind, RunId, Status, ToolResult};

use crate::checks::{calls, check, log};
use crate::cluster::{Cluster, Process, call};
use crate::ledger::What;
use crate::proxy::Proxy;

const TTL: Duration = Duration::from_secs(3);

/// Returns the result of a call.
fn result(log: &[Event], path: &str) -> ToolResult {
    calls(log).into_iter().find(|made| made.path == call(path)).unwrap().result
}

fn claims(log: &[Event]) -> Vec<&Event> {
    log.iter().filter(|event| matches!(event.kind, EventKind::RunClaimed { .. })).collect()
}

/// Starts runs on the first of three workers, and waits until it is in the middle of the first calls of each.
async fn three_in_the_middle(cluster: &Cluster) -> ([Process; 3], Vec<RunId>) {
    cluster.ledger.hold(true);
    let mut workers = [cluster.boot().await, cluster.boot().await, cluster.boot().await];
    let runs = begun(cluster, &mut workers[0]).await;
    (workers, runs)
}

async fn begun(cluster: &Cluster, worker: &mut Process) -> Vec<RunId> {
    let mut runs = Vec::new();
    for number in 0..3 {
        let run = worker.start_run(&format!("run-{number}"), "Shop").await;
        cluster.begins(&run, "Work/0.0", 1).await;
        cluster.begins(&run, "Work/0.1", 1).await;
        runs.push(run);
    }
    runs
}

/// The processes that have begun a call, in order.
fn beginners(cluster: &Cluster, run: &RunId, path: &str) -> Vec<u32> {
    let entries = cluster.ledger.of(run, path).into_iter();
    entries.filter(|entry| entry.what == What::Begin).map(|entry| entry.process).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn others_continue_the_runs_of_a_killed_worker() {
    let Some(cluster) = Cluster::new(TTL).await else { return };
    let (mut workers, runs) = three_in_the_middle(&cluster).await;
    let (dead, before) = (workers[0].id(), log(&cluster, &runs[0]).await.len());

    workers[0].kill();

    let killed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    for run in &runs {
        cluster.begins(run, "Work/0.0", 2).await;
    }
    cluster.ledger.hold(false);
    cluster.complete(&runs).await;
    check(&cluster, &runs).await;
    for run in &runs {
        let log = log(&cluster, run).await;
        let notes = beginners(&cluster, run, "Work/0.0");
        assert!(notes[0] == dead && notes[1] != dead, "{notes:?}");
        assert_eq!(beginners(&cluster, run, "Work/0.1"), [dead]);
        assert!(matches!(result(&log, "Work/0.0"), ToolResult::Success { .. }));
        assert!(matches!(result(&log, "Work/0.1"), ToolResult::Interrupted { .. }));
        // The last renewal was at most a quarter of the lease before.
        let claimed = claims(&log).into_iter().find(|event| event.seq.index() >= before.min(log.len())).unwrap();
        let waited = u128::try_from(claimed.at.0).unwrap().saturating_sub(killed.as_micros());
        assert!(waited >= (TTL / 2).as_micros(), "{waited} µs after its end, its lease is taken");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_that_is_stopped_for_longer_than_its_lease_is_fenced() {
    let Some(cluster) = Cluster::new(TTL).await else { return };
    let (workers, runs) = three_in_the_middle(&cluster).await;
    let frozen = workers[0].id();

    let stopped = workers[0].stop();
    for run in &runs {
        cluster.begins(run, "Work/0.0", 2).await;
    }
    drop(stopped);

    for run in &runs {
        let stopped = workers[0].says(&format!("event stopped {run}: ")).await;
        assert!(stopped.contains("has lost its lease"), "{stopped}");
        assert!(stopped.contains("has abandoned `Work/0.0`, `Work/0.1`, whose outcome is unknown"), "{stopped}");
    }
    cluster.ledger.hold(false);
    cluster.complete(&runs).await;
    check(&cluster, &runs).await;
    for run in &runs {
        let pays = cluster.ledger.of(run, "Work/0.1");
        assert_eq!(
            pays.iter().map(|entry| (entry.process, entry.what)).collect::<Vec<_>>(),
            [(frozen, What::Begin), (frozen, What::Abort)]
        );
        assert!(matches!(result(&log(&cluster, run).await, "Work/0.1"), ToolResult::Interrupted { .. }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_that_is_stopped_for_less_than_its_lease_keeps_its_effects() {
    let Some(cluster) = Cluster::new(Duration::from_secs(20)).await else { return };
    let (workers, runs) = three_in_the_middle(&cluster).await;

    let stopped = workers[0].stop();
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(stopped);

    cluster.ledger.hold(false);
    cluster.complete(&runs).await;
    let figures = check(&cluster, &runs).await;
    assert_eq!((figures.interrupted, figures.repeated), (0, 0), "{figures:?}");
    for run in &runs {
        assert_eq!(beginners(&cluster, run, "Work/0.1"), [workers[0].id()]);
    }
}

/// The outcome of an effect of a worker that is stopped in the middle of it is either recorded before another worker
/// claims the run, or not at all.
#[tokio::test(flavor = "multi_thread")]
async fn effect_that_ends_after_the_lease_is_not_recorded() {
    let Some(cluster) = Cluster::new(TTL).await else { return };
    let (workers, runs) = three_in_the_middle(&cluster).await;
    let stopped = workers[0].stop();
    for run in &runs {
        cluster.begins(run, "Work/0.0", 2).await;
    }
    // Its tools go on when it does.
    cluster.ledger.hold(false);
    cluster.complete(&runs).await;

    drop(stopped);

    for run in &runs {
        let stopped = workers[0].says(&format!("event stopped {run}: ")).await;
        assert!(stopped.contains("`Work/0.1`, whose outcome is unknown"), "{stopped}");
        let log = log(&cluster, run).await;
        assert!(matches!(result(&log, "Work/0.1"), ToolResult::Interrupted { .. }));
    }
    check(&cluster, &runs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_that_is_cut_off_stops_before_another_one_continues() {
    let Some(cluster) = Cluster::new(TTL).await else { return };
    let port = cluster.setup.url.rsplit(':').next().unwrap().split('/').next().unwrap().parse().unwrap();
    let line = Proxy::to(port).await;
    let mut behind = cluster.setup.clone();
    behind.url = behind.url.replace(&port.to_string(), &line.port.to_string());
    cluster.ledger.hold(true);
    let mut first = Process::boot(&behind).await;
    let runs = begun(&cluster, &mut first).await;
    let before = first.ask("worker").await;
    let _others = [cluster.boot().await, cluster.boot().await];

    line.cut(true);

    for run in &runs {
        let stopped = first.says(&format!("event stopped {run}: ")).await;
        assert!(stopped.contains("has lost its lease and has abandoned `Work/0.0`, `Work/0.1`"), "{stopped}");
        cluster.begins(run, "Work/0.0", 2).await;
        let notes: Vec<_> =
            cluster.ledger.of(run, "Work/0.0").iter().map(|entry| (entry.process, entry.what)).collect();
        assert_eq!(notes[..2], [(first.id(), What::Begin), (first.id(), What::Abort)]);
        assert!(notes[2].0 != first.id() && notes[2].1 == What::Begin, "{notes:?}");
    }
    cluster.ledger.hold(false);
    cluster.complete(&runs).await;
    check(&cluster, &runs).await;

    line.cut(false);

    let again = first.start_run("again", "Shop").await;
    cluster.complete(std::slice::from_ref(&again)).await;
    let log = log(&cluster, &again).await;
    let EventKind::RunClaimed { owner, .. } = &claims(&log)[0].kind else { unreachable!() };
    assert!(*owner == first.ask("worker").await && *owner != before, "{owner} and {before}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_machines_that_claim_a_run_at_once_gets_it() {
    const ROUNDS: usize = 40;
    let Some(mut cluster) = Cluster::new(Duration::from_secs(20)).await else { return };
    cluster.setup.serves = false;
    let mut runs = Vec::new();
    {
        let mut starter = cluster.boot().await;
        for number in 0..ROUNDS {
            runs.push(starter.start_run(&format!("run-{number}"), "Shop").await);
        }
        for run in &runs {
            cluster.reaches(run, Status::Waiting).await;
        }
        starter.ask("release").await;
    }
    let (mut one, mut two) = (cluster.boot().await, cluster.boot().await);
    for run in &runs {
        assert_eq!(cluster.approve(run).await, 1);
        let command = format!("resume {run}");
        one.tell(&command);
        two.tell(&command);
        for worker in [&one, &two] {
            worker.says(&format!("answer {command}: ")).await;
        }
    }
    cluster.complete(&runs).await;
    let figures = check(&cluster, &runs).await;
    // One when it started, and one after the approval.
    assert_eq!((figures.claims, figures.interrupted, figures.repeated), (2 * ROUNDS, 0, 0), "{figures:?}");
    for run in &runs {
        let ships = beginners(&cluster, run, "Work/1.0");
        assert!(ships == [one.id()] || ships == [two.id()], "{ships:?}");
    }
}
