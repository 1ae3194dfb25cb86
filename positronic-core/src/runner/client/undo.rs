//! The undo of a completed run by hand: a fork that stands before the run's end undoes its stages. The ended log stays as it is.

use super::fork::{Fork, ForkError, fork_log};
use crate::machine::{RunState, undo_by_hand};
use crate::record::{Actor, EventKind, RunId, Seq, Status};
use crate::runner::Client;
use crate::store::StoreError;

/// The reason why a run is not undone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UndoError {
    /// The run has not completed. One that fails or is cancelled undoes its stages itself.
    #[error("the run is {}; only a completed run is undone by hand, and one that fails or is cancelled undoes its stages itself", .status.as_str())]
    NotCompleted {
        /// Its status.
        status: Status,
    },
    /// None of its stages has an undo.
    #[error("none of the completed stages has an undo; give them one with `.compensate(…)`")]
    NothingToUndo,
    /// The run cannot be forked.
    #[error(transparent)]
    Fork(#[from] ForkError),
}

impl From<StoreError> for UndoError {
    fn from(error: StoreError) -> Self {
        Self::Fork(error.into())
    }
}

pub(super) async fn undo(client: &Client, run: &RunId, actor: Actor) -> Result<RunId, UndoError> {
    let status = client.store().run(run).await?.status;
    if status != Status::Completed {
        return Err(UndoError::NotCompleted { status });
    }
    let log = client.events(run, Seq(0)).await?;
    let is_end = |event: &&std::sync::Arc<crate::record::Event>| {
        matches!(event.kind, EventKind::BrainComplete { .. }) && event.path.is_root()
    };
    let Some(at) = log.iter().rfind(is_end).and_then(|end| end.seq.0.checked_sub(1)).map(Seq) else {
        return Err(UndoError::NotCompleted { status });
    };
    let past = log.iter().take(at.next().index()).map(|event| &**event);
    let state = RunState::replay(past).map_err(|error| StoreError::corrupt_log(run, error))?;
    let begins = state.root.as_deref().and_then(|root| undo_by_hand(root, actor.clone()));
    let begins = begins.ok_or(UndoError::NothingToUndo)?;
    let new = RunId::from(format!("{run}~undo"));
    let fork = Fork::builder().actor(actor).run(new.clone()).build();
    match fork_log(client, run, &log, at, fork, begins).await {
        // It was undone before.
        Err(ForkError::Store(StoreError::Conflict { .. })) => Ok(new),
        undone => Ok(undone?),
    }
}
