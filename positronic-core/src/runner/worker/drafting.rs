//! How a worker drafts: it folds events into its state, and adds what they make due.

use super::append::{Stamp, stamp_all};
use super::brain_retries::with_tries;
use super::draft::Draft;
use super::stop_reason::ResumeError;
use super::worker::Worker;
use crate::machine::{Effect, awaits, next};
use crate::record::{NewEvent, Path};
use crate::runner::effects::async_effects::{given_up_call, intent};
use crate::runner::effects::prepare::draft_following;

impl Worker {
    /// Adds a transition to the draft.
    pub(in crate::runner) fn draft(&mut self, new_events: Vec<NewEvent>) -> Result<(), ResumeError> {
        self.draft_all(NewEvent::transition(new_events))
    }

    /// Adds several transitions to the draft.
    pub(super) fn draft_all(&mut self, new_events: Vec<NewEvent>) -> Result<(), ResumeError> {
        if new_events.is_empty() {
            return Ok(());
        }
        let stamp = match self.draft.stamp {
            Some(stamp) => stamp,
            None => *self.draft.stamp.insert(Stamp::of_worker(self.shared.now(), self.state.at)),
        };
        let new_events = with_tries(self, new_events);
        self.draft.events.reserve(new_events.len());
        for event in stamp_all(new_events, self.state.next, stamp, Some(self.epoch)) {
            // An illegal event is never appended.
            if let Err(illegal) = self.state.fold(&event) {
                self.drop_draft();
                return Err(illegal.into());
            }
            self.draft.events.push(event);
        }
        Ok(())
    }

    /// Adds the outcome of an effect to the draft if the run awaits it: a cancelled call takes no result.
    pub(in crate::runner) fn draft_outcome(
        &mut self,
        path: &Path,
        new_events: Vec<NewEvent>,
    ) -> Result<bool, ResumeError> {
        if !awaits(&self.state, path) {
            tracing::debug!(run = %self.shared.run, %path, "dropped a late outcome");
            return Ok(false);
        }
        let first = self.draft.events.len();
        self.draft(new_events)?;
        self.draft.outcomes.push((path.clone(), first..self.draft.events.len()));
        Ok(true)
    }

    /// Adds what the state after the draft makes due, and the intents of effects, until there is nothing more.
    pub(super) fn draft_next(&mut self) -> Result<(), ResumeError> {
        while !self.leaves() {
            let mut effects = self.fresh(next(&self.state, self.state.at).effects);
            if !self.draft_announced(&mut effects)? && !self.draft_iteration(effects)? {
                break;
            }
        }
        Ok(())
    }

    /// Adds an iteration that follows in the same append. Returns `false` if there is none.
    fn draft_iteration(&mut self, effects: Vec<Effect>) -> Result<bool, ResumeError> {
        for effect in effects {
            if let Effect::Prepare { path, iteration } = effect
                && draft_following(self, &path, iteration)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes the effects that begin with an event from the list, and adds their events to the draft: what follows from the
    /// state alone, and intents. The remaining effects are performed by the worker itself. Returns `false` if there is none.
    pub(super) fn draft_announced(&mut self, effects: &mut Vec<Effect>) -> Result<bool, ResumeError> {
        let mut new_events = Vec::new();
        let remaining = std::mem::take(effects).into_iter().filter_map(|effect| {
            match effect {
                Effect::Append(transition) => new_events.extend(NewEvent::transition(transition)),
                effect => match (given_up_call(self, &effect), intent(self, &effect)) {
                    (Some(result), _) => new_events.push(result),
                    (None, Some(intent)) => {
                        new_events.push(intent);
                        self.draft.effects.push(effect);
                    }
                    (None, None) => return Some(effect),
                },
            }
            None
        });
        // In the same allocation.
        *effects = remaining.collect();
        let is_any = !new_events.is_empty();
        if is_any {
            self.draft_all(new_events)?;
        }
        Ok(is_any)
    }

    /// Drops the draft: nothing of it is appended.
    pub(super) fn drop_draft(&mut self) -> Draft {
        self.state = self.shared.state().clone();
        std::mem::take(&mut self.draft)
    }

    /// Returns the effects that are not in flight.
    pub(super) fn fresh(&self, mut effects: Vec<Effect>) -> Vec<Effect> {
        effects.retain(|effect| effect.path().is_none_or(|path| !self.flights.contains_key(path)));
        effects
    }
}
