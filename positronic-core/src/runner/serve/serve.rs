//! Resumes all runs with work: once, or as long as a runner serves a store.

use futures::StreamExt as _;
use futures::future::join_all;
use serde_json::Value;
use tokio::task::JoinHandle;

use super::backoffs::POLL;
use super::queue::{Claims, WorkQueue};
use super::serve_event::ServeEvent;
use super::server::Server;
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

/// Serves a store's runs until it is dropped.
#[derive(Debug)]
pub struct Service {
    task: JoinHandle<()>,
}

impl Service {
    /// Serves a store with a runner.
    pub(in crate::runner) fn start(runner: &Runner) -> Self {
        let runner = runner.clone();
        Self { task: tokio::spawn(async move { serve_alone(runner).await }) }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves a store with one runner until the runner releases its runs.
async fn serve_alone(runner: Runner) {
    let server = Server::alone(&runner, runner.clone()).await;
    let mut events = server.events();
    loop {
        tokio::select! {
            biased;
            () = runner.state.registry.left() => return,
            Some(event) = events.next() => log(&event),
        }
    }
}

fn log(event: &ServeEvent) {
    match event {
        ServeEvent::Claimed { run, .. } => tracing::info!(%run, "claimed the run"),
        ServeEvent::Suspect { run, crashes } => {
            tracing::warn!(%run, count = crashes.count, during = %crashes.during, "{}", crashes.sentence());
        }
        ServeEvent::Settled { run, settled } => tracing::debug!(%run, ?settled, "the run has settled"),
        ServeEvent::Released { run } => tracing::info!(%run, "released the run"),
        ServeEvent::Refused { run, error } => tracing::warn!(%run, %error, "cannot claim the run"),
        ServeEvent::Fired { timer, run } => {
            tracing::info!(trigger = %timer.trigger.id, %run, "started the trigger's run");
        }
        ServeEvent::NotFired { timer, error } => {
            tracing::warn!(trigger = %timer.trigger.id, %error, "cannot start the trigger's run");
        }
        ServeEvent::Failed(error) => tracing::warn!(%error, "cannot list the work of the store"),
    }
}
