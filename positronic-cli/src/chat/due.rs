//! Triggers that are due in the conversation: whoever sits at it fires them, as `work` does for all.

use positronic_core::record::Timer;
use positronic_core::runner::{Firing, RunHandle, Runner};
use positronic_core::store::StoreError;
use serde_json::Value;

use super::desk::Desk;
use super::table::Table;
use crate::commands::PLAYED;
use crate::display::Tone;
use crate::failure::Failure;

impl Desk {
    /// Lists the triggers of this conversation that are due, if it is time to look.
    pub(super) async fn due(&self, firing: &mut Firing) -> Result<Vec<Timer>, StoreError> {
        let mut due = firing.due().await?;
        due.retain(|timer| timer.conversation.as_deref() == Some(&*self.id));
        Ok(due)
    }

    /// Starts the prompt of a trigger. Answers none where it waits, or has fired elsewhere, and with a sentence where it cannot
    /// fire here, which is said once.
    pub(super) async fn fire(
        &self,
        firing: &mut Firing,
        runner: &Runner,
        timer: &Timer,
    ) -> Result<Option<RunHandle<Value>>, String> {
        let trigger = &timer.trigger.id;
        if let Some(follower) = &self.follower {
            // Another process may have answered the last prompt.
            self.wind(runner).await.map_err(|failure| failure.to_string())?;
            if !follower.goes_on() {
                firing.refuse(timer);
                return Err(format!("the trigger {trigger} does not fire here: {PLAYED}"));
            }
        }
        firing.fire(runner, timer).await.map_err(|error| error.to_string())
    }
}

impl<S> Table<'_, S>
where
    S: futures::Stream<Item = positronic_core::sink::Live> + Unpin,
{
    /// Fires what is due, and shows the answer.
    pub(super) async fn fire(&mut self) -> Result<(), Failure> {
        if self.sending.is_some() {
            return Ok(());
        }
        for timer in self.desk.due(&mut self.firing).await? {
            match self.desk.fire(&mut self.firing, &self.runner, &timer).await {
                Ok(Some(run)) => {
                    self.say(Tone::Dim, &format!("the trigger {} is due: {}", timer.trigger.id, timer.trigger.what))?;
                    return self.adopt(run).await;
                }
                Ok(None) => {}
                Err(said) if self.unfired.as_ref() == Some(&said) => {}
                Err(said) => {
                    self.say(Tone::Warn, &said)?;
                    self.unfired = Some(said);
                }
            }
        }
        Ok(())
    }
}
