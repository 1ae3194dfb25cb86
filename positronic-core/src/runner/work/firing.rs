//! Due triggers of a conversation, and which failures of a trigger a retry may fix.
//!
//! A trigger that could not fire is paused if a retry may succeed, and otherwise excluded until its next time.

use serde_json::Value;

use crate::record::Timer;
use crate::runner::{Conversation, ConversationError, FireError, RunHandle, StartError};
use crate::store::StoreError;

/// A due trigger of a conversation, and the outcome.
#[derive(Debug)]
#[non_exhaustive]
pub struct DueTrigger {
    /// The trigger.
    pub timer: Timer,
    /// The run that it started. After an error the trigger is excluded for a while or until its next time.
    pub started: Result<RunHandle<Value>, FireError>,
}

impl Conversation {
    /// Starts the first due trigger of this conversation, as [`Runner::fire`](crate::runner::Runner::fire) does. Returns
    /// `None` if nothing is due or every due trigger waits for the last run. A server of the store does this for
    /// all conversations.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the triggers cannot be listed.
    pub async fn fire_due(&self) -> Result<Option<DueTrigger>, StoreError> {
        let Self { runner, id, .. } = self;
        let due = runner.trigger_backoffs.ready(runner.client().due_triggers().await?);
        for timer in due.into_iter().filter(|timer| timer.conversation.as_deref() == Some(id)) {
            match runner.fire(&timer).await {
                Err(FireError::Busy { .. } | FireError::Gone { .. }) => {}
                Ok(run) => return Ok(Some(DueTrigger { timer, started: Ok(run) })),
                Err(error) => {
                    runner.trigger_backoffs.note(&timer, may_retry(&error));
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
