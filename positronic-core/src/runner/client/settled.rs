//! How a run stands that makes no progress by itself.

use serde_json::Value;

use crate::machine::{BrainEnd, RunState, pending};
use crate::record::{Failure, Pending, Seq};
use crate::runner::ResumeError;

/// The current or final state of a run that makes no progress by itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    /// It completed with this result.
    Completed(Value),
    /// It failed.
    Failed(Failure),
    /// It was cancelled.
    Cancelled,
    /// It waits for these items.
    Waiting(Vec<Pending>),
    /// It is paused.
    Paused,
    /// Its worker stopped for this reason; the log has everything until then.
    Stopped(ResumeError),
}

impl Settled {
    /// Returns whether a run without work makes no progress by itself as of event `next`: it does if only a time has to pass.
    pub(in crate::runner) fn is_settled(state: &RunState, next: Seq) -> bool {
        state.next == next && !matches!(Self::of(state), Self::Waiting(pending) if pending.is_empty())
    }

    /// Returns the settled state from a run's state.
    pub(super) fn of(state: &RunState) -> Self {
        match state.root.as_ref().and_then(|root| root.end.as_ref()) {
            Some(BrainEnd::Completed(result)) => Self::Completed(result.clone()),
            Some(BrainEnd::Failed(failure)) => Self::Failed(failure.clone()),
            Some(BrainEnd::Cancelled) => Self::Cancelled,
            None if state.paused.is_some() => Self::Paused,
            None => Self::Waiting(pending(state)),
        }
    }
}
