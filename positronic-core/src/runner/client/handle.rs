//! Handle of a run: its outcome, its state, and its signals.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use derive_where::derive_where;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::settled::Settled;
use super::signals::SignalError;
use crate::definition::StateValue;
use crate::machine::{RunState, Waiting, pending, status, why};
use crate::projection::Prompts;
use crate::record::{Actor, Event, Failure, Pending, RunId, Seq, Signal, SignalKind, Status};
use crate::runner::ResumeError;
use crate::runner::worker::shared::{Shared, WorkerPhase};
use crate::store::StoreError;

/// A handle of a run. The run continues when the handle is dropped. `R` is the type of the run's result.
#[derive_where(Clone, Debug)]
pub struct RunHandle<R> {
    shared: Arc<Shared>,
    /// The event number after the last signal that this handle sent, so that an earlier settled state is not
    /// taken for the answer to it.
    sent: Arc<AtomicU64>,
    result: PhantomData<fn() -> R>,
}

/// The reason why a run has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// It was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// Its worker stopped.
    #[error("the run's worker stopped: {reason}; its log has everything until then")]
    Stopped {
        /// The reason.
        reason: ResumeError,
    },
    /// Its result has another type.
    #[error("the run's result is not of the expected type: {reason}")]
    Result {
        /// The mismatch.
        reason: String,
    },
}

