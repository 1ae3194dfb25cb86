//! A runner that resumes all runs with work: once, or for as long as it serves a store.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::join_all;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use super::open::Resumption;
use super::serve_event::ServeEvent;
use super::server::Server;
use super::{ResumeError, RunHandle, Runner};
use crate::record::RunId;
use crate::store::{RunFilter, StoreError};

/// How many runs are loaded at once, so that a store full of them is not loaded all at a time.
const AT_ONCE: usize = 16;

/// The places for runs that are loaded. Clones of a runner share them.
#[derive(Clone)]
pub(super) struct Places(Arc<Semaphore>);

/// A place, until it is dropped.
pub(super) type Place = OwnedSemaphorePermit;

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Runner {
    /// Resumes a run in its turn, for a server: no more than 16 are loaded at once.
    pub(super) async fn claim_due(&self, run: &RunId) -> Result<RunHandle<Value>, ResumeError> {
        // Nobody closes the places.
        let place = Arc::clone(&self.places.0).acquire_owned().await.ok();
        self.resume_as(run, Resumption { place, definition: None, served: true }).await
    }

    /// Resumes every run that has work and no live worker, as after a crash. It returns when all are claimed; a run whose
    /// plugins wait for a server keeps no other from going on meanwhile.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the runs cannot be listed. What is wrong with one run stands beside it.
    pub async fn recover(&self) -> Result<Vec<(RunId, Result<RunHandle<Value>, ResumeError>)>, StoreError> {
        let due = RunFilter::builder().due(self.clock.now()).build();
        let mut free = Vec::new();
        for row in self.store.runs(&due).await? {
            if self.claimed_by(&row).await?.is_none() {
                free.push(row.run);
            }
        }
        let claim = |run| async move {
            let resumed = self.claim_due(&run).await;
            (run, resumed)
        };
        Ok(join_all(free.into_iter().map(claim)).await)
    }

    /// Serves the store's runs with this runner until what it returns is dropped: every run is claimed that has work and no
    /// live worker, after a crash, after a signal of another process, or since something is due, and triggers are started.
    /// What it does is written to `tracing`; [`Server`] says it as values.
    #[must_use = "dropping it stops serving"]
    pub fn serve(&self) -> Service {
        let runner = self.clone();
        Service { task: tokio::spawn(async move { serve_alone(runner).await }) }
    }
}

/// Serves a store's runs until it is dropped.
#[derive(Debug)]
pub struct Service {
    task: JoinHandle<()>,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves a store with one runner, until that one releases its runs.
async fn serve_alone(runner: Runner) {
    let server = Server::alone(&runner, runner.clone()).await;
    let mut events = server.events();
    loop {
        tokio::select! {
            biased;
            () = runner.in_hand.left() => return,
            Some(event) = events.next() => log(&event),
        }
    }
}

fn log(event: &ServeEvent) {
    match event {
        ServeEvent::Claimed { run, .. } => tracing::info!(%run, "claimed the run"),
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
