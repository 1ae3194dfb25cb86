//! A rolling deployment: workers of two versions.

use std::time::Duration;

use positronic_core::record::{ClaimRefusal, EventKind, Status};

use crate::checks::{check, log};
use crate::cluster::{Cluster, Process, until};

#[tokio::test(flavor = "multi_thread")]
async fn old_runs_end_on_old_workers_and_new_ones_on_new_workers() {
    let Some(cluster) = Cluster::new(Duration::from_secs(2)).await else { return };
    let old = crate::worker::Setup { only: true, ..cluster.setup.clone() };
    let new = crate::worker::Setup { version: 2, ..cluster.setup.clone() };
    let mut first = Process::boot(&old).await;
    let (one, left) = (first.start_run("one", "Shop").await, first.start_run("left", "Shop").await);
    cluster.reaches(&one, Status::Waiting).await;
    cluster.reaches(&left, Status::Waiting).await;
    let mut second = Process::boot(&new).await;
    let two = second.start_run("two", "Shop").await;
    cluster.reaches(&two, Status::Waiting).await;
    assert_eq!((cluster.row(&one).await.version, cluster.row(&two).await.version), (1, 2));

    // Each run has work, and both workers see it.
    cluster.complete(&[one.clone(), two.clone()]).await;

    for (run, worker) in [(&one, &first), (&two, &second)] {
        let entries = cluster.ledger.of(run, "Work/1.0");
        assert!(entries.iter().all(|entry| entry.process == worker.id()), "{entries:?}");
    }

    // Without an old worker, the list of runs says why one is not served.
    first.kill();
    assert_eq!(cluster.approve(&left).await, 1);
    let refused = async || cluster.row(&left).await.refused;
    assert_eq!(until("the run is refused", refused).await, ClaimRefusal::Changed);
    let notes = |log: &[positronic_core::record::Event]| {
        log.iter().filter(|event| matches!(event.kind, EventKind::RunNotClaimed { .. })).count()
    };
    assert_eq!(notes(&log(&cluster, &left).await), 1);
    assert!(cluster.ledger.of(&left, "Work/1.0").is_empty());

    let third = Process::boot(&old).await;

    cluster.reaches(&left, Status::Completed).await;
    assert!(cluster.ledger.of(&left, "Work/1.0").iter().all(|entry| entry.process == third.id()));
    assert_eq!(cluster.row(&left).await.refused, None);
    check(&cluster, &[one, two, left]).await;
}
