//! Triggers: what is due starts a prompt.
//!
//! ```text
//! a tool's result ──one append──▶ LOOP_TRIGGER, a timer ──due──▶ fire ──one append──▶ BRAIN_START { fired }, the timer
//!                                                                                     goes, or is put off
//! ```
//!
//! Everything that decides is in the two appends. Whoever sees first that a timer is due starts the run; whoever comes second
//! is refused by the store, since the timer is not as it was. Nothing has to be remembered in between.

use std::sync::Arc;

use serde_json::Value;

use super::{Client, ConversationError, RunHandle, Runner, StartError};
use crate::machine::RunState;
use crate::record::{
    Actor, Event, EventKind, Fired, RunId, SignalId, Start, Timer, Timestamp, TriggerChange, TriggerId,
};
use crate::store::{StoreError, TimerChange, TimerFilter};

/// Says why a trigger does not fire now.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FireError {
    /// The runner does not know the brain that it starts.
    #[error(
        "the trigger `{trigger}` starts the brain `{brain}`, which this runner does not know; add it with `.brain(…)`"
    )]
    NoBrain {
        /// The trigger.
        trigger: TriggerId,
        /// The brain's title.
        brain: String,
    },
    /// The last run of its conversation is not over; the trigger fires after it.
    #[error("the trigger `{trigger}` waits until the last run of its conversation is over")]
    Busy {
        /// The trigger.
        trigger: TriggerId,
    },
    /// It has fired elsewhere, or was deleted.
    #[error("the trigger `{trigger}` has fired already, or was deleted")]
    Gone {
        /// The trigger.
        trigger: TriggerId,
    },
    /// Its prompt could not be begun.
    #[error("the trigger `{trigger}` could not start its prompt: {reason}")]
    Start {
        /// The trigger.
        trigger: TriggerId,
        /// Why.
        reason: Box<ConversationError>,
    },
}

impl Client {
    /// Lists triggers, the one that is due first first. No log is loaded for it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails.
    pub async fn triggers(&self, filter: &TimerFilter) -> Result<Vec<Timer>, StoreError> {
        self.store().timers(filter).await
    }

    /// Lists the triggers that are due.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails.
    pub async fn due_triggers(&self) -> Result<Vec<Timer>, StoreError> {
        self.triggers(&TimerFilter::builder().due(self.now()).build()).await
    }

    /// Takes a trigger back, whoever set it, and says whether it was there. What it has started goes on.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails.
    pub async fn delete_trigger(&self, id: &TriggerId) -> Result<bool, StoreError> {
        self.store().remove_timer(id).await
    }
}

impl Runner {
    /// Starts the prompt of a trigger that is due. [`Runner::serve`] does it for all of them, once a second.
    ///
    /// However many processes do this at the same time, and whenever one of them dies, the trigger starts one run: the append
    /// that begins the run also takes the timer. In a conversation, the run is the conversation's next; elsewhere it is named
    /// by the trigger and the time that it was due.
    ///
    /// # Errors
    ///
    /// [`FireError`]; but for [`FireError::Gone`], the trigger stays due.
    pub async fn fire(&self, timer: &Timer) -> Result<RunHandle<Value>, FireError> {
        let Timer { trigger, brain, options, user, conversation, budget, origin, .. } = timer;
        let id = || trigger.id.clone();
        let definition =
            self.plan_of(brain).ok_or_else(|| FireError::NoBrain { trigger: id(), brain: brain.to_string() })?;
        let options = options.clone();
        let because = Fired { trigger: trigger.clone(), origin: origin.clone() };
        let actor = Actor::builder().channel("trigger").build();
        let begun = match conversation {
            Some(conversation) => {
                let mut conversation = self.conversation(conversation).actor(actor).busy(trigger.busy);
                if let Some(user) = user {
                    conversation = conversation.user(user);
                }
                conversation.fire(definition, options, because, budget.as_deref().cloned()).await
            }
            None => {
                let run = SignalId::from(format!("{}-{}", trigger.id, moment(trigger.due)));
                let (user, budget, fired) = (user.clone(), budget.as_deref().cloned(), Some(because));
                let start = Start { id: Some(run), user, actor, budget, fired, ..Start::default() };
                self.start_definition(definition, options, start).await.map(Some).map_err(ConversationError::from)
            }
        };
        match begun {
            Ok(Some(run)) => Ok(run),
            Ok(None) => Err(FireError::Busy { trigger: id() }),
            Err(ConversationError::Start(StartError::Store(StoreError::NotDue { .. }))) => {
                Err(FireError::Gone { trigger: id() })
            }
            Err(reason) => Err(FireError::Start { trigger: id(), reason: Box::new(reason) }),
        }
    }
}

/// Writes a moment as a part of a name: `20260301T090000Z`.
fn moment(due: Timestamp) -> String {
    let moment = jiff::Timestamp::from_microsecond(due.0).unwrap_or_default();
    moment.to_string().chars().filter(|letter| !matches!(letter, '-' | ':')).collect()
}

/// Makes what the events of a worker's append do to timers.
pub(super) fn timers(run: &RunId, after: &RunState, events: &[Arc<Event>]) -> Vec<TimerChange> {
    let mut changes = Vec::new();
    for event in events {
        let EventKind::LoopTrigger { change } = &event.kind else { continue };
        match (change, &after.root) {
            (TriggerChange::Set(trigger), Some(root)) => changes.push(TimerChange::Set(Timer {
                trigger: trigger.clone(),
                brain: Arc::clone(&root.title),
                options: Value::clone(&root.options),
                user: after.start.user.clone(),
                conversation: after.start.conversation.clone(),
                budget: after.start.budget.clone().map(Box::new),
                origin: after.start.fired.as_ref().map_or_else(|| run.clone(), |fired| fired.origin.clone()),
                fired: 0,
            })),
            (TriggerChange::Deleted(id), _) => changes.push(TimerChange::Deleted(id.clone())),
            (TriggerChange::Set(_), None) => {}
        }
    }
    changes
}

/// Makes what the append that begins a run does to the timer that has started it.
pub(super) fn fires(start: &Start, now: Timestamp) -> Option<TimerChange> {
    let Fired { trigger, .. } = start.fired.as_ref()?;
    Some(TimerChange::Fired { id: trigger.id.clone(), due: trigger.due, next: trigger.next(now) })
}
