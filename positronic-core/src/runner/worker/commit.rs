//! Commits of a run's worker: append, and retry when the store fails or another writer was first.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use backon::{BackoffBuilder as _, ExponentialBuilder};

use super::append::{Extras, Stamp, append_of, follow, stamp_all};
use super::saved::Saved;
use super::stop::{Stop, passes};
use super::timers::timers;
use super::worker::{Announced, Worker};
use crate::machine::{Effect, IllegalEvent, RunState, SUSPECT, awaits, next};
use crate::record::{Event, EventKind, NewEvent, Path};
use crate::runner::clock::pauses;
use crate::runner::effects::async_effects::{given_up_call, intent};
use crate::runner::work::quarantine::crashes_of;
use crate::store::StoreError;

fn unstamp(event: Arc<Event>) -> NewEvent {
    let Event { path, kind, with_next, .. } = Arc::unwrap_or_clone(event);
    NewEvent { path, kind, with_next }
}

impl Worker {
    /// Appends events and the intents of the effects that they make due. Returns `false` if another writer was
    /// first: its events are folded in, nothing was appended, and the caller decides again.
    pub(in crate::runner) async fn append(&mut self, own: impl Into<Announced>) -> Result<bool, Stop> {
        Ok(self.try_append(own.into(), true, pauses()).await?.is_none())
    }

    /// Appends events without starting further effects.
    pub(super) async fn append_last(&mut self, new_events: Vec<NewEvent>) -> Result<bool, Stop> {
        Ok(self.try_append(new_events.into(), false, pauses()).await?.is_none())
    }

    /// Appends events as [`append_last`](Self::append_last) does, but does not try again: the store has failed for long.
    pub(super) async fn append_once(&mut self, new_events: Vec<NewEvent>) -> Result<bool, Stop> {
        Ok(self.try_append(new_events.into(), false, pauses().with_max_times(0)).await?.is_none())
    }

    /// Appends the outcome of an effect, after any events of other writers, as long as the run awaits it: a
    /// cancelled call takes no result.
    pub(in crate::runner) async fn append_outcome(
        &mut self,
        path: &Path,
        new_events: Vec<NewEvent>,
    ) -> Result<bool, Stop> {
        let mut own = new_events.into();
        while awaits(&self.shared.state(), path) {
            match self.try_append(own, true, pauses()).await? {
                None => return Ok(true),
                Some(returned) => own = returned,
            }
        }
        tracing::debug!(run = %self.shared.run, %path, "dropped a late outcome");
        Ok(false)
    }

    /// Appends events, with the intents of the effects that they make due if `announces_next`. Returns the events if
    /// another writer was first.
    async fn try_append(
        &mut self,
        own: Announced,
        announces_next: bool,
        pauses: ExponentialBuilder,
    ) -> Result<Option<Announced>, Stop> {
        let Announced { new_events, mut effects } = own;
        if new_events.is_empty() {
            // Without an event the same effect would be due again, endlessly.
            return Err(Stop::Nothing);
        }
        let (before, at) = {
            let state = self.shared.state();
            (state.clone(), Stamp::of_worker(self.shared.now(), state.at))
        };
        let next = before.next;
        let own = (new_events.len(), effects.len());
        let mut events = stamp_all(new_events, next, at, Some(self.epoch));
        // An illegal event is never appended.
        let mut after = follow(&before, &events)?;
        if announces_next {
            effects.extend(self.announce_next(&mut after, at, &mut events)?);
        }
        let saved = Saved::with(&self.shared, &after, &events);
        let (shared, epoch) = (Arc::clone(&self.shared), self.epoch);
        let made = |after: &RunState| {
            let timers = timers(&shared.run, after, &events);
            let (snapshot, prompts) = (saved.snapshot.clone(), saved.prompts.clone());
            let extras = Extras { epoch: Some(epoch), timers, snapshot, prompts, ..Extras::default() };
            append_of(&shared.run, &before, after, Some(&*shared.summary()), &events, extras)
        };
        let mut append = made(&after);
        let summary = append.index.summary.clone();
        // Events of other writers up to there make this append fail, and are read then.
        self.shared.own.store(next.0 + events.len() as u64, Ordering::Release);
        let mut pauses = pauses.build();
        let failed = loop {
            let failed = match self.until_lost(shared.runner.store.append(&shared.run, append)).await? {
                Ok(()) => {
                    saved.stored(&summary);
                    self.shared.take_over(after, summary, &events);
                    self.close_frames(&events);
                    self.leave_quarantine();
                    self.announced.extend(effects);
                    return Ok(None);
                }
                Err(StoreError::Conflict { .. }) => match self.catch_up_with().await {
                    // The append succeeded and its reply was lost.
                    Ok(read) if read.starts_with(&events) => {
                        self.announced.extend(effects);
                        return Ok(None);
                    }
                    Ok(_) => {
                        self.shared.own.store(0, Ordering::Release);
                        effects.truncate(own.1);
                        return Ok(Some(Announced {
                            new_events: events.into_iter().take(own.0).map(unstamp).collect(),
                            effects,
                        }));
                    }
                    Err(stop) => stop,
                },
                Err(error) => error.into(),
            };
            // Effects in flight continue meanwhile, and their outcomes wait in the channel.
            let Some(pause) = pauses.next().filter(|pause| passes(&failed) && self.retries(*pause)) else {
                break failed;
            };
            tracing::warn!(run = %self.shared.run, error = %failed, "the store failed; retrying");
            self.pause(pause).await?;
            append = made(&after);
        };
        // The end of the log is unknown now: every append must wake the worker.
        self.shared.own.store(0, Ordering::Release);
        Err(failed)
    }

