//! The cost of the framework: iterations of one run, and many concurrent runs, with a model without a network.
//!
//! `cargo bench -p positronic-tests --bench rounds`
#![allow(clippy::unwrap_used, reason = "a benchmark stops at an error")]

mod worker;

use std::time::Duration;

use positronic_core::runner::Runner;
use worker::{model, worker};

#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

/// The cost per iteration should not grow with the number of iterations.
#[divan::bench(args = [50, 300, 3000])]
fn one_run(bencher: divan::Bencher<'_, '_>, iterations: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let brain = worker(iterations);
    bencher.counter(divan::counter::ItemsCount::new(iterations)).bench_local(|| {
        runtime.block_on(async {
            let runner = Runner::new(model(iterations, Duration::ZERO));
            let run = runner.start(&brain, ()).await.unwrap();
            run.result().await.unwrap();
        });
    });
}

/// 1,000 concurrent runs of 10 iterations, whose model takes 50 ms per answer: 11 answers, so at least 0.55 s.
#[divan::bench(args = [1, 100, 1000], sample_count = 5, sample_size = 1)]
fn concurrent_runs(bencher: divan::Bencher<'_, '_>, runs: usize) {
    concurrently(bencher, runs, 10);
}

fn concurrently(bencher: divan::Bencher<'_, '_>, runs: usize, iterations: u32) {
    // One thread, so that all allocations are counted.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let brain = worker(iterations);
    bencher.counter(divan::counter::ItemsCount::new(runs)).bench_local(|| {
        runtime.block_on(async {
            let runner = Runner::new(model(iterations, Duration::from_millis(50)));
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
