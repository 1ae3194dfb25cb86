//! Retries of runs that have failed or were parked: work continues at the failed place, and what has a result is not repeated.
//!
//! A parked run continues itself. A failed one has ended, so a fork at the place of the failure continues its work; the fork's
//! id follows from the failure, so that a repeated retry finds the same fork.

use std::sync::Arc;

use serde_json::Value;

use super::fork::{Fork, ForkError, difference, fork_log};
use super::signals::SignalError;
use crate::machine::{RetryPoint, RunState, retry_point};
use crate::record::{Actor, Event, RunId, RunSummary, Seq, SignalKind, Status, Timestamp, sha256};
use crate::runner::{Client, ResumeError, RunHandle, Runner, code_check};
use crate::store::StoreError;

/// What a retry leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retried {
    /// The parked run itself continues, since this event.
    Resumed(Seq),
    /// A fork continues, after this event of the failed run.
    Forked {
        /// The fork.
        run: RunId,
        /// The last event that both share.
        at: Seq,
    },
}

/// The reason why a run is not retried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetryError {
    /// The run has neither failed, nor was it parked.
    #[error("the run is {}; only a run that has failed or was parked can be retried", .status.as_str())]
    NotFailed {
        /// Its status.
        status: Status,
    },
    /// It failed at a limit, which a retry would reach again.
    #[error(
        "{failure}; a retry would reach the same limit again: raise it in the code and fork the run before the stage"
    )]
    AtLimit {
        /// The failure.
        failure: String,
    },
    /// Its completed stages were undone, so nothing is there to continue from.
    #[error("the run failed, and its completed stages were undone; start it anew, or fork it before the first of them")]
    Undone,
    /// The code cannot continue the run ([`Runner::check_code`], [`Runner::fork_difference`]).
    #[error("the code cannot continue the run: {difference}")]
    Changed {
        /// How the code differs.
        difference: String,
    },
    /// The parked run did not accept it.
    #[error(transparent)]
    Signal(#[from] SignalError),
    /// The failed run cannot be forked, or its fork cannot be resumed.
    #[error(transparent)]
    Fork(#[from] ForkError),
    /// The run, or its fork, cannot be resumed.
    #[error("the run `{run}` cannot be resumed: {reason}")]
    Resume {
        /// The run.
        run: RunId,
        /// The reason.
        reason: ResumeError,
    },
}

impl From<StoreError> for RetryError {
    fn from(error: StoreError) -> Self {
        Self::Fork(error.into())
    }
}

pub(super) async fn retry(client: &Client, run: &RunId, actor: Actor) -> Result<Retried, RetryError> {
    let row = client.store().run(run).await?;
    match row.status {
        Status::Paused if row.parked => Ok(Retried::Resumed(client.signal(run, SignalKind::Resume, actor).await?)),
        Status::Failed => fork_failed(client, &row, failed_log(client, &row).await?, actor).await,
        status => Err(RetryError::NotFailed { status }),
    }
}

/// Reads the log of a failed run. Returns it with the event after which a retry forks the run.
pub(super) async fn failed_log(client: &Client, row: &RunSummary) -> Result<(Vec<Arc<Event>>, Seq), RetryError> {
    let log = client.events(&row.run, Seq(0)).await?;
    let found = retry_point(log.iter().map(|event| &**event));
    match found.map_err(|error| StoreError::corrupt_log(&row.run, error))? {
        Some(RetryPoint { at_limit: true, .. }) => {
            Err(RetryError::AtLimit { failure: row.why.clone().unwrap_or_default() })
        }
        Some(RetryPoint { undone: true, .. }) => Err(RetryError::Undone),
        Some(RetryPoint { before, .. }) => Ok((log, before)),
        None => Err(RetryError::NotFailed { status: row.status }),
    }
}

/// Forks a failed run at the place of its failure; a repeated retry finds the fork.
async fn fork_failed(
    client: &Client,
    row: &RunSummary,
    (log, at): (Vec<Arc<Event>>, Seq),
    actor: Actor,
) -> Result<Retried, RetryError> {
    let new = retry_id(&row.run, at, row.since);
    let fork = Fork::builder().actor(actor).run(new.clone()).build();
    match fork_log(client, &row.run, &log, at, fork, Vec::new()).await {
        Ok(run) => Ok(Retried::Forked { run, at }),
        Err(ForkError::Store(StoreError::Conflict { .. })) => Ok(Retried::Forked { run: new, at }),
        Err(error) => Err(error.into()),
    }
}

/// Records a retry, unless the runner knows the brain and its code cannot continue the run.
pub(in crate::runner) async fn record(runner: &Runner, run: &RunId, by: Actor) -> Result<Retried, RetryError> {
    let client = runner.client();
    let row = client.store().run(run).await?;
    if row.status != Status::Failed {
        return match code_check::check(runner, run).await?.brain {
            Some(difference) => Err(RetryError::Changed { difference }),
            None => retry(&client, run, by).await,
        };
    }
    let (log, at) = failed_log(&client, &row).await?;
    let shared = log.iter().take(at.next().index()).map(|event| &**event);
    let state = RunState::replay(shared).map_err(|error| StoreError::corrupt_log(run, error))?;
    match difference(runner, &state) {
        Some(difference) => Err(RetryError::Changed { difference }),
        None => fork_failed(&client, &row, (log, at), by).await,
    }
}

/// Retries a run and works on it.
pub(in crate::runner) async fn retry_and_resume(
    runner: &Runner,
    run: &RunId,
    by: Actor,
) -> Result<RunHandle<Value>, RetryError> {
    let run = match record(runner, run, by).await? {
        Retried::Resumed(_) => run.clone(),
        Retried::Forked { run, .. } => run,
    };
    runner.resume(&run).await.map_err(|reason| RetryError::Resume { run, reason })
}

/// Returns the id of the fork that retries a run: a UUID of version 7 with the time of the failure, the same for each retry.
fn retry_id(run: &RunId, at: Seq, failed: Timestamp) -> RunId {
    let hash = sha256(format!("retry of {run} after event {at}").as_bytes());
    let part = |from, to| hash.get(from..to).unwrap_or_default();
    let millis = failed.0.unsigned_abs() / 1000;
    let (high, low) = (millis >> 16 & 0xffff_ffff, millis & 0xffff);
    RunId::from(format!("{high:08x}-{low:04x}-7{}-8{}-{}", part(0, 3), part(3, 6), part(6, 18)))
}