    /// Returns what can begin in the state after an append, so that its intents are part of the same append.
    fn follows(&self, state: &RunState) -> Announced {
        if self.unsettled > 0 || self.leaves() {
            return Announced::default();
        }
        let mut effects = self.fresh(next(state, state.at).effects);
        self.announce(state, &mut effects)
    }

    /// Returns the events that follow from a state alone and the intents of effects. The remaining effects are
    /// performed by the worker itself.
    pub(super) fn announce(&self, state: &RunState, effects: &mut Vec<Effect>) -> Announced {
        let mut now = Announced::default();
        for effect in std::mem::take(effects) {
            match effect {
                Effect::Append(transition) => now.new_events.extend(NewEvent::transition(transition)),
                effect => match (given_up_call(self, state, &effect), intent(self, state, &effect)) {
                    (Some(result), _) => now.new_events.push(result),
                    (None, Some(intent)) => {
                        now.new_events.push(intent);
                        now.effects.push(effect);
                    }
                    (None, None) => effects.push(effect),
                },
            }
        }
        now
    }

    pub(super) fn fresh(&self, mut effects: Vec<Effect>) -> Vec<Effect> {
        effects.retain(|effect| effect.path().is_none_or(|path| !self.flights.contains_key(path)));
        effects
    }

    /// Adds the intents of the effects that the events make due, until there are none, and returns those effects.
    fn announce_next(
        &self,
        after: &mut RunState,
        at: Stamp,
        events: &mut Vec<Arc<Event>>,
    ) -> Result<Vec<Effect>, IllegalEvent> {
        let mut effects = Vec::new();
        loop {
            let Announced { new_events, effects: more } = self.follows(after);
            if new_events.is_empty() {
                return Ok(effects);
            }
            let announced = stamp_all(new_events, after.next, at, Some(self.epoch));
            for event in &announced {
                after.fold(event)?;
            }
            events.extend(announced);
            effects.extend(more);
        }
    }

    /// Repeats an operation while the store fails at it.
    pub(super) async fn retried<T>(
        &mut self,
        mut operation: impl AsyncFnMut(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let mut pauses = pauses().build();
        loop {
            let stop = match operation(self).await {
                Err(stop) if passes(&stop) => stop,
                result => return result,
            };
            let Some(pause) = pauses.next() else { return Err(stop) };
            self.pause(pause).await?;
        }
    }

    /// Reads and folds the events of other writers, with the same retries as an append.
    pub(super) async fn catch_up(&mut self) -> Result<(), Stop> {
        self.retried(Self::catch_up_with).await.map(drop)
    }

    async fn catch_up_with(&mut self) -> Result<Vec<Arc<Event>>, Stop> {
        let events = self.shared.catch_up().await?;
        self.close_frames(&events);
        let lost = self.shared.state().claim.as_ref().is_some_and(|claim| claim.epoch > self.epoch);
        if lost { Err(Stop::Lost) } else { Ok(events) }
    }

    /// Returns the permit of a suspect once its run has made progress.
    fn leave_quarantine(&mut self) {
        if self.quarantined.is_some() && crashes_of(&self.shared.state()) < SUSPECT {
            self.quarantined = None;
        }
    }

    fn close_frames(&mut self, events: &[Arc<Event>]) {
        if events.iter().any(|event| closes(&event.kind)) {
            self.frames.forget_closed(&self.shared.state());
        }
    }
}

/// Returns whether an event closes the frame of a loop or a brain.
const fn closes(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::LoopComplete { .. } | EventKind::StepComplete { .. } | EventKind::LoopBrainComplete { .. }
    )
}
