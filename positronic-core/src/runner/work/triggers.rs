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
use crate::runner::{ConversationError, RunHandle, Runner, StartError};
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

impl Runner {
    /// Starts the run of a due trigger, or of a schedule's tick. [`Runner::serve`] does this for all of them, once a
    /// second.
    ///
    /// A trigger starts one run, however many processes call this at the same time and whenever they crash: the
    /// append that begins the run also changes the timer. In a conversation it is the conversation's next run;
    /// otherwise its id consists of the trigger's id and due time.
    ///
    /// # Errors
    ///
    /// [`FireError`]; the trigger stays due, except after [`FireError::Gone`].
    pub async fn fire(&self, timer: &Timer) -> Result<RunHandle<Value>, FireError> {
        #[cfg(feature = "schedules")]
        if let Some(tick) = &timer.scheduled {
            return self.fire_tick(timer, tick).await;
        }
        let Timer { trigger, brain, options, user, conversation, budget, origin, starter, .. } = timer;
        let firing = || Firing::of(timer);
        let definition = self
            .definition_of(brain)
            .ok_or_else(|| FireError::NoBrain { firing: firing(), brain: brain.to_string() })?;
        let options = options.clone();
        let because = Fired { trigger: trigger.clone(), origin: origin.clone() };
        let starter = starter.as_deref().cloned().unwrap_or_default();
        let actor = Actor { channel: Some("trigger".to_owned()), ..starter };
        let begun = match conversation {
            Some(conversation) => {
                let mut conversation = self.conversation(conversation).actor(actor).busy(trigger.busy);
                if let Some(user) = user {
                    conversation = conversation.user(user);
                }
                conversation.fire(definition, options, because, budget.as_deref().cloned()).await
            }
            None => {
                let run = SignalId::from(format!("{}-{}", trigger.id, trigger.due.compact()));
                let (user, budget, fired) = (user.clone(), budget.as_deref().cloned(), Some(because));
                let start = Start { id: Some(run), user, actor, budget, fired, ..Start::default() };
                self.start_definition(definition, options, start).await.map(Some).map_err(ConversationError::from)
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
}
