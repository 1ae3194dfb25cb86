//! Which runs nobody works on: those of a worker that has died look as if they were at work, and those whose time is up as if
//! they waited.

use std::collections::HashSet;

use positronic_core::record::{RunId, RunSummary, Timestamp};
use positronic_core::runner::Client;
use positronic_core::store::StoreError;

/// Finds the runs that have work, and that nobody works on.
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

/// Says that nobody has a run in hand, and how it goes on; a `run` that asks lets go of it for that time, and takes it up again.
pub(crate) fn nobody(work: &str) -> String {
    format!("nobody has the run in hand; where no `run` or `work` is open that takes it up, go on with: {work}")
}

/// Writes a run's status, and that nobody works on it.
pub(super) fn status(row: &RunSummary, alone: &HashSet<RunId>) -> String {
    format!("{}{}", row.status.as_str(), if alone.contains(&row.run) { " (nobody)" } else { "" })
}
