//! Unclaimed runs with work: they look running after the death of a worker, and waiting once an answer has expired or a retry is due.

use std::collections::HashSet;

use positronic_core::record::{RunId, RunSummary, Timestamp};
use positronic_core::runner::Client;
use positronic_core::store::StoreError;

/// Finds the runs that have work and no live worker.
pub(crate) async fn runs_without_worker(
    client: &Client,
    rows: impl Iterator<Item = &RunSummary>,
    now: Timestamp,
) -> Result<HashSet<RunId>, StoreError> {
    let mut unclaimed = HashSet::new();
    for row in rows.filter(|row| row.has_work(now)) {
        if client.worker(row).await?.is_none() {
            unclaimed.insert(row.run.clone());
        }
    }
    Ok(unclaimed)
}
