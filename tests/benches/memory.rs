//! Memory of a run: 1,000 concurrent runs of 10 iterations, with a model that takes 50 ms per answer.
//!
//! `cargo bench -p positronic-tests --bench memory`
//!
//! The peak of all allocations, per run, is split into the run's transcript and the rest. The transcript is the run's
//! log, as the store's lines of JSON, and the records with the messages for the
//! model, measured by building the same again from the log.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and stops at an error")]

mod worker;

use std::time::Duration;

use positronic_core::projection::Prompts;
use positronic_core::record::Seq;
use positronic_core::runner::Runner;
use worker::{model, worker};

#[global_allocator]
static ALLOCATIONS: dhat::Alloc = dhat::Alloc;

const RUNS: usize = 1000;

fn main() {
    let _profiler = dhat::Profiler::builder().testing().build();
    println!("bytes a run, {RUNS} runs at once");
    println!("iterations     peak  log  records and messages  rest");
    for iterations in [0, 10, 50] {
        measure(iterations);
    }
}

fn measure(iterations: u32) {
    // One thread, so that allocations of other threads are not counted.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let brain = worker(iterations);
    runtime.block_on(async {
        let runner = Runner::new(model(iterations, Duration::from_millis(50)));
        let before = dhat::HeapStats::get().curr_bytes;
        let mut all = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            all.push(runner.start(&brain, ()).await.unwrap());
        }
        for run in &all {
            run.result().await.unwrap();
        }
        // The sizes grow, so the peak belongs to this size.
        let peak = (dhat::HeapStats::get().max_bytes - before) / RUNS;
        let one = all.first().unwrap();
        let bare = dhat::HeapStats::get().curr_bytes;
        let events = one.events(Seq(0)).await.unwrap();
        let log: usize = events.iter().map(|event| event.to_json().unwrap().len()).sum();
        let records = Prompts::of(events.iter().map(|event| &**event));
        drop(events);
        let records_bytes = dhat::HeapStats::get().curr_bytes - bare;
        drop(records);
        println!("{iterations:>6} {peak:>8} {log:>5} {records_bytes:>20} {:>6}", peak - log - records_bytes);
    });
}
