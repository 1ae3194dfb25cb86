//! What the one who started a run holds: its outcome, its state, and the way to send it signals.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ResumeError;
use super::shared::{Phase, Shared};
use super::signals::{SignalError, send};
use crate::machine::{BrainEnd, RunState, Waiting, pending, status, why};
use crate::projection::Prompts;
use crate::record::{Actor, Amounts, Event, Failure, Path, Pending, RunId, Seq, Signal, SignalId, SignalKind, Status};
use crate::store::StoreError;

/// A run, as the one who started it holds it. Dropping it leaves the run running; `R` is what the brain's callers get.
pub struct RunHandle<R> {
    shared: Arc<Shared>,
    /// The number after the last signal that was sent from here, so that an answer of before it is not taken for one
    /// after it.
    sent: Arc<AtomicU64>,
    result: PhantomData<fn() -> R>,
}

/// What a run came to, for now or for good.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    /// It ended well, with this result.
    Completed(Value),
    /// It ended in failure.
    Failed(Failure),
    /// It was cancelled.
    Cancelled,
    /// It waits for these.
    Waiting(Vec<Pending>),
    /// It is paused.
    Paused,
    /// Its worker stopped for this reason; the log has everything until then.
    Stopped(ResumeError),
}

/// Says why a run gave no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It ended in failure.
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
    /// Its result is not what was expected.
    #[error("the run's result is not of the expected type: {reason}")]
    Result {
        /// What does not fit.
        reason: String,
    },
}

