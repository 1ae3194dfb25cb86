//! Lists over 100,000 waiting runs, and the queue with 10,000 runs due.

use std::time::{Duration, Instant};

use futures::future::join_all;
use positronic_core::record::{Gate, Path, Pending, PendingKind, RunId, Seq, Status, Timestamp};
use positronic_core::store::prelude::*;
use positronic_core::store::{DueFilter, PendingFilter, RunFilter};
use positronic_store_suite::Sample;
use serde_json::json;
use sqlx_core::executor::Executor as _;

use crate::{database, median, server};

const CALLS: usize = 41;

pub(crate) async fn measure() {
    let database = database();
    let store = database.open().await;
    fill(&database, &store).await;
    println!("\n100,000 waiting runs, 10,000 runs due; ms, median of {CALLS} (fastest)");

    let first = PendingFilter::builder().person(true).limit(100).build();
    print("the 100 items that wait longest", timed(async || store.pending(&first).await.unwrap().len()).await);
    let items = store.pending(&PendingFilter::builder().person(true).limit(50_000).build()).await.unwrap();
    let page = PendingFilter::builder().person(true).after(items[49_999].cursor()).limit(100).build();
    print("100 items after the 50,000th", timed(async || store.pending(&page).await.unwrap().len()).await);
    let one = PendingFilter::builder().run(RunId::from("run-77777")).build();
    print("the items of one run", timed(async || store.pending(&one).await.unwrap().len()).await);
    let rows = RunFilter::builder().limit(100).build();
    print("the last 100 rows", timed(async || store.runs(&rows).await.unwrap().len()).await);

    let lease = store.acquire_lease().await.unwrap();
    let filter = DueFilter::builder().now(Timestamp(9)).owner(lease.owner()).code("a").limit(32);
    let filter = filter.reserve(Duration::from_secs(60)).build();
    let due = timed(async || store.due(&filter).await.unwrap().len()).await;
    print("32 due runs, one worker", due);

    let mut workers = Vec::new();
    for _ in 0..3 {
        let store = database.open().await;
        let lease = store.acquire_lease().await.unwrap();
        workers.push((store, lease));
    }
    let works = workers.iter().map(|(store, lease)| async move {
        let filter = DueFilter::builder().now(Timestamp(9)).owner(lease.owner()).code("a").limit(32);
        let filter = filter.reserve(Duration::from_secs(60)).build();
        timed(async || store.due(&filter).await.unwrap().len()).await
    });
    print("32 due runs, each of three workers at once", join_all(works).await.concat());

    let mut none = filter;
    none.now = Timestamp(0);
    print("no due run", timed(async || store.due(&none).await.unwrap().len() + 1).await);
}

/// Makes one run, and copies it within the server.
async fn fill(database: &server::Database, store: &positronic_postgres::PostgresStore) {
    let approval = Pending {
        call: Path::parse("Loop/0.0").unwrap(),
        tool: "refund".to_owned(),
        arguments: std::sync::Arc::new(json!({ "amount": 120, "reason": "It leaks. ".repeat(28) })),
        since: Seq(0),
        kind: PendingKind::Approval {
            gate: Gate { reason: "more than 100".to_owned(), valid_for: None, editable: true },
            expires: None,
        },
    };
    let first = Sample::new("run-0").says("one").waits(vec![approval]);
    let first = first.row(|row| (row.status, row.wake) = (Status::Waiting, None));
    _ = first.appended(store).await;
    let mut db = database.connect().await;
    for sql in [
        "INSERT INTO runs (run, next, epoch, changed, status, brain, started, at, wake, summary)
             SELECT 'run-' || n, 1, 0, 0, 'waiting', 'Sample', n, n, CASE WHEN n > 100000 THEN 7 END,
                 replace(r.summary, '\"run-0\"', '\"run-' || n || '\"')
             FROM generate_series(1, 110000) n, runs r WHERE r.run = 'run-0'",
        "INSERT INTO pending (key, at, run, since, call, person, brain, content)
             SELECT r.key, r.at, r.run, p.since, p.call, true, p.brain, p.content
             FROM runs r, pending p WHERE r.run <> 'run-0' AND r.wake IS NULL",
        "VACUUM ANALYZE runs",
        "VACUUM ANALYZE pending",
    ] {
        db.execute(sql).await.unwrap();
    }
}

/// Returns milliseconds of calls, without the first one.
async fn timed(call: impl AsyncFn() -> usize) -> Vec<f64> {
    assert!(call().await > 0);
    let mut seen = Vec::new();
    for _ in 0..CALLS {
        let begun = Instant::now();
        assert!(call().await > 0);
        seen.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    seen
}

fn print(what: &str, seen: Vec<f64>) {
    let fastest = seen.iter().copied().fold(f64::INFINITY, f64::min);
    println!("{what} | {:.2} ({fastest:.2})", median(seen));
}
