//! Triggers: a due one starts a run.
//!
//! ```text
//! a tool's result ──one append──▶ LOOP_TRIGGER, a timer ──due──▶ fire ──one append──▶ BRAIN_START { fired }, the timer
//!                                                                                     goes, or is put off
//! ```
//!
//! The two appends decide everything. Of several processes that see a due timer, the first starts the run, and the
//! store refuses the others, because the timer has changed.

use std::fmt;

use serde_json::Value;

use crate::record::{Actor, Fired, Scheduled, SignalId, Start, Timer, TriggerId};
use crate::runner::{Conversation, ConversationError, RunHandle, Runner, StartError};
use crate::store::StoreError;

/// What fires: a trigger, or the tick of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Firing {
    /// A trigger.
    Trigger(TriggerId),
    /// A tick of a schedule.
    Tick(Scheduled),
}

impl Firing {
    /// Returns what a timer stands for.
    pub(in crate::runner) fn of(timer: &Timer) -> Self {
        timer.scheduled.as_deref().cloned().map_or_else(|| Self::Trigger(timer.trigger.id.clone()), Self::Tick)
    }
}

impl fmt::Display for Firing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trigger(id) => write!(f, "the trigger `{id}`"),
            Self::Tick(tick) => write!(f, "the tick {} of the schedule `{}`", tick.nominal, tick.schedule),
        }
    }
}

/// The reason why a trigger or a tick does not fire now.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FireError {
    /// The runner does not know the brain that it starts.
    #[error("{firing} starts the brain `{brain}`, which this runner does not know; add it with `.brain(…)`")]
    NoBrain {
        /// The trigger or the tick.
        firing: Firing,
        /// The brain's title.
        brain: String,
    },
    /// The last run of its conversation has not ended; the trigger fires after it.
    #[error("{firing} waits for the end of the last run of its conversation")]
    Busy {
        /// The trigger.
        firing: Firing,
    },
    /// It has fired elsewhere, or was deleted.
    #[error("{firing} has fired already, or was deleted")]
    Gone {
        /// The trigger or the tick.
        firing: Firing,
    },
    /// Its run could not be started.
    #[error("{firing} could not start its run: {reason}")]
    Start {
        /// The trigger or the tick.
        firing: Firing,
        /// The reason.
        reason: Box<ConversationError>,
    },
}

/// Starts the run of a due trigger.
pub(in crate::runner) async fn fire(runner: &Runner, timer: &Timer) -> Result<RunHandle<Value>, FireError> {
    let Timer { trigger, brain, options, user, conversation, budget, origin, starter, .. } = timer;
    let firing = || Firing::of(timer);
    let definition =
        runner.definition_of(brain).ok_or_else(|| FireError::NoBrain { firing: firing(), brain: brain.to_string() })?;
    let options = options.clone();
    let because = Fired { trigger: trigger.clone(), origin: origin.clone() };
    let starter = starter.as_deref().cloned().unwrap_or_default();
    let actor = Actor { channel: Some("trigger".to_owned()), ..starter };
    let begun = match conversation {
        Some(conversation) => {
            let mut conversation = runner.conversation(conversation).actor(actor).busy(trigger.busy);
            if let Some(user) = user {
                conversation = conversation.user(user);
            }
            conversation.fire(definition, options, because, budget.as_deref().cloned()).await
        }
        None => {
            let run = SignalId::from(format!("{}-{}", trigger.id, trigger.due.compact()));
            let (user, budget, fired) = (user.clone(), budget.as_deref().cloned(), Some(because));
            let start = Start { id: Some(run), user, actor, budget, fired, ..Start::default() };
            runner.start_definition(definition, options, start).await.map(Some).map_err(ConversationError::from)
        }
    };
    match begun {
        Ok(Some(run)) => Ok(run),
        Ok(None) => Err(FireError::Busy { firing: firing() }),
        Err(ConversationError::Start(StartError::Store(StoreError::NotDue { .. }))) => {
            Err(FireError::Gone { firing: firing() })
        }
        Err(reason) => Err(FireError::Start { firing: firing(), reason: Box::new(reason) }),
    }
}

/// A due trigger, and the outcome.
#[derive(Debug)]
#[non_exhaustive]
pub struct DueTrigger {
    /// The trigger.
    pub timer: Timer,
    /// The run that it started. After an error the trigger is excluded for a while or until its next time.
    pub started: Result<RunHandle<Value>, FireError>,
}

impl Conversation {
    /// Starts the first due trigger of this conversation; see [`Runner::fire_first`]. A server of the store does this for all
    /// conversations.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the triggers cannot be listed.
    pub async fn fire_due(&self) -> Result<Option<DueTrigger>, StoreError> {
        self.runner.fire_first(|timer| timer.conversation.as_deref() == Some(&self.id)).await
    }
}

/// Starts the first due trigger that `chosen` accepts.
pub(in crate::runner) async fn fire_first(
    runner: &Runner,
    chosen: impl Fn(&Timer) -> bool,
) -> Result<Option<DueTrigger>, StoreError> {
    let due = runner.state.trigger_backoffs.ready(runner.client().due_triggers().await?);
    for timer in due.into_iter().filter(chosen) {
        match runner.fire(&timer).await {
            Err(FireError::Busy { .. } | FireError::Gone { .. }) => {}
            Ok(run) => return Ok(Some(DueTrigger { timer, started: Ok(run) })),
            Err(error) => {
                runner.state.trigger_backoffs.note(&timer, may_retry(&error));
                return Ok(Some(DueTrigger { timer, started: Err(error) }));
            }
        }
    }
    Ok(None)
}

/// Returns whether a retry may succeed without a change of what the trigger starts.
pub(in crate::runner) fn may_retry(error: &FireError) -> bool {
    let FireError::Start { reason, .. } = error else { return false };
    match &**reason {
        ConversationError::Start(reason) => matches!(reason, StartError::Store(_) | StartError::Leaves),
        // A budget may be raised.
        reason => !matches!(reason, ConversationError::NotYours { .. } | ConversationError::Prices { .. }),
    }
}
