//! What a server of a store does and cannot do, as values, and where it finds its runners.

use futures::future::BoxFuture;

use super::{FireError, ResumeError, Runner, Settled};
use crate::record::{ClaimRefusal, RunId, RunSummary, Seq, Timer};
use crate::store::StoreError;

/// Finds a runner for each run and each trigger of a store that is served, such as the one that has the brain's models. A
/// [`Runner`] finds itself.
pub trait FindRunner: Send + Sync {
    /// Finds the runner for a run that has work.
    ///
    /// # Errors
    ///
    /// [`NoRunner`] where none can work on the run here.
    fn for_run<'a>(&'a self, run: &'a RunSummary) -> BoxFuture<'a, Result<Runner, NoRunner>>;

    /// Finds the runner for a trigger that is due.
    ///
    /// # Errors
    ///
    /// [`NoRunner`] where none can start it here.
    fn for_trigger<'a>(&'a self, timer: &'a Timer) -> BoxFuture<'a, Result<Runner, NoRunner>>;
}

impl FindRunner for Runner {
    fn for_run<'a>(&'a self, _: &'a RunSummary) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }

    fn for_trigger<'a>(&'a self, _: &'a Timer) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}

/// Says why there is no runner for a run or a trigger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NoRunner {
    /// What is missing.
    pub message: String,
    /// Why no later try can go well either; none where one may.
    pub refusal: Option<ClaimRefusal>,
}

/// Says why a server cannot claim a run.
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
    /// Returns why the run can never be claimed here as it is; none where another try may go well.
    #[must_use]
    pub const fn refusal(&self) -> Option<ClaimRefusal> {
        match self {
            Self::NoRunner(none) => none.refusal,
            Self::Resume(error) => error.refusal(),
        }
    }
}

/// Says why a trigger that is due does not fire here.
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

/// What a server does with the runs of its store.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeEvent {
    /// A run with work was claimed.
    Claimed {
        /// The run.
        run: RunId,
        /// The number of its next event when its work was found.
        from: Seq,
    },
    /// A run that was claimed or started here has ended, waits, is paused, or its worker had to stop.
    Settled {
        /// The run.
        run: RunId,
        /// How it has settled.
        settled: Settled,
    },
    /// A run is left to other workers, since the server is told to release its runs.
    Released {
        /// The run.
        run: RunId,
    },
    /// A run cannot be claimed here. It is tried again when something changes in it, and also without that where
    /// [`ClaimError::refusal`] is none.
    Refused {
        /// The run.
        run: RunId,
        /// Why.
        error: ClaimError,
    },
    /// A trigger that was due has started a run.
    Fired {
        /// The trigger.
        timer: Box<Timer>,
        /// The run.
        run: RunId,
    },
    /// A trigger that is due cannot start a run here. It is left out for a while or until its next time.
    NotFired {
        /// The trigger.
        timer: Box<Timer>,
        /// Why.
        error: NotFired,
    },
    /// The store could not list the runs with work, or the triggers that are due. It is asked again in a second.
    Failed(StoreError),
}
