//! The cost of a durable run: SQLite on the machine's disk.
//!
//! `cargo bench -p positronic-tests --bench durable`, with `-- paused`, `-- iterations`, `-- disk`, `-- resume` or `--
//! batch` for one of the tables; `-- profile` plays runs for a profiler, `BENCH_RUNS` runs (1) of `BENCH_ITERATIONS`
//! iterations (300).
//!
//! Each table compares runs with commits of the bare library, in the same folder, at the same durability: each commit
//! writes the data of one append. They are measured right after the compared run, since other work of the machine
//! changes within seconds. Set `BENCH_FOLDER` to measure another disk.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and stops at an error")]
#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a benchmark measures time, roughly"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::Timeline;
use positronic_core::projection::transcript;
use positronic_core::record::{Actor, Event, ModelRequest, Path, RunId, Seq, Status};
use positronic_core::runner::{Client, Settled};
use positronic_core::store::prelude::*;
use positronic_core::store::{EventStore, MemoryStore, PendingFilter, RunFilter};
use positronic_sqlite::{Durability, SqliteOptions, SqliteStore};
use rusqlite::Connection;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// What to note.
    text: String,
}

/// A brain whose iterations contain 1 KB of text each, half from the model and half from a tool.
fn worker(iterations: u32) -> Brain {
    brain("Worker")
        .r#loop("Work", move |cx| {
            cx.system("You take notes, one an iteration.")
                .input("Begin.")
                .max_iterations(u64::from(iterations) + 1)
                .tool("note", |t| {
                    t.description("Notes a line").idempotent().execute(async |Note { text }, _| Ok(text.repeat(16)))
                })
        })
        .build()
}

fn asking() -> Brain {
    brain("Asking")
        .r#loop("Ask", |cx| {
            cx.system("Ask.").input("Begin.").tool("ask", |t| {
                t.description("Asks").requires_approval("it must").execute(async |_: NoArgs, _| Ok("asked"))
            })
        })
        .build()
}

fn model(iterations: u32) -> ScriptedModel {
    ScriptedModel::from_fn(move |request| answer(request, iterations).unwrap_or_else(|| Reply::text("Done.")))
}

/// Answers with 512 bytes of text, words of five letters, and a call, as long as there are iterations left.
fn answer(request: &ModelRequest, iterations: u32) -> Option<Reply> {
    let iteration = request.messages.len() / 2;
    let text = format!("iteration {iteration:0>5} has words like this ");
    (iteration < iterations as usize).then(|| Reply::call("note", json!({ "text": text })).and_text(text.repeat(16)))
}

fn store(path: &std::path::Path, durability: Durability) -> SqliteStore {
    SqliteStore::with(SqliteOptions::builder().path(path).durability(durability).build()).unwrap()
}

fn runner(store: &(impl EventStore + Clone), iterations: u32) -> Runner {
    Runner::new(model(iterations)).store(store.clone()).linger(Duration::ZERO)
}

fn folder() -> tempfile::TempDir {
    let place = std::env::var("BENCH_FOLDER").unwrap_or_else(|_| ".".to_owned());
    tempfile::tempdir_in(place).unwrap()
}

fn main() {
    let only: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|only| only == name);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    runtime.block_on(async {
        if wanted("paused") {
            paused().await;
        }
        if wanted("iterations") {
            for durability in [Durability::ProcessCrash, Durability::PowerLoss] {
                iterations(durability).await;
            }
        }
        if wanted("disk") {
            disk().await;
        }
        if wanted("resume") {
            resume().await;
        }
        if wanted("batch") {
            batch().await;
        }
        if only.iter().any(|only| only == "profile") {
            let folder = folder();
            let store = store(&folder.path().join("one.db"), Durability::ProcessCrash);
            for _ in 0..number("BENCH_RUNS", 1) {
                played(&store, number("BENCH_ITERATIONS", 300)).await;
            }
        }
    });
}

