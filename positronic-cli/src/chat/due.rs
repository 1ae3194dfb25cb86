//! Due triggers of the conversation: the chat fires them, as `work` does for all conversations.

use positronic_core::runner::{DueTrigger, Runner};

use super::context::ChatContext;
use super::ui::ChatUi;
use crate::app::cassette_position::NO_ANSWER_LEFT;
use crate::app::failure::Failure;
use crate::render::Tone;

impl ChatContext {
    /// Starts the first due trigger of this conversation. The error explains why none can fire here.
    pub(super) async fn fire(&self, runner: &Runner) -> Result<Option<DueTrigger>, String> {
        let said = |failure: Failure| failure.to_string();
        if let Some(follower) = &self.follower {
            let due = self.client().due_triggers().await.map_err(|error| said(error.into()))?;
            let Some(timer) = due.iter().find(|timer| timer.conversation.as_deref() == Some(&*self.id)) else {
                return Ok(None);
            };
            // Another process may have answered the last prompt.
            self.wind(runner).await.map_err(said)?;
            if !follower.goes_on() {
                return Err(format!("the trigger {} cannot fire here: {NO_ANSWER_LEFT}", timer.trigger.id));
            }
        }
        self.conversation(runner).fire_due().await.map_err(|error| said(error.into()))
    }
}

impl ChatUi<'_> {
    /// Fires a due trigger, and shows its run.
    pub(super) async fn fire(&mut self) -> Result<(), Failure> {
        if self.sending.is_some() {
            return Ok(());
        }
        let said = match self.desk.fire(&self.runner).await {
            Ok(None) => return Ok(()),
            Ok(Some(DueTrigger { timer, started: Ok(run), .. })) => {
                self.say(Tone::Dim, &format!("the trigger {} is due: {}", timer.trigger.id, timer.trigger.what))?;
                return self.adopt(run).await;
            }
            Ok(Some(DueTrigger { started: Err(error), .. })) => error.to_string(),
            Err(said) => said,
        };
        if self.unfired.as_ref() != Some(&said) {
            self.say(Tone::Warn, &said)?;
            self.unfired = Some(said);
        }
        Ok(())
    }
}
