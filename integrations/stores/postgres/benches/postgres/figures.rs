//! The figures of 100,000 runs over a day.

use std::time::Instant;

use futures::StreamExt as _;
use positronic_core::store::prelude::*;
use positronic_store_suite::{day, sample_of_a_day};
use sqlx_core::executor::Executor as _;

use crate::{database, median};

const RUNS: u64 = 100_000;
const AT_ONCE: usize = 8;
const CALLS: usize = 21;

pub(crate) async fn measure() {
    let database = database();
    let store = database.open().await;
    let begun = Instant::now();
    let appends = futures::stream::iter(0..RUNS).map(|number| {
        let store = store.clone();
        async move { _ = sample_of_a_day(number).appended(&store).await }
    });
    appends.buffer_unordered(AT_ONCE).collect::<()>().await;
    println!("\n{RUNS} appends, each of which ends its run, {AT_ONCE} at once: {:.1} s", begun.elapsed().as_secs_f64());
    database.connect().await.execute("ANALYZE").await.unwrap();
    println!("figures of {RUNS} runs over a day; ms, median of {CALLS}");
    let (all, mut brain, mut user, mut model) = (day(), day(), day(), day());
    model.model = Some("openai/gpt-5-nano".to_owned());
    brain.brain = Some("Support 0".to_owned());
    user.user = Some("user-7".to_owned());
    for (name, filter) in [("all", all), ("of one brain", brain), ("of one user", user), ("of a model", model)] {
        let (mut times, mut runs) = (Vec::new(), 0);
        for _ in 0..CALLS {
            let begun = Instant::now();
            let figures = store.figures(&filter).await.unwrap();
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
            runs = figures.ended.iter().map(|group| group.runs).sum();
        }
        println!("{name:<20} {runs:>7} runs {:>8.1}", median(times));
    }
}