/// Approves calls of one batch one by one, as people do from another process: each approval loads the run's state.
async fn batch() {
    const APPROVED: u32 = 100;
    println!("calls | ms an approval | ms an approval with its call");
    for calls in [10, 100, 1_000, 2_000] {
        let model = ScriptedModel::from_fn(move |request: &ModelRequest| match request.messages.len() {
            1 => Reply::calls((0..calls).map(|_| ("ask", json!({})))),
            _ => Reply::text("Done."),
        });
        let folder = folder();
        let store = store(&folder.path().join("one.db"), Durability::ProcessCrash);
        let runner = Runner::new(model).store(store.clone()).linger(Duration::from_secs(60));
        let run = runner.start(asking(), ()).await.unwrap();
        assert!(matches!(run.settled().await, Settled::Waiting(pending) if pending.len() == calls));
        let (approved, mut alone) = (APPROVED.min(u32::try_from(calls).unwrap() - 1), Duration::ZERO);
        let began = Instant::now();
        for call in 0..approved {
            let each = Instant::now();
            runner
                .client()
                .approve(run.id(), &Path::root().stage("Ask").call(0, call), Actor::default())
                .await
                .unwrap();
            alone += each.elapsed();
            while run.pending().len() > calls - call as usize - 1 {
                tokio::task::yield_now().await;
            }
            run.settled().await;
        }
        let ms = |time: Duration| time.as_secs_f64() * 1_000.0 / f64::from(approved);
        println!("{calls} | {:.2} | {:.2}", ms(alone), ms(began.elapsed()));
    }
}

/// Reads a number from the environment.
fn number(name: &str, default: u32) -> u32 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

