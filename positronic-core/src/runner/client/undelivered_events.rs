//! Delivery of events that machines appended before they died.

use std::time::Duration;

use crate::runner::Runner;
use crate::store::StoreError;

/// How many runs of a sink are fed at once, and how long they are waited for.
const RUNS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(30);

/// Feeds the durable sinks of a runner with the events that workers without a live lease did not deliver to them, and returns
/// when they have all. The runs themselves may wait or have ended.
pub(in crate::runner) async fn deliver_lost(runner: &Runner) -> Result<(), StoreError> {
    for sink in &*runner.sinks {
        let Some(name) = sink.durable() else { continue };
        let lease = runner.lease().await?;
        loop {
            let runs = runner.store.take_sink(name, lease.owner(), RUNS).await?;
            let is_last = runs.len() < RUNS;
            let mut fed = Vec::new();
            for run in runs {
                // It was removed, or cannot be read now; then a later claim or worker delivers its events.
                let Ok(row) = runner.store.run(&run).await else { continue };
                let over = row.status.is_over();
                let feed = sink.feed(&runner.store, (&runner.state.live, &runner.lease), &run, row.next, over);
                fed.push(async move { feed.reached(row.next).await });
            }
            // A sink that hangs is fed on, but not waited for.
            _ = tokio::time::timeout(PATIENCE, futures::future::join_all(fed)).await;
            if is_last {
                break;
            }
        }
    }
    Ok(())
}
