//! The reasons why a worker stops at a run, or does not claim it.

use crate::machine::IllegalEvent;
use crate::record::{ClaimRefusal, Path, RunId};
use crate::store::StoreError;

/// The message for a run that a runner does not claim, or no longer continues, because it releases all of them.
pub(in crate::runner) const LEAVES: &str = "the worker releases its runs; another runner continues them";

/// The reason why a worker does not claim a run, or stopped working on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// Another worker has claimed it.
    #[error("the worker `{by}` has claimed the run and continues it")]
    Claimed {
        /// The worker.
        by: String,
    },
    /// The process ended so often during its work that it is not claimed beside other such runs. It is claimed later.
    #[error(
        "the process ended {crashes} times in a row during work on the run, so it waits until other such runs have made progress"
    )]
    Quarantined {
        /// The number of crashes.
        crashes: u32,
    },
    /// The worker's lease has lapsed: it could not renew it in time, so another worker may claim the run.
    #[error("the worker `{owner}` has lost its lease{}", abandoned(.in_flight))]
    LeaseLost {
        /// The worker.
        owner: String,
        /// The work in flight that it has abandoned, and whose outcome is unknown.
        in_flight: Vec<Path>,
    },
    /// The run has ended.
    #[error("the run `{run}` has ended")]
    Over {
        /// The run.
        run: RunId,
    },
    /// The runner does not know the run's brain.
    #[error("the run is of the brain `{brain}`, which this runner does not know; add it with `.brain(…)`")]
    NoBrain {
        /// The brain's title.
        brain: String,
    },
    /// The brain's code differs from the code that the run began with.
    #[error(
        "the code has changed since the run began: {difference}; resume it with the old code, or fork it where the new \
         code matches"
    )]
    Changed {
        /// What differs.
        difference: String,
    },
    /// The run has a limit of money that the runner's prices cannot enforce.
    #[error("the run has a limit of money: {what}; resume it with the prices that it began with")]
    Prices {
        /// What is wrong with the runner's prices.
        what: String,
    },
    /// The runner releases its runs and claims no more: [`Runner::release`](crate::runner::Runner::release).
    #[error("{LEAVES}")]
    Leaves,
    /// The log does not follow the engine's rules.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    /// The author's code panicked before the work began.
    #[error("cannot resume the run: {reason}")]
    Panicked {
        /// The panic and its message.
        reason: String,
    },
    /// The services of the brain are not available now.
    #[error("cannot provide the services of the brain: {reason}")]
    Services {
        /// The provider's error, or the message of its panic.
        reason: String,
    },
    /// A due effect led to no event.
    #[error("the run makes no progress: a due effect led to no event; this is a bug in positronic, please report it")]
    NoProgress,
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

impl ResumeError {
    /// Returns the error of a run that another worker has claimed, which the store does not name.
    pub(super) fn claimed() -> Self {
        Self::Claimed { by: "another worker".to_owned() }
    }

    /// Returns why no worker with the same code and prices can claim the run; `None` if a retry may succeed.
    #[must_use]
    pub const fn refusal(&self) -> Option<ClaimRefusal> {
        match self {
            Self::NoBrain { .. } => Some(ClaimRefusal::NoBrain),
            Self::Changed { .. } => Some(ClaimRefusal::Changed),
            Self::Prices { .. } => Some(ClaimRefusal::Prices),
            _ => None,
        }
    }
}

impl From<StoreError> for ResumeError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Fenced { .. } => Self::claimed(),
            other => Self::Store(other),
        }
    }
}

/// Returns whether a retry may succeed: the store failed at an operation, or its answer was lost.
pub(in crate::runner) const fn passes(stop: &ResumeError) -> bool {
    matches!(stop, ResumeError::Store(StoreError::Failed { .. } | StoreError::Unknown { .. }))
}

fn abandoned(in_flight: &[Path]) -> String {
    match in_flight {
        [] => String::new(),
        paths => {
            let paths: Vec<_> = paths.iter().map(|path| format!("`{path}`")).collect();
            format!(" and has abandoned {}, whose outcome is unknown", paths.join(", "))
        }
    }
}
