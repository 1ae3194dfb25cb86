//! Events of a server, and the errors in them: which refusals are final.

use super::find_runner::NoRunner;
use crate::record::{ClaimRefusal, Crashes, RunId, Seq, Timer};
use crate::runner::{FireError, ResumeError, Settled};
use crate::store::StoreError;

/// The reason why a server cannot claim a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// There is no runner for it.
    #[error(transparent)]
    NoRunner(#[from] NoRunner),
    /// Its runner cannot resume it.
    #[error(transparent)]
    Resume(#[from] ResumeError),
}

impl ClaimError {
    /// Returns why the run can never be claimed here as it is; `None` if a retry may succeed.
    #[must_use]
    pub const fn refusal(&self) -> Option<ClaimRefusal> {
        match self {
            Self::NoRunner(none) => none.refusal,
            Self::Resume(error) => error.refusal(),
        }
    }
}

/// The reason why a due trigger does not fire here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotFired {
    /// There is no runner for it.
    #[error(transparent)]
    NoRunner(#[from] NoRunner),
    /// Its run cannot be started.
    #[error(transparent)]
    Fire(#[from] FireError),
}

/// An action of a server.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeEvent {
    /// The server claimed a run with work.
    Claimed {
        /// The run.
        run: RunId,
        /// The number of its next event at that time.
        from: Seq,
    },
    /// The server claimed a run during whose work the process ended repeatedly. It works on a few such runs at once.
    Suspect {
        /// The run.
        run: RunId,
        /// How often the process ended.
        crashes: Crashes,
    },
    /// A run that was claimed or started here has ended, waits, is paused, or its worker stopped.
    Settled {
        /// The run.
        run: RunId,
        /// The settled state.
        settled: Settled,
    },
    /// A run was released to other workers, because the server releases its runs.
    Released {
        /// The run.
        run: RunId,
    },
    /// A run cannot be claimed here. It is tried again when it changes, and also without a change if
    /// [`ClaimError::refusal`] is `None`.
    Refused {
        /// The run.
        run: RunId,
        /// The reason.
        error: ClaimError,
    },
    /// A due trigger started a run.
    Fired {
        /// The trigger.
        timer: Box<Timer>,
        /// The run.
        run: RunId,
    },
    /// A due trigger cannot start a run here. It is excluded for a while or until its next time.
    NotFired {
        /// The trigger.
        timer: Box<Timer>,
        /// The reason.
        error: NotFired,
    },
    /// The store could not list the runs with work or the due triggers. The server retries within a second.
    Failed(StoreError),
}
