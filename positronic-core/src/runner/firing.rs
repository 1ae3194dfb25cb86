//! Which triggers are due, for a server of the store and for a conversation.
//!
//! A trigger that cannot fire is not tried again and again: where another try may go well it rests, and else it is left
//! out until its next time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::{Client, Conversation, ConversationError, FireError, RunHandle, StartError};
use crate::record::{Timer, Timestamp, TriggerId};
use crate::store::StoreError;

/// How long a trigger rests that could not fire, at first and at most.
const REST: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(5)];

/// The triggers that are left out, each as of the time that it was due. Clones share them.
#[derive(Clone, Default)]
pub(super) struct TriggerBackoffs(Arc<Mutex<HashMap<TriggerId, (Timestamp, Out)>>>);

/// For how long a trigger is left out.
#[derive(Clone, Copy)]
enum Out {
    /// Until then; and how long that is.
    Rests(Instant, Duration),
    /// Until its next time.
    Refused,
}

impl TriggerBackoffs {
    fn all(&self) -> MutexGuard<'_, HashMap<TriggerId, (Timestamp, Out)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists the triggers that are due and not left out, the one that is due first first.
    pub(super) async fn due(&self, client: &Client) -> Result<Vec<Timer>, StoreError> {
        let mut due = client.due_triggers().await?;
        let now = Instant::now();
        let mut out = self.all();
        // What has fired elsewhere, was deleted, or is due another time now is begun with anew.
        out.retain(|id, (at, _)| due.iter().any(|timer| timer.trigger.id == *id && timer.trigger.due == *at));
        due.retain(|timer| match out.get(&timer.trigger.id) {
            Some((_, Out::Refused)) => false,
            Some((_, Out::Rests(until, _))) => *until <= now,
            None => true,
        });
        Ok(due)
    }

    /// Leaves a trigger out until its next time, since it cannot fire here.
    pub(super) fn refuse(&self, timer: &Timer) {
        self.all().insert(timer.trigger.id.clone(), (timer.trigger.due, Out::Refused));
    }

    /// Leaves a trigger out that could not fire: until its next time, or where another try may go well for a second, and for
    /// twice as long each time, up to five minutes.
    pub(super) fn note(&self, timer: &Timer, error: &FireError) {
        if !passes(error) {
            return self.refuse(timer);
        }
        let [first, most] = REST;
        let mut all = self.all();
        let rest = match all.get(&timer.trigger.id) {
            Some((_, Out::Rests(_, last))) => (*last * 2).min(most),
            Some((_, Out::Refused)) | None => first,
        };
        all.insert(timer.trigger.id.clone(), (timer.trigger.due, Out::Rests(Instant::now() + rest, rest)));
    }
}

/// A trigger of a conversation that was due, and what came of it.
#[derive(Debug)]
#[non_exhaustive]
pub struct DueTrigger {
    /// The trigger.
    pub timer: Timer,
    /// The run that it has started. Where there is none, the trigger is left out for a while or until its next time.
    pub started: Result<RunHandle<Value>, FireError>,
}

impl Conversation {
    /// Starts the first trigger of this conversation that is due, as [`Runner::fire`](super::Runner::fire) does; none where
    /// nothing is due, or all that is waits for the last run of the conversation. A server of the store does it for all
    /// conversations.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails to list the triggers.
    pub async fn fire_due(&self) -> Result<Option<DueTrigger>, StoreError> {
        let Self { runner, id, .. } = self;
        let due = runner.trigger_backoffs.due(&runner.client()).await?;
        for timer in due.into_iter().filter(|timer| timer.conversation.as_deref() == Some(id)) {
            match runner.fire(&timer).await {
                Err(FireError::Busy { .. } | FireError::Gone { .. }) => {}
                Ok(run) => return Ok(Some(DueTrigger { timer, started: Ok(run) })),
                Err(error) => {
                    runner.trigger_backoffs.note(&timer, &error);
                    return Ok(Some(DueTrigger { timer, started: Err(error) }));
                }
            }
        }
        Ok(None)
    }
}

/// Says whether another try may go well without a change of what the trigger starts.
fn passes(error: &FireError) -> bool {
    match error {
        FireError::Start { reason, .. } => match &**reason {
            ConversationError::Start(
                StartError::Options { .. }
                | StartError::Started { .. }
                | StartError::NoListener { .. }
                | StartError::Action(_),
            )
            | ConversationError::NotYours { .. }
            | ConversationError::Prices { .. } => false,
            ConversationError::Start(StartError::Store(_) | StartError::Leaves)
            | ConversationError::Busy { .. }
            // Its budget may be raised.
            | ConversationError::Spent { .. }
            | ConversationError::Open { .. }
            | ConversationError::Resume(_)
            | ConversationError::Signal(_)
            | ConversationError::Store(_) => true,
        },
        FireError::NoBrain { .. } | FireError::Busy { .. } | FireError::Gone { .. } => false,
    }
}