/// The data of a commit by the bare library.
#[derive(Debug, Clone, Copy)]
enum Bare<'a> {
    /// The lines of an append and the run's row, which every append replaces, into a file with the store's tables,
    /// indexes and pages: the commits of a run.
    Commits(&'a str),
    /// The same into two tables without a further index, in a file with SQLite's defaults: independent of the store.
    Plain(&'a str),
    /// Only the lines, into a file with the store's tables.
    Lines,
}

/// Microseconds per commit of the bare library on one thread, without checkpoints of its write-ahead log, which
/// SQLite would otherwise make within some commits, with two disk syncs each.
fn bare(durability: Durability, appends: &[Vec<String>], what: Bare<'_>) -> f64 {
    let folder = folder();
    let path = folder.path().join("bare.db");
    if !matches!(what, Bare::Plain(_)) {
        drop(store(&path, durability));
    }
    let db = Connection::open(path).unwrap();
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    db.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    let level = if durability == Durability::PowerLoss { "FULL" } else { "NORMAL" };
    db.pragma_update(None, "synchronous", level).unwrap();
    if matches!(what, Bare::Plain(_)) {
        let sql = "CREATE TABLE events (id INTEGER PRIMARY KEY, line TEXT NOT NULL) STRICT;
                   CREATE TABLE runs (key INTEGER PRIMARY KEY, run TEXT, next INTEGER, epoch INTEGER, change INTEGER, status TEXT,
                       brain TEXT, converses INTEGER, started INTEGER, at INTEGER, summary TEXT) STRICT";
        db.execute_batch(sql).unwrap();
    }
    let sql = "INSERT INTO runs (key, run, next, epoch, change, status, brain, converses, started, at, summary)
               VALUES (1, 'run', 0, 1, 0, 'running', 'Worker', 0, 0, 0, '')";
    db.execute(sql, []).unwrap();
    let mut begin = db.prepare("BEGIN IMMEDIATE").unwrap();
    let mut commit = db.prepare("COMMIT").unwrap();
    let mut insert = db.prepare("INSERT INTO events (id, line) VALUES (?1, ?2)").unwrap();
    let sql = "UPDATE runs SET next = ?1, epoch = 1, change = ?1, at = ?1, summary = ?2 WHERE key = 1";
    let mut update = db.prepare(sql).unwrap();
    let begun = Instant::now();
    let mut next = 1_i64 << 32;
    for lines in appends {
        begin.execute([]).unwrap();
        if let Bare::Commits(summary) | Bare::Plain(summary) = what {
            update.execute((next, summary)).unwrap();
        }
        for line in lines {
            insert.execute((next, line)).unwrap();
            next += 1;
        }
        commit.execute([]).unwrap();
    }
    begun.elapsed().as_secs_f64() * 1e6 / appends.len() as f64
}

/// The lines of a run's events, grouped by append: the events of one append have the same time.
fn appends(events: &[Arc<Event>]) -> Vec<Vec<String>> {
    let lines = |events: &[Arc<Event>]| events.iter().map(|event| event.to_json().unwrap()).collect();
    events.chunk_by(|one, next| one.at == next.at).map(lines).collect()
}

/// Plays a run, and returns its duration, its log, and its row.
async fn played(store: &(impl EventStore + Clone), iterations: u32) -> (Duration, Vec<Arc<Event>>, String) {
    let runner = runner(store, iterations);
    let begun = Instant::now();
    let run = runner.start(&worker(iterations), ()).await.unwrap();
    run.result().await.unwrap();
    let took = begun.elapsed();
    let row = serde_json::to_string(&store.run(run.id()).await.unwrap()).unwrap();
    (took, run.events(Seq(0)).await.unwrap(), row)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn iterations(durability: Durability) {
    const ITERATIONS: u32 = 300;
    println!("\n{durability:?}: us an append; a run, the run in memory; its commits, plain commits, the lines alone");
    let folder = folder();
    let one = store(&folder.path().join("one.db"), durability);
    let (mut seen, mut ratios) = (vec![Vec::new(); 5], vec![Vec::new(); 3]);
    for _ in 0..number("BENCH_PAIRS", 11) {
        let (took, events, row) = played(&one, ITERATIONS).await;
        let appends = appends(&events);
        let each = |took: Duration| took.as_secs_f64() * 1e6 / appends.len() as f64;
        let (own, memory) = (each(took), each(played(&MemoryStore::default(), ITERATIONS).await.0));
        let bare = [Bare::Commits(&row), Bare::Plain(&row), Bare::Lines].map(|what| bare(durability, &appends, what));
        for (ratios, bare) in ratios.iter_mut().zip(bare) {
            ratios.push(own / bare);
        }
        let figures = [[own, memory].as_slice(), &bare].concat();
        for (seen, figure) in seen.iter_mut().zip(&figures) {
            seen.push(*figure);
        }
        println!("{figures:4.0?} {:.1} appends an iteration", appends.len() as f64 / f64::from(ITERATIONS));
    }
    println!("{:4.0?} in the middle", seen.into_iter().map(median).collect::<Vec<_>>());
    for (ratios, what) in ratios.iter_mut().zip(["its commits", "plain commits", "the lines alone"]) {
        ratios.sort_by(f64::total_cmp);
        println!("one run, times {what}: {:.2} in the middle of {ratios:.2?}", ratios[ratios.len() / 2]);
    }
    for runs in [1_u32, 8, 64] {
        let runner = runner(&one, 30);
        let begun = Instant::now();
        let all = (0..runs).map(|_| async {
            runner.start(&worker(30), ()).await.unwrap().result().await.unwrap();
        });
        futures::future::join_all(all).await;
        let rate = f64::from(runs * 30) / begun.elapsed().as_secs_f64();
        println!("{runs} runs at once: {rate:.0} iterations a second");
    }
}

async fn disk() {
    println!("\nrounds  transcript  log  file  file a byte of transcript");
    for iterations in [50, 300, 3000] {
        let folder = folder();
        let path = folder.path().join("disk.db");
        let store = store(&path, Durability::ProcessCrash);
        let run = runner(&store, iterations).start(&worker(iterations), ()).await.unwrap();
        run.result().await.unwrap();
        let events = run.events(Seq(0)).await.unwrap();
        let said = transcript(&Timeline::of(events.iter().map(|event| &**event))).len();
        let log: usize = events.iter().map(|event| event.to_json().unwrap().len()).sum();
        drop((run, store));
        let file = settled_size(&path).await;
        println!("{iterations:>6} {said:>11} {log:>8} {file:>8} {:>6.2}", file as f64 / said as f64);
    }
}

/// The size of the file after its last user has closed it.
async fn settled_size(path: &std::path::Path) -> u64 {
    for _ in 0..100 {
        if !path.with_extension("db-wal").exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    std::fs::metadata(path).unwrap().len()
}

async fn resume() {
    println!("\nrounds  events  resume, ms (median of 5)  state alone, ms");
    for iterations in [300, 3000] {
        let folder = folder();
        let store = store(&folder.path().join("resume.db"), Durability::ProcessCrash);
        let client = Client::new(store.clone());
        let (mut whole, mut state, mut events) = (Vec::new(), Vec::new(), 0);
        for _ in 0..5 {
            let id = crashed(&store, iterations);
            events = store.run(&id).await.unwrap().next.index();
            let runner = runner(&store, iterations).brain(worker(iterations));
            let begun = Instant::now();
            client.state(&id).await.unwrap();
            state.push(begun.elapsed().as_secs_f64() * 1e3);
            let begun = Instant::now();
            let run = runner.resume(&id).await.unwrap();
            whole.push(begun.elapsed().as_secs_f64() * 1e3);
            run.result().await.unwrap();
        }
        whole.sort_by(f64::total_cmp);
        state.sort_by(f64::total_cmp);
        println!("{iterations:>6} {events:>7} {:>8.1} {:>8.1}", whole[2], state[2]);
    }
}

/// Plays a run up to its last answer, in its own runtime, which is dropped then, as in a crash.
fn crashed(store: &SqliteStore, iterations: u32) -> RunId {
    let store = store.clone();
    let playing = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let hour = Duration::from_secs(3600);
            let stuck = ScriptedModel::from_fn(move |request| {
                answer(request, iterations).unwrap_or_else(|| Reply::text("").after(hour))
            });
            let runner = Runner::new(stuck).store(store);
            let run = runner.start(&worker(iterations), ()).await.unwrap();
            let asked = Path::parse(&format!("Work/{iterations}")).unwrap();
            while run.state().loop_at(&asked).is_none_or(|frame| frame.iteration < iterations) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            run.id().clone()
        })
    });
    playing.join().unwrap()
}

