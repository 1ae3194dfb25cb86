//! A database that restarts, and runs that no worker serves.

use std::time::Duration;

use positronic_core::record::Status;
use positronic_core::store::prelude::*;

use crate::brains::COUNTS;
use crate::checks::check;
use crate::cluster::{Cluster, until};
use crate::server;

#[tokio::test(flavor = "multi_thread")]
async fn restarts_of_the_database_in_the_middle_of_appends_interrupt_nothing() {
    const RESTARTS: usize = 4;
    let Some(mut server) = server::own_server() else { return };
    let cluster = Cluster::on(&server.database(), Duration::from_secs(20)).await;
    let mut workers = [cluster.boot().await, cluster.boot().await, cluster.boot().await];
    let mut runs = Vec::new();
    for number in 0..4 {
        for (index, worker) in workers.iter_mut().enumerate() {
            runs.push(worker.start_run(&format!("run-{number}-{index}"), "Counter").await);
        }
    }

    for restart in 1..=RESTARTS {
        // Each time when a part of the calls has begun.
        let calls = runs.len() * COUNTS * restart / (RESTARTS + 1);
        until("calls end", async || (cluster.ledger.all().len() >= 2 * calls).then_some(())).await;
        server.restart();
    }

    cluster.complete(&runs).await;
    let figures = check(&cluster, &runs).await;
    assert_eq!((figures.interrupted, figures.calls), (0, runs.len() * COUNTS), "{figures:?}");
    assert_eq!(figures.claims, runs.len(), "each worker has kept its runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn approval_while_no_worker_is_alive_waits_for_the_next_one() {
    let Some(cluster) = Cluster::new(Duration::from_secs(2)).await else { return };
    let run = {
        let mut worker = cluster.boot().await;
        let run = worker.start_run("run", "Shop").await;
        cluster.reaches(&run, Status::Waiting).await;
        run
    };

    assert_eq!(cluster.approve(&run).await, 1);

    assert_eq!(cluster.store.run(&run).await.unwrap().status, Status::Running);
    let worker = cluster.boot().await;
    cluster.reaches(&run, Status::Completed).await;
    assert!(cluster.ledger.of(&run, "Work/1.0").iter().all(|entry| entry.process == worker.id()));
    let figures = check(&cluster, std::slice::from_ref(&run)).await;
    assert_eq!((figures.interrupted, figures.repeated), (0, 0), "{figures:?}");
}