impl<R> RunHandle<R> {
    pub(in crate::runner) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, sent: Arc::new(AtomicU64::new(0)), result: PhantomData }
    }

    pub(in crate::runner) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns the event number after the last signal that this handle sent.
    pub(super) const fn sent(&self) -> &Arc<AtomicU64> {
        &self.sent
    }

    pub(in crate::runner) fn typed<T>(self) -> RunHandle<T> {
        RunHandle { shared: self.shared, sent: self.sent, result: PhantomData }
    }

    /// Returns the run's id.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.shared.run
    }

    /// Returns the run's current state.
    #[must_use]
    pub fn state(&self) -> RunState {
        self.shared.state().clone()
    }

    /// Returns the run's current status.
    #[must_use]
    pub fn status(&self) -> Status {
        status(&self.shared.state())
    }

    /// Returns the run's pending items.
    #[must_use]
    pub fn pending(&self) -> Vec<Pending> {
        pending(&self.shared.state())
    }

    /// Explains why the run waits, since which event, and for whom; `None` if it does not wait.
    #[must_use]
    pub fn why(&self) -> Option<Waiting> {
        why(&self.shared.state())
    }

    /// Returns the current prompts of the run's loops, without those of a group's brains and of rounds that have ended: the log has them, for
    /// [`Prompts::of`].
    #[must_use]
    pub fn prompts(&self) -> Prompts {
        self.shared.prompts().clone()
    }

    /// Returns the final text of the run: that of the last visible loop of its own brain. `None` while that loop
    /// runs.
    #[must_use]
    pub fn answer(&self) -> Option<String> {
        self.shared.prompts().answer()
    }

    /// Returns the state of the run's brain, as JSON.
    #[must_use]
    pub fn document(&self) -> Value {
        self.shared.state().root.as_ref().map(|root| Value::clone(&root.state)).unwrap_or_default()
    }

    /// Returns the public view of the run: what the brain's `.public(…)` derives from its state. `None` without
    /// `.public(…)`.
    ///
    /// # Errors
    ///
    /// The error of `.public(…)`, also if it panics. [`ResumeError::NoBrain`] if the runner that opened the run
    /// does not know its brain.
    pub fn public(&self) -> crate::Result<Option<Value>> {
        let Shared { runner, definition, .. } = &*self.shared;
        let brain = self.shared.state().root.as_ref().map(|root| root.title.to_string()).unwrap_or_default();
        // An opened run has no code of its own; its runner may know the brain.
        let Some(definition) = definition.clone().or_else(|| runner.definition_of(&brain)) else {
            return Err(ResumeError::NoBrain { brain }.into());
        };
        let Some(public) = &definition.public else { return Ok(None) };
        let state = self.shared.state().root.as_ref().map(|root| Arc::clone(&root.state)).unwrap_or_default();
        crate::error::caught_now(|| public(&StateValue::new(state, runner.settings.max_document_bytes))).map(Some)
    }

    /// Reads the run's events from a number on.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn events(&self, from: Seq) -> Result<Vec<Arc<Event>>, StoreError> {
        self.shared.runner.client().events(&self.shared.run, from).await
    }

    /// Waits until the run has ended, or makes no progress without a signal. A signal that was sent with this handle counts at once, one of
    /// another client, such as a webhook of [`Runner::deliver`](crate::runner::Runner::deliver), when the run's task has read it.
    pub async fn settled(&self) -> Settled {
        let sent = Seq(self.sent.load(Ordering::Acquire));
        let settled = |(phase, seq): &(WorkerPhase, Seq)| match phase {
            WorkerPhase::Working => false,
            // Events after the suspension may have given it work.
            WorkerPhase::Suspended => *seq >= sent && Settled::is_settled(&self.shared.state(), *seq),
            WorkerPhase::Ended => *seq >= sent,
            WorkerPhase::Stopped(_) => true,
        };
        match self.shared.until(settled).await {
            Some(reason) => Settled::Stopped(reason),
            None => Settled::of(&self.shared.state()),
        }
    }

    /// Waits until the run continues, ends, or waits again at a later event.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + use<R> {
        let mut watch = self.shared.settled.subscribe();
        async move {
            // After the end of the run's task nothing changes.
            if watch.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until every sink has taken the events so far, for at most `patience`. Returns whether all have; a
    /// sink that was given up has not, and is not waited for.
    pub async fn flushed(&self, patience: Duration) -> bool {
        let next = self.shared.state().next;
        let all = futures::future::join_all(self.shared.feeds().iter().map(|feed| feed.reached(next)));
        tokio::time::timeout(patience, all).await.is_ok_and(|reached| reached.into_iter().all(|reached| reached))
    }

    /// Sends a signal under a new id.
    ///
    /// # Errors
    ///
    /// As [`RunHandle::send`].
    pub async fn signal(&self, kind: SignalKind, by: impl Into<Actor>) -> Result<Seq, SignalError> {
        let id = self.shared.runner.ids.signal();
        self.send(Signal { id, actor: by.into(), kind }).await
    }

    /// Sends a signal with an id of its own and returns the number of the event that accepts it. A repeated id
    /// returns the same number.
    ///
    /// # Errors
    ///
    /// As [`RunHandle::send_all`].
    pub async fn send(&self, signal: Signal) -> Result<Seq, SignalError> {
        Ok(self.send_all(&[signal]).await?.first().copied().unwrap_or_default())
    }

    /// Sends signals, all or none, and returns the number of the event that accepts each. A signal that was accepted earlier
    /// returns its earlier number.
    ///
    /// # Errors
    ///
    /// [`SignalError::Refused`] if a signal does not fit the run's state after those before it; [`SignalError::Store`] if the
    /// store fails. Nothing is changed in either case.
    pub async fn send_all(&self, signals: &[Signal]) -> Result<Vec<Seq>, SignalError> {
        let Shared { runner, run, .. } = &*self.shared;
        let state = self.shared.state().clone();
        let sent = runner.client().send_to(run, Some(state), signals).await?;
        self.sent.fetch_max(sent.next.0, Ordering::AcqRel);
        self.shared.settled.send_if_modified(|(phase, _)| {
            // The run's task tries again and publishes the outcome.
            let stopped = matches!(phase, WorkerPhase::Stopped(_));
            if stopped {
                *phase = WorkerPhase::Working;
            }
            stopped
        });
        Ok(sent.accepted)
    }
}

impl<R: DeserializeOwned> RunHandle<R> {
    /// Waits for the end of the run and returns its result.
    ///
    /// # Errors
    ///
    /// [`RunError`] if the run failed, was cancelled or stopped, or if its result is not an `R`.
    pub async fn result(&self) -> Result<R, RunError> {
        let settled = |(phase, _): &(WorkerPhase, Seq)| matches!(phase, WorkerPhase::Ended | WorkerPhase::Stopped(_));
        if let Some(reason) = self.shared.until(settled).await {
            return Err(RunError::Stopped { reason });
        }
        let result = match Settled::of(&self.shared.state()) {
            Settled::Completed(result) => result,
            Settled::Failed(failure) => return Err(RunError::Failed(failure)),
            Settled::Cancelled => return Err(RunError::Cancelled),
            Settled::Waiting(_) | Settled::Paused | Settled::Stopped(_) => {
                return Err(RunError::Stopped { reason: ResumeError::NoProgress });
            }
        };
        serde_json::from_value(result).map_err(|error| RunError::Result { reason: error.to_string() })
    }
}

#[cfg(test)]
mod tests;
