//! The figures and the counts of 100,000 runs, and the append that ends a run.
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

use positronic_core::record::{Money, Status};
use positronic_core::store::RunFilter;
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
    println!(
        "figures of {RUNS} runs over a day; ms, median of {CALLS} (fastest, slowest), and ms of the processor on average"
    );
    let (all, mut brain, mut user, mut hour, mut model) = (day(), day(), day(), day(), day());
    model.model = Some("openai/gpt-5-nano".to_owned());
    brain.brain = Some("Support 0".to_owned());
    user.user = Some("user-7".to_owned());
    (hour.from, hour.bucket, hour.buckets) = (day().until(), Duration::from_mins(1), 60);
    hour.from.0 -= 3_600_000_000;
    let last_hour = hour.from;
    let filters = [
        ("all", all),
        ("of one brain", brain),
        ("of one user", user),
        ("of a model", model),
        ("of the last hour", hour),
    ];
    for (name, filter) in filters {
        measured(name, async || store.figures(&filter).await.unwrap().ended.iter().map(|group| group.runs).sum()).await;
    }
    let builder = RunFilter::builder;
    let filters = [
        ("all", builder().build()),
        ("of one brain", builder().brain("Support 0").build()),
        ("failed", builder().status(vec![Status::Failed]).build()),
        ("of the last hour", builder().since(last_hour).build()),
        ("with a cost", builder().min_cost(Money::of_nanos(1)).build()),
        ("of a tool", builder().tool("refund").build()),
        ("of a model", builder().model("gpt-5-nano").build()),
    ];
    println!("counts by status");
    for (name, filter) in &filters {
        measured(name, async || store.counts(filter).await.unwrap().total()).await;
    }
    println!("sums of tokens and costs");
    for (name, filter) in &filters {
        measured(name, async || store.sums(filter).await.unwrap().runs).await;
    }
}

/// Prints how long a query takes that returns a number of runs.
async fn measured(name: &str, query: impl AsyncFn() -> u64) {
    let (mut times, mut runs, cpu) = (Vec::new(), 0, processor());
    for _ in 0..CALLS {
        let begun = Instant::now();
        runs = query().await;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    let cpu = (processor() - cpu) / CALLS as f64;
    times.sort_by(f64::total_cmp);
    let [first, .., last] = times.as_slice() else { return };
    println!("{name:<20} {runs:>7} runs {:>8.1} ({first:.1}, {last:.1}) {cpu:>8.1}", times[CALLS / 2]);
}

/// Returns the milliseconds that the process has had of the processor; 0 where the system does not tell.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    // Ticks of 10 ms.
    (ticks(11) + ticks(12)) * 10.0
}
