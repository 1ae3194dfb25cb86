//! What an item of a `map` costs, and how much memory its run needs, with 100, 1,000 and 10,000 items; then 1,000 brains at once; then
//! child runs, which one step starts and a `map` joins.
//!
//! `cargo bench -p positronic-tests --bench groups`. The log is in a file (SQLite), so that only what the run keeps in memory counts:
//! the largest resident set, as Linux reports it, above that before. An item asks a model once, in a step or in a loop.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and stops at an error")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::time::{Duration, Instant};

use positronic_core::dsl::{Child, each};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::Failure;
use positronic_sqlite::{Durability, SqliteOptions, SqliteStore};

fn main() {
    println!("{:<8} {:>6} {:>6} {:>10} {:>12}", "item", "items", "limit", "ms an item", "KiB at most");
    for (name, item) in [("step", step as fn() -> Brain<u32, usize>), ("loop", in_loop)] {
        for (items, limit) in [(100, 8), (1_000, 8), (10_000, 8), (1_000, 1_000)] {
            let all = brain("All");
            let all = all.map("Items", move |()| (0..items).collect(), each(item()).limit(limit), |(), all| all.len());
            measure(name, all.build(), items, limit);
        }
    }
    for children in [100, 1_000] {
        measure("child", with_children(children), children, children);
    }
}

/// Starts children, and waits for all of them at once.
fn with_children(count: u32) -> Brain<(), usize> {
    let end = brain("End").options::<Child<usize>>().step("Take", async |cx| Ok(Child::clone(&cx.options))).join(
        "Join",
        Child::clone,
        |_, end: Result<usize, Failure>| end.unwrap_or_default(),
    );
    brain("All")
        .step("Begin", move |cx| async move {
            let mut children = Vec::new();
            for number in 0..count {
                children.push(cx.start(&format!("child {number}"), step(), number).await?);
            }
            Ok(children)
        })
        .map("Ends", Vec::clone, each(end).limit(count), |_, ends| ends.len())
        .build()
}

fn step() -> Brain<u32, usize> {
    brain("Item").options::<u32>().step("Ask", async |cx| Ok(cx.model().ask("How long is this?").await?.len())).build()
}

fn in_loop() -> Brain<u32, usize> {
    brain("Item").options::<u32>().r#loop("Ask", |cx| cx.system("Answer.").input("How long is this?")).result(|()| 1)
}

fn measure(name: &str, all: Brain<(), usize>, items: u32, limit: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions::builder().path(folder.path().join("runs.db")).durability(Durability::ProcessCrash);
        let runner = Runner::new(ScriptedModel::from_fn(|_| Reply::text("An answer of some words.")))
            .store(SqliteStore::with(options.build()).unwrap());
        // Linux counts the peak anew.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let (before, began) = (resident("VmRSS"), Instant::now());
        assert_eq!(runner.start(all, ()).await.unwrap().result().await.unwrap(), items as usize);
        let (took, peak) = (began.elapsed(), resident("VmHWM") - before);
        println!("{name:<8} {items:>6} {limit:>6} {:>10.3} {peak:>12}", millis(took) / f64::from(items));
    });
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

/// Returns a line of the process's status in KiB.
fn resident(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim_end_matches("kB").trim().parse().unwrap()
}
