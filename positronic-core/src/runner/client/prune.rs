//! Removal of runs that have ended: which of them no remaining run needs.

use std::collections::{HashMap, HashSet};

use indexmap::IndexSet;

use super::client::Client;
use crate::record::{RunId, RunSummary};
use crate::store::{RunFilter, RunPages, StoreError};

/// Removes runs, as [`Client::prune`] says.
pub(super) async fn prune(client: &Client, runs: &[RunSummary]) -> Result<Vec<RunId>, StoreError> {
    let mut removable = removable(client, runs).await?;
    let count = client.store().remove(&removable).await?;
    client.sweep().await?;
    if count < removable.len() {
        // Another process has just begun a run after one of them.
        let mut left: HashSet<RunId> = HashSet::new();
        for run in &removable {
            match client.store().run(run).await {
                Err(StoreError::NoSuchRun { .. }) => {}
                _ => _ = left.insert(run.clone()),
            }
        }
        removable.retain(|run| !left.contains(run));
    }
    Ok(removable)
}

/// Returns which of these runs may be removed. A run precedes those that it continues.
pub(super) async fn removable(client: &Client, runs: &[RunSummary]) -> Result<Vec<RunId>, StoreError> {
    let mut removable: IndexSet<RunId> =
        runs.iter().filter(|row| row.status.is_over()).map(|row| row.run.clone()).collect();
    if runs.iter().all(|row| row.conversation.is_none()) {
        return Ok(removable.into_iter().collect());
    }
    let before = predecessors(client).await?;
    for (run, after) in &before {
        // A run that stays anyway has its own walk.
        let mut needed = Some(after).filter(|_| !removable.contains(run));
        while let Some(run) = needed.filter(|run| removable.shift_remove(*run)) {
            needed = before.get(run);
        }
    }
    let mut earlier_first = IndexSet::new();
    for run in removable.iter().rev() {
        let new = |run: &&RunId| removable.contains(*run) && !earlier_first.contains(*run);
        let chain = std::iter::successors(Some(run).filter(new), |run| before.get(*run).filter(new));
        let chain: Vec<_> = chain.collect();
        earlier_first.extend(chain.into_iter().rev());
    }
    Ok(earlier_first.into_iter().rev().cloned().collect())
}

/// Returns the previous run of each run that continues one.
async fn predecessors(client: &Client) -> Result<HashMap<RunId, RunId>, StoreError> {
    let mut before = HashMap::new();
    let mut pages = RunPages::new(client.store(), RunFilter::builder().conversations(true).build());
    while let Some(page) = pages.next().await? {
        before.extend(page.into_iter().filter_map(|row| Some((row.run, row.after?))));
    }
    Ok(before)
}
