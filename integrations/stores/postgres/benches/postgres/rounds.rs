//! Durable rounds a second, next to the bare statements. A round is an iteration of a loop: a model call, a tool call and
//! two appends, with 1 KB of text, half of it the model's and half of it the tool's.

use std::time::{Duration, Instant};

use futures::future::join_all;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{ModelRequest, Seq};
use positronic_core::store::MemoryStore;
use positronic_core::store::prelude::*;
use positronic_postgres::{PostgresOptions, PostgresStore};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::bare::{Rows, Way, connect, written};
use crate::{database, median, number};

/// The connections of a worker's store.
const POOL: usize = 10;

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// What to note.
    text: String,
}

fn worker() -> Brain {
    brain("Worker")
        .r#loop("Work", |cx| {
            cx.system("You take notes, one an iteration.").input("Begin.").max_iterations(1_000).tool("note", |t| {
                t.description("Notes a line").idempotent().execute(async |Note { text }, _| Ok(text.repeat(16)))
            })
        })
        .build()
}

fn model(iterations: usize) -> ScriptedModel {
    ScriptedModel::from_fn(move |request: &ModelRequest| {
        let iteration = request.messages.len() / 2;
        let text = format!("iteration {iteration:0>5} has words like this ");
        let call = || Reply::call("note", json!({ "text": text })).and_text(text.repeat(16));
        if iteration < iterations { call() } else { Reply::text("Done.") }
    })
}

pub(crate) async fn measure() {
    println!("commit | workers | runs | rounds/s | us an append: run, transactions, statements | times each");
    for commit in ["on", "off"] {
        for workers in [1, 3] {
            for (runs, iterations) in [(1, 60), (8, 30), (64, 10)] {
                measure_one(commit, workers, runs, iterations).await;
            }
        }
    }
    in_memory().await;
}

async fn measure_one(commit: &str, workers: usize, runs: usize, iterations: usize) {
    let database = database();
    let url = &format!("{}?options=-c%20synchronous_commit%3D{commit}", database.url);
    let (mut runners, mut services, mut stores) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..workers {
        let options = PostgresOptions::builder().url(url).schema(&database.schema).connections(POOL).build();
        let store = PostgresStore::with(options).await.unwrap();
        let runner = Runner::new(model(iterations)).store(store.clone()).linger(Duration::ZERO).brain(worker());
        services.push(runner.serve());
        runners.push(runner);
        stores.push(store);
    }
    let mut connections = connect(url, &database.schema, runs.min(workers * POOL)).await;
    let mut seen = [(); 6].map(|()| Vec::new());
    // The first one prepares statements and opens connections.
    for pair in 0..=number("BENCH_PAIRS", 9) {
        let begun = Instant::now();
        let works = (0..runs).map(|place| {
            let runner = &runners[place % workers];
            async move {
                let run = runner.start(&worker(), ()).await.unwrap();
                run.result().await.unwrap();
                run.id().clone()
            }
        });
        let ids = join_all(works).await;
        let took = begun.elapsed();
        let mut rows = Vec::new();
        for id in &ids {
            let events = stores[0].read(id, Seq(0), usize::MAX).await.unwrap();
            rows.push(Rows::new(&events, serde_json::to_string(&stores[0].run(id).await.unwrap()).unwrap()));
        }
        let appends: usize = rows.iter().map(|rows| rows.appends.len()).sum();
        let name = format!("{commit} {workers} {runs} {pair}");
        let each = |took: Duration| took.as_secs_f64() * 1e6 / appends as f64;
        let own = each(took);
        let transactions = each(written(&mut connections, &name, &rows, Way::Transaction).await);
        let statements = each(written(&mut connections, &name, &rows, Way::Statement).await);
        if pair > 0 {
            let rate = (runs * iterations) as f64 / took.as_secs_f64();
            let figures = [rate, own, transactions, statements, own / transactions, own / statements];
            seen.iter_mut().zip(figures).for_each(|(seen, figure)| seen.push(figure));
        }
    }
    let range = |values: &[f64]| {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        format!("{least:.2} to {:.2}", values.iter().copied().fold(0.0, f64::max))
    };
    let ranges = [range(&seen[4]), range(&seen[5])];
    let [rate, own, transactions, statements, times, times_least] = seen.map(median);
    println!(
        "{commit} | {workers} | {runs} | {rate:.0} | {own:.0}, {transactions:.0}, {statements:.0} | \
         {times:.2} ({}), {times_least:.2} ({})",
        ranges[0], ranges[1]
    );
}

/// What a run costs without a database.
async fn in_memory() {
    const ITERATIONS: usize = 60;
    let mut seen = Vec::new();
    for _ in 0..9 {
        let runner = Runner::new(model(ITERATIONS)).store(MemoryStore::default());
        let begun = Instant::now();
        runner.start(&worker(), ()).await.unwrap().result().await.unwrap();
        seen.push(begun.elapsed().as_secs_f64() * 1e6 / (3 * ITERATIONS) as f64);
    }
    println!("in memory: {:.0} us an append", median(seen));
}