impl<R> RunHandle<R> {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, sent: Arc::new(AtomicU64::new(0)), result: PhantomData }
    }

    pub(super) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns the number after the last signal that was sent from here.
    pub(super) const fn sent(&self) -> &Arc<AtomicU64> {
        &self.sent
    }

    pub(super) fn typed<T>(self) -> RunHandle<T> {
        RunHandle { shared: self.shared, sent: self.sent, result: PhantomData }
    }

    /// Returns the run's id.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.shared.run
    }

    /// Returns the run's state as of now.
    #[must_use]
    pub fn state(&self) -> RunState {
        self.shared.state().clone()
    }

    /// Returns the run's status as of now.
    #[must_use]
    pub fn status(&self) -> Status {
        status(&self.shared.state())
    }

    /// Returns what waits for somebody as of now.
    #[must_use]
    pub fn pending(&self) -> Vec<Pending> {
        pending(&self.shared.state())
    }

    /// Says why the run waits as of now, since which event, and for whom; none where it does not wait.
    #[must_use]
    pub fn why(&self) -> Option<Waiting> {
        why(&self.shared.state())
    }

    /// Returns the records of the run's loops as of now.
    #[must_use]
    pub fn prompts(&self) -> Prompts {
        self.shared.prompts().clone()
    }

    /// Returns the final text of the run as of now: that of the last loop of its own brain that people are shown. `None` while
    /// that loop runs.
    #[must_use]
    pub fn answer(&self) -> Option<String> {
        self.shared.prompts().answer()
    }

    /// Returns the state of the run's brain, as JSON.
    #[must_use]
    pub fn document(&self) -> Value {
        self.shared.state().root.as_ref().map(|root| Value::clone(&root.state)).unwrap_or_default()
    }

    /// Returns what outsiders may watch of the run: what the brain's `.public(…)` makes of its state, `None` where the
    /// brain shows nothing.
    ///
    /// # Errors
    ///
    /// What `.public(…)` answers, also in words where it panics. [`ResumeError::NoBrain`] when the run was opened by a
    /// runner that does not know its brain.
    pub fn public(&self) -> crate::Result<Option<Value>> {
        let Shared { runner, definition, .. } = &*self.shared;
        let brain = self.shared.state().root.as_ref().map(|root| root.title.to_string()).unwrap_or_default();
        // A run that was opened has no code to go on with, and its runner may know it all the same.
        let Some(definition) = definition.clone().or_else(|| runner.plan_of(&brain)) else {
            return Err(ResumeError::NoBrain { brain }.into());
        };
        let Some(public) = &definition.public else { return Ok(None) };
        let state = self.shared.state().root.as_ref().map(|root| Arc::clone(&root.state)).unwrap_or_default();
        super::async_effects::caught_now(|| public(&crate::definition::StateValue::new(state))).map(Some)
    }

    /// Reads the run's events from a number on.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store fails.
    pub async fn events(&self, from: Seq) -> Result<Vec<Arc<Event>>, StoreError> {
        self.shared.runner.store.read(&self.shared.run, from, usize::MAX).await
    }

    /// Waits until the run has ended, or nothing can happen until somebody answers.
    pub async fn settled(&self) -> Settled {
        let sent = Seq(self.sent.load(Ordering::Acquire));
        let mut watch = self.shared.settled.subscribe();
        let settled = |(phase, seq): &(Phase, Seq)| match phase {
            Phase::Working => false,
            // It was suspended as of an event; what came after that may have given it work.
            Phase::Suspended => *seq >= sent && *seq == self.shared.state().next,
            Phase::Ended => *seq >= sent,
            Phase::Stopped(_) => true,
        };
        // The handle shares the sender, so the channel stays open.
        if let Ok((Phase::Stopped(reason), _)) = watch.wait_for(settled).await.as_deref() {
            return Settled::Stopped(reason.clone());
        }
        Settled::of(&self.shared.state())
    }

    /// Waits until the run goes on, ends, or waits as of a later event than when this is called.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + use<R> {
        let mut watch = self.shared.settled.subscribe();
        async move {
            // Once the run's task has ended, nothing changes any more.
            if watch.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until every sink has taken what has happened so far, for at most `patience`. Says whether all have; a sink
    /// that was given up has not, and is not waited for.
    pub async fn flushed(&self, patience: Duration) -> bool {
        let next = self.shared.state().next;
        let all = futures::future::join_all(self.shared.feeds().iter().map(|feed| feed.reached(next)));
        tokio::time::timeout(patience, all).await.is_ok_and(|reached| reached.into_iter().all(|reached| reached))
    }

    /// Sends a signal under a new id.
    ///
    /// # Errors
    ///
    /// [`SignalError::Refused`] when it does not fit the run's state, [`SignalError::Store`] when the store fails.
    pub async fn signal(&self, kind: SignalKind, actor: Actor) -> Result<Seq, SignalError> {
        let id = self.shared.runner.ids.signal();
        self.send(Signal { id, actor, kind }).await
    }

    /// Sends a signal that has an id of its own, and returns the number of the event that accepts it. The same id
    /// twice gets the same number.
    ///
    /// # Errors
    ///
    /// As [`RunHandle::signal`].
    pub async fn send(&self, signal: Signal) -> Result<Seq, SignalError> {
        let Shared { runner, run, .. } = &*self.shared;
        let state = self.shared.state().clone();
        let sent = send(&*runner.store, &*runner.clock, run, state, &[signal], &[]).await?;
        self.sent.fetch_max(sent.next.0, Ordering::AcqRel);
        self.shared.settled.send_if_modified(|(phase, _)| {
            // Whoever attends to the run tries again, and says what comes of it.
            let stopped = matches!(phase, Phase::Stopped(_));
            if stopped {
                *phase = Phase::Working;
            }
            stopped
        });
        Ok(sent.accepted.first().copied().unwrap_or_default())
    }

    /// Lets a pending call run.
    ///
    /// # Errors
    ///
    /// As [`RunHandle::signal`].
    pub async fn approve(&self, call: &Path, by: &str) -> Result<Seq, SignalError> {
        let kind = SignalKind::Approve { call: call.clone(), arguments: None };
        self.signal(kind, Actor::builder().by(by).build()).await
    }

    /// Grants a loop or a brain more that has reached a limit and asks for it; the path of the run's own brain is empty.
    ///
    /// # Errors
    ///
    /// As [`RunHandle::signal`].
    pub async fn grant(&self, to: &Path, more: Amounts, by: &str) -> Result<Seq, SignalError> {
        let kind = SignalKind::Grant { to: to.clone(), more };
        self.signal(kind, Actor::builder().by(by).build()).await
    }

    /// Refuses a pending call, or more for a loop or a brain that asks for it.
    ///
    /// # Errors
    ///
    /// As [`RunHandle::signal`].
    pub async fn reject(&self, call: &Path, reason: &str, by: &str) -> Result<Seq, SignalError> {
        let kind = SignalKind::Reject { call: call.clone(), reason: Some(reason.to_owned()) };
        self.signal(kind, Actor::builder().by(by).build()).await
    }

    /// Delivers a webhook's payload.
    ///
    /// # Errors
    ///
    /// As [`RunHandle::signal`].
    pub async fn webhook(&self, name: &str, identifier: &str, payload: Value) -> Result<Seq, SignalError> {
        let kind = SignalKind::Webhook { name: name.to_owned(), identifier: identifier.to_owned(), payload };
        self.signal(kind, Actor::default()).await
    }

    /// Answers a call that waits for a reply.
    ///
    /// # Errors
    ///
    /// As [`RunHandle::signal`].
    pub async fn reply(&self, call: &Path, payload: Value, by: &str) -> Result<Seq, SignalError> {
        self.signal(SignalKind::Reply { call: call.clone(), payload }, Actor::builder().by(by).build()).await
    }

    /// Says something to the open loop.
    ///
    /// # Errors
    ///
    /// As [`RunHandle::signal`].
    pub async fn message(&self, text: &str, by: &str) -> Result<Seq, SignalError> {
        let kind = SignalKind::Message { to: None, text: text.to_owned(), message_id: None };
        self.signal(kind, Actor::builder().by(by).build()).await
    }

    /// Stops starting new work; what is in flight runs to its end.
    ///
    /// # Errors
    ///
    /// As [`RunHandle::signal`].
    pub async fn pause(&self) -> Result<Seq, SignalError> {
        self.signal(SignalKind::Pause, Actor::default()).await
    }

    /// Goes on after a pause.
    ///
    /// # Errors
    ///
    /// As [`RunHandle::signal`].
    pub async fn resume(&self) -> Result<Seq, SignalError> {
        self.signal(SignalKind::Resume, Actor::default()).await
    }

    /// Ends the run: what is in flight is aborted, and every open call gets a typed result.
    ///
    /// # Errors
    ///
    /// As [`RunHandle::signal`].
    pub async fn cancel(&self, reason: &str) -> Result<Seq, SignalError> {
        let kind = SignalKind::Cancel { reason: Some(reason.to_owned()) };
        self.signal(kind, Actor::default()).await
    }

    /// Returns a signal id that is not in use.
    #[must_use]
    pub fn new_signal_id(&self) -> SignalId {
        self.shared.runner.ids.signal()
    }
}

