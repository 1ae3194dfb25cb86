//! Unclaimed runs with work: after a worker's death they look running, and after an expiry they look
//! waiting.

use std::collections::HashSet;

use positronic_core::record::{RunId, RunSummary, Timestamp};
use positronic_core::runner::Client;
use positronic_core::store::StoreError;

/// Finds the runs that have work and no live worker.
pub(crate) async fn alone(
    client: &Client,
    rows: impl Iterator<Item = &RunSummary>,
    now: Timestamp,
) -> Result<HashSet<RunId>, StoreError> {
    let mut alone = HashSet::new();
    for row in rows.filter(|row| row.has_work(now)) {
        if client.worker(row).await?.is_none() {
            alone.insert(row.run.clone());
        }
    }
    Ok(alone)
}

/// Reports that no worker has claimed a run, and how to continue it; a `run` that asks releases its run meanwhile.
pub(crate) fn nobody(work: &str) -> String {
    format!("no worker has claimed the run; unless a `run` or `work` is open for it, continue it with: {work}")
}

/// Renders a run's status, and whether it is unclaimed.
pub(super) fn status(row: &RunSummary, alone: &HashSet<RunId>) -> String {
    format!("{}{}", row.status.as_str(), if alone.contains(&row.run) { " (no worker)" } else { "" })
}
