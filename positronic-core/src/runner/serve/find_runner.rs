//! How a server finds the runner for a run or a trigger.

use futures::future::BoxFuture;

use crate::record::{ClaimRefusal, RunSummary, Timer};
use crate::runner::Runner;

/// Finds a runner for each run and each trigger of a served store, such as the one with the brain's models. A
/// [`Runner`] finds itself.
pub trait FindRunner: Send + Sync {
    /// Finds the runner for a run that has work.
    ///
    /// # Errors
    ///
    /// [`NoRunner`] if no runner can work on the run here.
    fn for_run<'a>(&'a self, run: &'a RunSummary) -> BoxFuture<'a, Result<Runner, NoRunner>>;

    /// Finds the runner for a due trigger.
    ///
    /// # Errors
    ///
    /// [`NoRunner`] if no runner can start it here.
    fn for_trigger<'a>(&'a self, timer: &'a Timer) -> BoxFuture<'a, Result<Runner, NoRunner>>;

    /// Returns a text that identifies the code of its runners, such as a hash of its brains. Servers with the same code
    /// do not load a run that one of them has refused. With `None` only the server itself remembers it.
    fn code(&self) -> Option<String> {
        None
    }
}

impl FindRunner for Runner {
    fn for_run<'a>(&'a self, _: &'a RunSummary) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }

    fn for_trigger<'a>(&'a self, _: &'a Timer) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }

    fn code(&self) -> Option<String> {
        Some(self.code.name())
    }
}

/// The reason why there is no runner for a run or a trigger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NoRunner {
    /// What is missing.
    pub message: String,
    /// Why every retry fails, too; `None` if a retry may succeed.
    pub refusal: Option<ClaimRefusal>,
}
