//! The cost of the embedded store: commits compared with bare SQLite, lists, and disk space.
//!
//! `cargo bench -p positronic-tests --bench store`, with `-- commits`, `-- lists` or `-- room` for one of the tables.
//! `TMPDIR` sets the file system.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops at an error"
)]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Gate, Path as CallPath, Pending, PendingKind, Seq, Status};
use positronic_core::store::prelude::*;
use positronic_core::store::{EventSearch, PendingFilter, RunFilter};
use positronic_sqlite::{Durability, SqliteOptions, SqliteStore};
use positronic_store_suite::{Sample, event};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Measuring time per row of a table.
const TIME: Duration = Duration::from_secs(3);
/// Number of warm-up commits.
const WARM: usize = 4000;

fn main() {
    let only: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|only| only == name);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        if wanted("commits") {
            commits().await;
        }
        if wanted("lists") {
            lists().await;
        }
        if wanted("room") {
            room().await;
        }
    });
}

fn text() -> String {
    "a line of a log ".repeat(16)
}

async fn commits() {
    println!("appends of one event a second");
    println!("survives       bare SQLite  1 task      64 tasks    1 task / bare  64 tasks / bare");
    for (level, synchronous) in [(Durability::ProcessCrash, "NORMAL"), (Durability::PowerLoss, "FULL")] {
        // In turns, so that other work of the machine affects all of them.
        let (mut bare_all, mut one_all, mut many_all) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..3 {
            bare_all.push(bare(synchronous));
            one_all.push(appends(level, 1).await);
            many_all.push(appends(level, 64).await);
        }
        let median = |mut all: Vec<f64>| {
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let (bare, one, many) = (median(bare_all), median(one_all), median(many_all));
        println!(
            "{:<14} {bare:<12.0} {one:<11.0} {many:<11.0} {:<14.2} {:.2}",
            format!("{level:?}"),
            one / bare,
            many / bare
        );
    }
}

/// One insert of the same line per commit.
fn bare(synchronous: &str) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let db = rusqlite::Connection::open(folder.path().join("bare.db")).unwrap();
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    db.execute_batch("CREATE TABLE events (id INTEGER PRIMARY KEY, line TEXT NOT NULL)").unwrap();
    let mut insert = db.prepare("INSERT INTO events (line) VALUES (?1)").unwrap();
    let line = event(0, &text()).to_json().unwrap();
    // A sync takes longer while the write-ahead log grows than when it is overwritten.
    db.pragma_update(None, "synchronous", "OFF").unwrap();
    for _ in 0..WARM {
        insert.execute([&line]).unwrap();
    }
    db.pragma_update(None, "synchronous", synchronous).unwrap();
    let start = Instant::now();
    let mut count = 0_u32;
    while start.elapsed() < TIME {
        insert.execute([&line]).unwrap();
        count += 1;
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}

async fn appends(durability: Durability, tasks: usize) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = SqliteStore::with(SqliteOptions::builder().path(path).durability(durability).build()).unwrap();
    futures::future::join_all((0..64).map(async |task| {
        let mut sample = Sample::new(&format!("warm-{task}"));
        for _ in 0..WARM / 64 {
            sample = sample.says(&text()).appended(&store).await;
        }
    }))
    .await;
    let count = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let tasks: Vec<_> = (0..tasks)
        .map(|task| {
            let (store, count) = (store.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                let mut sample = Sample::new(&format!("run-{task}"));
                while start.elapsed() < TIME {
                    sample = sample.says(&text()).appended(&store).await;
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
    let count = count.load(Ordering::Relaxed) as f64;
    count / start.elapsed().as_secs_f64()
}

async fn lists() {
    const RUNS: usize = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::builder().path(folder.path().join("runs.db")).durability(Durability::ProcessCrash);
    let store = SqliteStore::with(options.build()).unwrap();
    let samples = (0..RUNS).map(|run| {
        let pending = Pending {
            call: CallPath::parse("Chat/3.1").unwrap(),
            tool: "refund".to_owned(),
            arguments: Arc::new(json!({ "amount": 120, "order": format!("order-{run}"), "note": text() })),
            since: Seq(0),
            kind: PendingKind::Approval {
                gate: Gate { reason: "refund of 120".to_owned(), valid_for: None, editable: true },
                expires: None,
            },
        };
        let sample = Sample::new(&format!("run-{run:05}")).row(|row| {
            row.status = Status::Waiting;
            row.user = Some(format!("user-{}", run % 100));
            row.brain = format!("Brain {}", run % 100).into();
            row.at = positronic_core::record::Timestamp(i64::try_from(run).unwrap());
            row.started = positronic_core::record::Timestamp(i64::try_from(run).unwrap());
        });
        sample.says("one").says("two").waits(vec![pending])
    });
    let written = samples.map(|sample| {
        let store = store.clone();
        tokio::spawn(async move { drop(sample.appended(&store).await) })
    });
    for written in written.collect::<Vec<_>>() {
        written.await.unwrap();
    }
    println!("\nlists over {RUNS} runs that wait for a person; ms: median of 21 (fastest), of a processor");
    let waits = |filter: PendingFilter| {
        let store = store.clone();
        async move { store.pending(&filter).await.unwrap().len() }
    };
    let runs = |filter: RunFilter| {
        let store = store.clone();
        async move { store.runs(&filter).await.unwrap().len() }
    };
    let run = positronic_core::record::RunId::from("run-05000");
    timed("all that waits", || waits(PendingFilter::default())).await;
    timed("the first 100 that wait for a person", || waits(PendingFilter::builder().person(true).limit(100).build()))
        .await;
    timed("what waits in one run", || waits(PendingFilter::builder().run(run.clone()).build())).await;
    timed("all rows", || runs(RunFilter::default())).await;
    timed("the last 100 rows", || runs(RunFilter::builder().limit(100).build())).await;
    timed("the rows of one user", || runs(RunFilter::builder().user("user-7").build())).await;
    timed("the rows of one brain", || runs(RunFilter::builder().brain("Brain 7").build())).await;
    let old = positronic_core::record::Timestamp(100);
    timed("the oldest rows", || runs(RunFilter::builder().before(old).build())).await;
    timed("the newest rows", || runs(RunFilter::builder().since(positronic_core::record::Timestamp(9900)).build()))
        .await;
    timed("runs with work", || runs(RunFilter::builder().due(positronic_core::record::Timestamp(i64::MAX)).build()))
        .await;
    let found = || {
        let store = store.clone();
        async move { store.search(&EventSearch::new("order-9999", 10)).await.unwrap().found.len() }
    };
    timed("a search that finds nothing", found).await;
}

async fn timed<F: Future<Output = usize>>(name: &str, question: impl Fn() -> F) {
    let mut times = Vec::new();
    let mut rows = 0;
    let before = processor();
    for _ in 0..21 {
        let start = Instant::now();
        rows = question().await;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    let processor = processor().saturating_sub(before).as_secs_f64() * 1000.0 / 21.0;
    times.sort_by(f64::total_cmp);
    println!("{name:<38} {:>8.2} ({:.2}), {processor:.2}; {rows} rows", times[10], times[0]);
}

/// Returns the processor time of this process's threads, which other processes affect less than
/// the wall time. Zero if the system does not report it.
fn processor() -> Duration {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Duration::ZERO };
    let of_thread = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(threads.flatten().filter_map(|thread| of_thread(thread.path())).sum())
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// What to note.
    text: String,
}

/// Runs of a real brain: each iteration, the model calls a tool with 1 KB of text.
async fn room() {
    println!("\nroom on the disk");
    println!("runs  iterations  text KB  log KB  file KB  file / text  file / log  file KB without half of the runs");
    for (runs, iterations) in [(1_u32, 50_u32), (1, 300), (1, 3000), (50, 50), (50, 300)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let options = SqliteOptions::builder().path(path.clone()).durability(Durability::ProcessCrash);
        let store = SqliteStore::with(options.build()).unwrap();
        let brain = brain("Worker").r#loop("Work", move |cx| {
            cx.system("You take notes.").input("Begin.").max_iterations(u64::from(iterations) + 1).tool("note", |t| {
                t.description("Notes a line").idempotent().execute(async |Note { text }, _| Ok(text.len()))
            })
        });
        let model = ScriptedModel::from_fn(move |request: &positronic_core::record::ModelRequest| {
            match request.messages.len() / 2 {
                iteration if iteration < iterations as usize => {
                    Reply::call("note", json!({ "text": "0123456789abcdef".repeat(64) }))
                }
                _ => Reply::text("Done."),
            }
        });
        let runner = Runner::new(model).store(store.clone());
        let mut all = Vec::new();
        for _ in 0..runs {
            all.push(runner.start(&brain, ()).await.unwrap());
        }
        let mut log = 0;
        let mut ids = Vec::new();
        for run in all {
            run.result().await.unwrap();
            log += run.events(Seq(0)).await.unwrap().iter().map(|event| event.to_json().unwrap().len()).sum::<usize>();
            ids.push(run.id().clone());
        }
        // The threads of the runs may still use the store; another handle sees the committed data.
        let text = u64::from(runs) * u64::from(iterations) * 1024;
        let file = size(&path);
        ids.truncate(ids.len() / 2);
        for _ in 0..50 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        store.remove(&ids).await.unwrap();
        println!(
            "{runs:<5} {iterations:<7} {:<8} {:<7} {:<8} {:<12.2} {:<11.2} {}",
            text / 1024,
            log / 1024,
            file / 1024,
            ratio(file, text),
            ratio(file, log as u64),
            size(&path) / 1024,
        );
    }
}

/// Returns the size of the file after a checkpoint.
fn size(path: &Path) -> u64 {
    let db = rusqlite::Connection::open(path).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    std::fs::metadata(path).unwrap().len()
}

#[expect(clippy::cast_precision_loss, reason = "sizes of some megabytes")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}