async fn paused() {
    const RUNS: usize = 10_000;
    let folder = folder();
    let store = store(&folder.path().join("paused.db"), Durability::ProcessCrash);
    let model = ScriptedModel::from_fn(|_| Reply::call("ask", json!({})));
    let runner = Runner::new(model).store(store.clone()).linger(Duration::ZERO);
    let mut before = 0;
    for n in 0..RUNS {
        if n == RUNS / 10 {
            released(&store, n).await;
            before = resident();
        }
        runner.start(&asking(), ()).await.unwrap();
    }
    released(&store, RUNS).await;
    let after = resident();
    let mut took = Vec::new();
    for _ in 0..9 {
        let begun = Instant::now();
        let waits = store.pending(&PendingFilter::builder().person(true).limit(100).build()).await.unwrap();
        took.push(begun.elapsed().as_secs_f64() * 1e3);
        assert_eq!(waits.len(), 100);
    }
    took.sort_by(f64::total_cmp);
    let begun = Instant::now();
    let all = store.pending(&PendingFilter::default()).await.unwrap().len();
    let whole = begun.elapsed().as_secs_f64() * 1e3;
    println!("\n{RUNS} waiting runs: {before} KB resident at a tenth of them, {after} KB at all");
    println!("the 100 that wait longest: {:.2} ms (median of 9); all {all}: {whole:.1} ms", took[4]);
}

async fn released(store: &SqliteStore, runs: usize) {
    loop {
        let filter = RunFilter::builder().status(vec![Status::Waiting]).build();
        let rows = store.runs(&filter).await.unwrap();
        let free = rows.iter().filter(|row| row.claim.as_ref().is_some_and(|claim| claim.released)).count();
        if free == runs {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Resident memory of the process in kilobytes, by Linux.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}
