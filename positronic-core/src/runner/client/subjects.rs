//! The methods of the client whose work has a module of its own: following, forks, retries, schedules and conversations.

use futures::stream::BoxStream;

use super::follow::{RunUpdate, follow_log};
use super::fork::{Fork, ForkError, end_of_transition, fork_log};
use super::retry::{Retried, RetryError, retry, retry_event};
use crate::record::{Actor, Path, RunId, RunSummary, Seq};
#[cfg(feature = "schedules")]
use crate::runner::Schedules;
use crate::runner::{Client, Conversations};
use crate::store::StoreError;

impl Client {
    /// Follows a run of any process from an event's number on, as [`RunHandle::follow`](crate::runner::RunHandle::follow)
    /// does, except that the log alone says when the run settles, so it is never
    /// [`Settled::Stopped`](crate::runner::Settled::Stopped). Events of another process arrive within a second. The client
    /// of a runner also streams the deltas of that runner's workers; [`Client::new`] streams none.
    ///
    /// # Errors
    ///
    /// As [`RunHandle::follow`](crate::runner::RunHandle::follow); [`StoreError::NoSuchRun`] if there is no such run.
    #[must_use]
    pub fn follow(&self, run: &RunId, from: Seq) -> BoxStream<'static, Result<RunUpdate, StoreError>> {
        follow_log(self, run, from)
    }

    /// Creates a new run whose log begins with the events of another run up to and including `at`; the original is
    /// unchanged. No worker claims the fork until [`Runner::fork`](crate::runner::Runner::fork) or
    /// [`Runner::resume`](crate::runner::Runner::resume). If event `at` belongs to those after it
    /// ([`Event::with_next`](crate::record::Event::with_next)), as an answer to its calls, the fork is made after the last
    /// of them. Effects that the fork reruns happen again: its tools are real and get another
    /// [`idempotency_key`](crate::dsl::ToolContext::idempotency_key).
    ///
    /// A fork that waits for a webhook since before the fork does not take stored ones from the mailbox, which
    /// belong to other runs. It gets a later one that no other run waits for, or the result in [`Fork::results`].
    /// For waits that it begins itself it reads the mailbox as any run.
    ///
    /// # Errors
    ///
    /// [`ForkError`]; no run was created then.
    pub async fn fork(&self, run: &RunId, at: Seq, fork: Fork) -> Result<RunId, ForkError> {
        let log = self.events(run, Seq(0)).await?;
        fork_log(self, run, &log, end_of_transition(&log, at)?, fork).await
    }

    /// Returns the event after which a fork at `at` is made: `at`, or the last one that belongs to it.
    ///
    /// # Errors
    ///
    /// [`ForkError::NoSuchEvent`] if the run has no event `at`, [`ForkError::Store`] if the store fails.
    pub async fn fork_event(&self, run: &RunId, at: Seq) -> Result<Seq, ForkError> {
        end_of_transition(&self.events(run, Seq(0)).await?, at)
    }

    /// Returns the event right before a run first entered a stage, an iteration or a call: the place to fork it
    /// in order to run that part again.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] if there is no such run; other variants if the store fails.
    pub async fn before(&self, run: &RunId, path: &Path) -> Result<Option<Seq>, StoreError> {
        let log = self.events(run, Seq(0)).await?;
        let first = log.iter().find(|event| event.path.is_within(path) && !event.path.is_root());
        Ok(first.and_then(|event| event.seq.0.checked_sub(1)).map(Seq))
    }

    /// Continues the work of a run that has failed or was parked, at the place of the failure. Effects with results are not
    /// repeated; a step or a call that was in flight runs again as after a crash. The counts of crashes start at zero. The
    /// run continues when [`Runner::resume`](crate::runner::Runner::resume) or a server claims it.
    /// [`Runner::record_retry`](crate::runner::Runner::record_retry) compares the code first.
    ///
    /// # Errors
    ///
    /// [`RetryError`]; nothing has changed then.
    pub async fn retry(&self, run: &RunId, by: impl Into<Actor>) -> Result<Retried, RetryError> {
        retry(self, run, by.into()).await
    }

    /// Returns the event after which a retry of a failed run forks it.
    ///
    /// # Errors
    ///
    /// As [`Client::retry`].
    pub async fn retry_event(&self, row: &RunSummary) -> Result<Seq, RetryError> {
        retry_event(self, row).await
    }

    /// Returns the schedules of the store.
    #[cfg(feature = "schedules")]
    #[must_use]
    pub fn schedules(&self) -> Schedules {
        Schedules::new(self.clone())
    }

    /// Returns the conversations of the store.
    #[must_use]
    pub fn conversations(&self) -> Conversations {
        Conversations::new(self.clone())
    }
}
