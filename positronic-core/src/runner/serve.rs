//! Runs that nobody works on are found and taken up: all of them once, or for as long as a store is served.
//!
//! ```text
//! serve:   what is due ──▶ a place: load ──▶ find the code again, RUN_CLAIMED ──▶ the run's own task
//!              ▲                  │                     │
//!              └── refused, rests ┴─────────────────────┘
//! ```
//!
//! Runs are taken up beside each other, in the order in which they are found. For the code of an open iteration, plugins are
//! asked, which may wait for a server that does not answer. That holds up no other run: a place is for what a run loads, and
//! is free again before its plugins are asked. Triggers fire beside all that, one after the other.

use std::collections::HashSet;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::{join, join_all};
use futures::stream::FuturesUnordered;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use super::firing::fire_all;
use super::open::Resumption;
use super::{Due, ResumeError, RunHandle, Runner};
use crate::record::{RunId, RunSummary};
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
    /// Goes on with a run as [`Runner::resume`] does, in its turn: for whoever finds many runs with work. No more than 16 are
    /// loaded at once; one that is loaded, and whose plugins wait for their servers, keeps no other waiting.
    ///
    /// # Errors
    ///
    /// As [`Runner::resume`].
    pub async fn take_up(&self, run: &RunId) -> Result<RunHandle<Value>, ResumeError> {
        // Nobody closes the places.
        let place = Arc::clone(&self.places.0).acquire_owned().await.ok();
        self.resume_as(run, Resumption { place, definition: None, served: true }).await
    }

    /// Goes on with every run in which there is work that no worker does, as after a crash. It returns when all are taken
    /// up; a run whose plugins wait for a server keeps no other from going on meanwhile.
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
        let take_up = |run| async move {
            let resumed = self.take_up(&run).await;
            (run, resumed)
        };
        Ok(join_all(free.into_iter().map(take_up)).await)
    }

    /// Serves the store's runs until what it returns is dropped: whatever work there is in them that no worker does,
    /// after a crash, after a signal of another process, or since something is due, is done here.
    #[must_use = "dropping it stops serving"]
    pub fn serve(&self) -> Service {
        let runner = self.clone();
        Service { task: tokio::spawn(async move { _ = join(take_all(&runner), fire_all(&runner)).await }) }
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

/// Takes up whatever is due, until the runner lets go of its runs.
async fn take_all(runner: &Runner) {
    let mut due = runner.due();
    let (mut taking, mut taken) = (HashSet::new(), FuturesUnordered::new());
    while !runner.in_hand.is_leaving() {
        tokio::select! {
            Some((row, refused)) = taken.next() => {
                note(&row, refused, &mut taking, &mut due);
                continue;
            }
            () = due.wait() => {}
        }
        match due.rows(|run| taking.contains(run) || runner.in_hand.has(run)).await {
            Ok(rows) => {
                taking.extend(rows.iter().map(|row| row.run.clone()));
                taken.extend(rows.into_iter().map(|row| take(runner, row)));
            }
            Err(error) => tracing::warn!(%error, "the runs to be served cannot be listed"),
        }
    }
}

/// Takes a run up that nobody works on. Answers why it does not go on, where it does not.
async fn take(runner: &Runner, row: RunSummary) -> (RunSummary, Option<ResumeError>) {
    let refused = runner.take_up(&row.run).await.err();
    if refused.is_none() {
        tracing::info!(run = %row.run, "the run goes on here");
    }
    (row, refused)
}

/// Notes what became of a run that was to be taken up.
fn note(row: &RunSummary, refused: Option<ResumeError>, taking: &mut HashSet<RunId>, due: &mut Due) {
    taking.remove(&row.run);
    match refused {
        None | Some(ResumeError::Claimed { .. } | ResumeError::Over { .. } | ResumeError::Leaves) => {}
        Some(error) => match error.refusal() {
            Some(reason) => {
                tracing::warn!(run = %row.run, %error, "the run cannot be claimed here");
                due.refuse(row, reason, &error.to_string());
            }
            None => {
                tracing::warn!(run = %row.run, %error, "the run cannot be claimed for now");
                due.rest(row, error.to_string());
            }
        },
    }
}
