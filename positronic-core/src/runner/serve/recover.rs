//! Resumes every run of a store that has work and no live worker, once.

use futures::future::join_all;
use serde_json::Value;

use super::backoffs::POLL;
use super::queue::{Claims, WorkQueue};
use crate::record::{RunId, RunSummary};
use crate::runner::clock::sleep;
use crate::runner::{ResumeError, RunHandle, Runner};
use crate::store::StoreError;

/// How many runs are reserved at once.
const PAGE: usize = 256;

/// Resumes every run that has work and no live worker.
pub(in crate::runner) async fn recover(
    runner: &Runner,
) -> Result<Vec<(RunId, Result<RunHandle<Value>, ResumeError>)>, StoreError> {
    let runner = &runner.driven();
    let queue = WorkQueue::new(runner.client(), Claims::of(runner), Some(runner.code.name()), true);
    let mut free = Vec::new();
    loop {
        let due = queue.reserve(Vec::new(), PAGE).await?;
        if due.is_empty() {
            break;
        }
        free.extend(due.into_iter().map(|due| due.summary));
    }
    let queue = &queue;
    let claim = |row: RunSummary| async move {
        let resumed = loop {
            let permit = runner.state.load_permits.take().await;
            match runner.resume_with(&row.run, permit, None).await {
                Err(ResumeError::Quarantined { .. }) => sleep(POLL).await,
                resumed => break resumed,
            }
        };
        if resumed.is_err() {
            queue.release(&row).await;
        }
        (row.run, resumed)
    };
    Ok(join_all(free.into_iter().map(claim)).await)
}
