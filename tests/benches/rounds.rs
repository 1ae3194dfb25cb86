//! What the framework itself costs: rounds of one run, and many runs at once, with a model that needs no network.
//!
//! `cargo bench -p positronic-tests --bench rounds`
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on has nothing to measure")]

use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::ModelRequest;
use positronic_core::runner::Runner;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// What to note.
    text: String,
}

fn worker(rounds: u32) -> Brain {
    brain("Worker").r#loop("Work", move |cx| {
        cx.system("You take notes, one a round, until there is nothing left to note.")
            .input("Begin.")
            .max_iterations(rounds + 1)
            .tool("note", |t| {
                t.description("Notes a line")
                    .idempotent()
                    .execute(async |Note { text }, _| Ok(format!("noted: {text}")))
            })
            .tool("look", |t| {
                t.description("Looks at the notes").read_only().execute(async |_: NoArgs, _| Ok("nothing"))
            })
            .tool("done", |t| t.description("Ends the work").exit().execute(async |_: NoArgs, _| Ok("done")))
    })
}

fn model(rounds: u32, pause: Duration) -> ScriptedModel {
    ScriptedModel::from_fn(move |request: &ModelRequest| {
        let round = request.messages.len() / 2;
        let reply = if round < rounds as usize {
            Reply::call("note", json!({ "text": format!("line {round} of a log that goes on and on") }))
        } else {
            Reply::call("done", json!({}))
        };
        reply.after(pause)
    })
}

/// The cost of a round is the time divided by the number of rounds; it should not grow with it.
#[divan::bench(args = [50, 300, 3000])]
fn one_run(bencher: divan::Bencher<'_, '_>, rounds: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let brain = worker(rounds);
    bencher.counter(divan::counter::ItemsCount::new(rounds)).bench_local(|| {
        runtime.block_on(async {
            let runner = Runner::builder().model(model(rounds, Duration::ZERO)).build();
            let run = runner.start(&brain, ()).await.unwrap();
            run.result().await.unwrap();
        });
    });
}

/// 1,000 runs of 10 rounds at once, whose model takes 50 ms an answer: 11 answers, so 0.55 s at the least.
#[divan::bench(args = [1, 100, 1000], sample_count = 5, sample_size = 1)]
fn concurrent_runs(bencher: divan::Bencher<'_, '_>, runs: usize) {
    concurrently(bencher, runs, 10);
}

/// 1,000 runs at once that end with their first answer: `max alloc` divided by the number of runs is what a run holds
/// beside its transcript.
#[divan::bench(args = [1000], sample_count = 5, sample_size = 1)]
fn concurrent_runs_of_one_answer(bencher: divan::Bencher<'_, '_>, runs: usize) {
    concurrently(bencher, runs, 0);
}

fn concurrently(bencher: divan::Bencher<'_, '_>, runs: usize, rounds: u32) {
    // One thread, so that the allocations are all counted.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let brain = worker(rounds);
    bencher.counter(divan::counter::ItemsCount::new(runs)).bench_local(|| {
        runtime.block_on(async {
            let runner = Runner::builder().model(model(rounds, Duration::from_millis(50))).build();
            let mut all = Vec::with_capacity(runs);
            for _ in 0..runs {
                all.push(runner.start(&brain, ()).await.unwrap());
            }
            for run in &all {
                run.result().await.unwrap();
            }
        });
    });
}
