//! Runs that nobody works on are found and taken up: all of them once, or for as long as a store is served.
//!
//! ```text
//! serve:   what is due ──▶ a place ──▶ resume: load, find the code again, RUN_CLAIMED ──▶ the run's own task
//!              ▲                          │
//!              └── refused, or rests ◀────┘
//! ```
//!
//! Runs are taken up beside each other, in the order in which they are found. For the code of an open round, plugins are
//! asked, which may wait for a server that does not answer. That holds up no other run: a place is for a moment, and who
//! takes longer goes on without one.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::firing::look;
use super::{Due, ResumeError, Run, Runner};
use crate::record::{RunId, RunSummary};
use crate::store::{RunFilter, StoreError};

/// How many runs are taken up at once, so that a store full of them is not loaded all at a time.
const AT_ONCE: usize = 16;
/// How long a run keeps its place: what takes longer waits for somebody else.
const MOMENT: Duration = Duration::from_secs(1);

/// The places for runs that are taken up. Clones of a runner share them.
#[derive(Clone)]
pub(super) struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Runner {
    /// Goes on with a run as [`Runner::resume`] does, in its turn: for whoever finds many runs with work. No more than 16 are
    /// taken up at once; one that takes longer than a second, since a plugin waits for its server, keeps no other waiting.
    ///
    /// # Errors
    ///
    /// As [`Runner::resume`].
    pub async fn take_up(&self, run: &RunId) -> Result<Run<Value>, ResumeError> {
        let place = self.places.0.acquire().await;
        let mut resumed = pin!(self.resume(run));
        tokio::select! {
            biased;
            resumed = &mut resumed => return resumed,
            () = tokio::time::sleep(MOMENT) => {}
        }
        drop(place);
        resumed.await
    }

    /// Goes on with every run in which there is work that no worker does, as after a crash. It returns when all are taken
    /// up; a run whose plugins wait for a server keeps no other from going on meanwhile.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the runs cannot be listed. What is wrong with one run stands beside it.
    pub async fn recover(&self) -> Result<Vec<(RunId, Result<Run<Value>, ResumeError>)>, StoreError> {
        let due = RunFilter::builder().due(self.clock.now()).build();
        let mut free = Vec::new();
        for row in self.store.runs(&due).await? {
            if self.is_free(&row).await? {
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
        Service { task: tokio::spawn(serve(self.clone())) }
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

async fn serve(runner: Runner) {
    let (mut due, mut firing) = (runner.due(), runner.control().firing());
    let (mut taking, mut taken) = (HashSet::new(), FuturesUnordered::new());
    while !runner.in_hand.is_leaving() {
        tokio::select! {
            Some((row, refused)) = taken.next() => {
                note(&row, refused, &mut taking, &mut due);
                continue;
            }
            () = due.wait() => {}
        }
        look(&mut firing, &runner).await;
        match due.rows(|run| taking.contains(run) || runner.in_hand.has(run)).await {
            Ok(rows) => {
                taking.extend(rows.iter().map(|row| row.run.clone()));
                taken.extend(rows.into_iter().map(|row| take(&runner, row)));
            }
            Err(error) => tracing::warn!(%error, "the runs to be served cannot be listed"),
        }
    }
}

/// Takes a run up that nobody works on. Answers why it does not go on, where it does not.
async fn take(runner: &Runner, row: RunSummary) -> (RunSummary, Option<ResumeError>) {
    match runner.is_free(&row).await {
        Ok(true) => {}
        Ok(false) => return (row, None),
        Err(error) => {
            tracing::warn!(run = %row.run, %error, "it is not known who has the run in hand");
            return (row, None);
        }
    }
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
        None | Some(ResumeError::Held { .. } | ResumeError::Over { .. } | ResumeError::Leaves) => {}
        Some(error @ (ResumeError::NoBrain { .. } | ResumeError::Changed { .. } | ResumeError::Prices { .. })) => {
            tracing::warn!(run = %row.run, %error, "the run cannot go on here");
            due.refuse(row);
        }
        Some(error) => {
            tracing::warn!(run = %row.run, %error, "the run cannot go on for now");
            due.rest(row, error.to_string());
        }
    }
}
