//! Starts of due triggers without a server, and which failures of a trigger a retry may fix.
//!
//! A trigger that could not fire is paused if a retry may succeed, and otherwise excluded until its next time.

use serde_json::Value;

use crate::record::Timer;
use crate::runner::{Conversation, ConversationError, FireError, RunHandle, Runner, StartError};
use crate::store::StoreError;

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

impl Runner {
    /// Starts the first due trigger that `chosen` accepts, as [`Runner::fire`] does. Returns `None` if none is due, or each of
    /// them waits for the last run of its conversation or for the end of its pause.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the triggers cannot be listed.
    pub async fn fire_first(&self, chosen: impl Fn(&Timer) -> bool) -> Result<Option<DueTrigger>, StoreError> {
        let due = self.state.trigger_backoffs.ready(self.client().due_triggers().await?);
        for timer in due.into_iter().filter(chosen) {
            match self.fire(&timer).await {
                Err(FireError::Busy { .. } | FireError::Gone { .. }) => {}
                Ok(run) => return Ok(Some(DueTrigger { timer, started: Ok(run) })),
                Err(error) => {
                    self.state.trigger_backoffs.note(&timer, may_retry(&error));
                    return Ok(Some(DueTrigger { timer, started: Err(error) }));
                }
            }
        }
        Ok(None)
    }
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