impl<R: DeserializeOwned> RunHandle<R> {
    /// Waits for the run's end, over all its waits, and returns its result.
    ///
    /// # Errors
    ///
    /// [`RunError`] when the run failed, was cancelled or had to stop, or when its result is not an `R`.
    pub async fn result(&self) -> Result<R, RunError> {
        let mut watch = self.shared.settled.subscribe();
        let settled = |(phase, _): &(Phase, Seq)| matches!(phase, Phase::Ended | Phase::Stopped(_));
        if let Ok((Phase::Stopped(reason), _)) = watch.wait_for(settled).await.as_deref() {
            return Err(RunError::Stopped { reason: reason.clone() });
        }
        let result = match self.shared.state().root.as_ref().and_then(|root| root.end.clone()) {
            Some(BrainEnd::Completed(result)) => result,
            Some(BrainEnd::Failed(failure)) => return Err(RunError::Failed(failure)),
            Some(BrainEnd::Cancelled) => return Err(RunError::Cancelled),
            None => return Err(RunError::Stopped { reason: ResumeError::NoProgress }),
        };
        serde_json::from_value(result).map_err(|error| RunError::Result { reason: error.to_string() })
    }
}

impl<R> Clone for RunHandle<R> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), sent: Arc::clone(&self.sent), result: PhantomData }
    }
}

impl<R> fmt::Debug for RunHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunHandle").field(&self.shared.run).finish()
    }
}
