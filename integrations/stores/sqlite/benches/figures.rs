//! The figures of 100,000 runs, and the append that ends a run.
//!
//! `cargo bench -p positronic-sqlite --bench figures`; `TMPDIR` sets the file system.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops at an error"
)]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]

use std::time::{Duration, Instant};

use positronic_core::store::prelude::*;
use positronic_sqlite::{Durability, SqliteOptions, SqliteStore};
use positronic_store_suite::{day, sample_of_a_day};

const RUNS: u64 = 100_000;
const CALLS: usize = 21;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::builder().path(folder.path().join("runs.db")).durability(Durability::ProcessCrash);
    let store = SqliteStore::with(options.build()).unwrap();
    let begun = Instant::now();
    for number in 0..RUNS {
        _ = sample_of_a_day(number).appended(&store).await;
    }
    println!(
        "{RUNS} appends, each of which ends its run: {:.1} µs each",
        begun.elapsed().as_secs_f64() * 1e6 / RUNS as f64
    );
    println!("figures of {RUNS} runs over a day; ms, median of {CALLS} (fastest, slowest)");
    let (all, mut brain, mut user, mut hour) = (day(), day(), day(), day());
    brain.brain = Some("Support 0".to_owned());
    user.user = Some("user-7".to_owned());
    (hour.from, hour.bucket, hour.buckets) = (day().until(), Duration::from_mins(1), 60);
    hour.from.0 -= 3_600_000_000;
    for (name, filter) in [("all", all), ("of one brain", brain), ("of one user", user), ("of the last hour", hour)] {
        let (mut times, mut runs) = (Vec::new(), 0);
        for _ in 0..CALLS {
            let begun = Instant::now();
            let figures = store.figures(&filter).await.unwrap();
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
            runs = figures.ended.iter().map(|group| group.runs).sum();
        }
        times.sort_by(f64::total_cmp);
        let [first, .., last] = times.as_slice() else { return };
        println!("{name:<20} {runs:>7} runs {:>8.1} ({first:.1}, {last:.1})", times[CALLS / 2]);
    }
}
