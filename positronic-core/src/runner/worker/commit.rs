//! Commits of a worker's draft: append, and retry when the store fails or another writer was first.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};

use super::append::{Extras, append_of};
use super::draft::{Draft, OutcomeEvents};
use super::snapshots::Saved;
use super::stop_reason::{ResumeError, passes};
use super::timers::timers;
use super::worker::Worker;
use crate::machine::{IllegalEvent, SUSPECT};
use crate::record::{Event, EventKind, NewEvent, Path, Seq};
use crate::runner::clock::pauses;
use crate::runner::serve::quarantine::crashes_of;
use crate::store::StoreError;

impl Worker {
    /// Appends a transition and the intents of the effects that it makes due. Returns `false` if another writer was
    /// first: its events are folded in, nothing was appended, and the caller decides again.
    pub(in crate::runner) async fn append(&mut self, new_events: Vec<NewEvent>) -> Result<bool, ResumeError> {
        self.draft(new_events)?;
        self.append_draft().await
    }

    /// Drafts the outcome of an effect that the worker performs itself, and appends it with those of further ones. Each is appended alone after a crash,
    /// so that what the author's code of one has computed is not lost when that of the next one ends the process again.
    pub(in crate::runner) async fn append_together(&mut self, new_events: Vec<NewEvent>) -> Result<bool, ResumeError> {
        self.draft(new_events)?;
        let waits = !self.draft.events.is_empty() && self.shared.state().crashed.is_empty() && !self.draft.is_full();
        if waits { Ok(true) } else { self.append_draft().await }
    }

    /// Appends what has been drafted, if there is anything, as [`append`](Self::append) does.
    pub(in crate::runner) async fn append_drafted(&mut self) -> Result<bool, ResumeError> {
        if self.draft.events.is_empty() { Ok(true) } else { self.append_draft().await }
    }

    /// Appends the draft as [`append`](Self::append) does.
    pub(in crate::runner) async fn append_draft(&mut self) -> Result<bool, ResumeError> {
        Ok(self.try_commit(true, pauses()).await?.is_none())
    }

    /// Appends events without starting further effects.
    pub(super) async fn append_last(&mut self, new_events: Vec<NewEvent>) -> Result<bool, ResumeError> {
        self.draft(new_events)?;
        Ok(self.try_commit(false, pauses()).await?.is_none())
    }

    /// Appends events as [`append_last`](Self::append_last) does, but does not try again: the store has failed for long.
    pub(super) async fn append_once(&mut self, new_events: Vec<NewEvent>) -> Result<bool, ResumeError> {
        self.draft(new_events)?;
        Ok(self.try_commit(false, pauses().with_max_times(0)).await?.is_none())
    }

    /// Appends the outcome of an effect, after any events of other writers, as long as the run awaits it.
    pub(in crate::runner) async fn append_outcome(
        &mut self,
        path: &Path,
        new_events: Vec<NewEvent>,
    ) -> Result<bool, ResumeError> {
        let is_awaited = self.draft_outcome(path, new_events)?;
        Ok(is_awaited && self.commit().await?)
    }

    /// Appends the drafted outcomes, after any events of other writers. Returns whether the run still awaited them.
    pub(in crate::runner) async fn commit(&mut self) -> Result<bool, ResumeError> {
        while !self.draft.events.is_empty() {
            let Some(outcomes) = self.try_commit(true, pauses()).await? else { return Ok(true) };
            self.draft_again(outcomes)?;
        }
        Ok(false)
    }

    /// Drafts outcomes after the events of another writer. Each one was computed on the state after the one before.
    fn draft_again(&mut self, outcomes: Vec<OutcomeEvents>) -> Result<(), ResumeError> {
        let mut dropped = None;
        for (path, new_events) in outcomes {
            if !self.draft_outcome(&path, new_events)? {
                dropped.get_or_insert(path);
            }
        }
        match dropped {
            // A signal ends all work in flight or none. If that changes, these outcomes must be settled again.
            Some(path) if !self.draft.events.is_empty() => {
                let Draft { events, .. } = self.drop_draft();
                let (seq, name) = (self.state.next, events.first().map_or("", |event| event.kind.name()));
                let reason =
                    "another writer has ended work whose outcome was recorded together with this one".to_owned();
                Err(IllegalEvent { seq, name, path, reason }.into())
            }
            _ => Ok(()),
        }
    }

    /// Appends the draft, with the intents of the effects that it makes due if `announces_next`. Returns its outcomes if
    /// another writer was first.
    async fn try_commit(
        &mut self,
        announces_next: bool,
        pauses: ExponentialBuilder,
    ) -> Result<Option<Vec<OutcomeEvents>>, ResumeError> {
        if self.draft.events.is_empty() {
            // Without an event the same effect would be due again, endlessly.
            return Err(ResumeError::NoProgress);
        }
        if announces_next {
            self.draft_next()?;
        }
        let events = std::mem::take(&mut self.draft.events);
        let is_written = self.write(&events, pauses).await;
        self.draft.events = events;
        if matches!(is_written, Ok(true)) {
            self.unrecorded.clear();
            self.announced.append(&mut self.draft.effects);
            self.draft.clear();
            return Ok(None);
        }
        let draft = self.drop_draft();
        is_written?;
        Ok(Some(draft.into_outcomes()))
    }

    /// Writes drafted events to the store. Returns `false` if another writer was first, whose events are folded in.
    async fn write(&mut self, events: &[Arc<Event>], pauses: ExponentialBuilder) -> Result<bool, ResumeError> {
        let (shared, epoch) = (Arc::clone(&self.shared), self.epoch);
        let saved = Saved::with(&shared, &self.state, events);
        let made = |worker: &Self| {
            let timers = timers(&shared.run, &worker.state, events);
            let (snapshot, prompts) = (saved.snapshot.clone(), saved.prompts.clone());
            let extras = Extras { epoch: Some(epoch), timers, snapshot, prompts, ..Extras::default() };
            // In the order of `take_over`, which alone changes both.
            let (before, summary) = (shared.state(), shared.summary());
            append_of(&shared.run, &before, &worker.state, Some(&*summary), events, extras)
        };
        // Events of other writers up to there make this append fail, and are read then.
        shared.own.store(self.state.next.0, Ordering::Release);
        let mut pauses = pauses.build();
        let failed = loop {
            // What an append holds is not part of the future of each run.
            let (summary, writing) = {
                let append = made(self);
                (append.index.summary.clone(), shared.runner.store.append(&shared.run, append))
            };
            let failed = match self.until_lost(writing).await? {
                Ok(()) => {
                    saved.stored(&summary);
                    shared.take_over(self.state.clone(), summary, events);
                    self.close_frames(events);
                    self.leave_quarantine();
                    return Ok(true);
                }
                Err(StoreError::Conflict { .. }) => match Box::pin(self.catch_up_with()).await {
                    // The append succeeded and its reply was lost.
                    Ok(read) if read.starts_with(events) => return Ok(true),
                    Ok(_) => {
                        shared.own.store(0, Ordering::Release);
                        return Ok(false);
                    }
                    Err(stop) => stop,
                },
                Err(error) => error.into(),
            };
            // Effects in flight continue meanwhile, and their outcomes wait in the channel.
            let Some(pause) = pauses.next().filter(|pause| passes(&failed) && retries(self, *pause)) else {
                break failed;
            };
            tracing::warn!(run = %shared.run, error = %failed, "the store failed; retrying");
            Box::pin(self.pause(pause)).await?;
        };
        // The end of the log is unknown now: every append must wake the worker.
        shared.own.store(0, Ordering::Release);
        Err(failed)
    }

    /// Repeats an operation while the store fails at it.
    pub(super) async fn retried<T>(
        &mut self,
        mut operation: impl AsyncFnMut(&mut Self) -> Result<T, ResumeError>,
    ) -> Result<T, ResumeError> {
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

    /// Reads at most `most` events of the run's log, with the same retries as an append.
    pub(in crate::runner) async fn read(&mut self, from: Seq, most: usize) -> Result<Vec<Arc<Event>>, ResumeError> {
        let shared = Arc::clone(&self.shared);
        let mut pauses = pauses().build();
        loop {
            let stop = match shared.runner.store.read(&shared.run, from, most).await {
                Ok(events) => return Ok(events),
                Err(error) => ResumeError::from(error),
            };
            let Some(pause) = pauses.next().filter(|_| passes(&stop)) else { return Err(stop) };
            self.pause(pause).await?;
        }
    }

    /// Reads and folds the events of other writers, with the same retries as an append.
    pub(super) async fn catch_up(&mut self) -> Result<(), ResumeError> {
        self.retried(Self::catch_up_with).await.map(drop)
    }

    /// Reads and folds the events of other writers. The draft does not follow them.
    async fn catch_up_with(&mut self) -> Result<Vec<Arc<Event>>, ResumeError> {
        let events = self.shared.catch_up().await?;
        self.state = self.shared.state().clone();
        self.close_frames(&events);
        let lost = self.state.claim.as_ref().is_some_and(|claim| claim.epoch > self.epoch);
        if lost { Err(ResumeError::claimed()) } else { Ok(events) }
    }

    /// Returns the permit of a suspect once its run has made progress.
    fn leave_quarantine(&mut self) {
        if self.quarantined.is_some() && crashes_of(&self.state) < SUSPECT {
            self.quarantined = None;
        }
    }

    fn close_frames(&mut self, events: &[Arc<Event>]) {
        let closing: Vec<&Path> = events.iter().filter(|event| closes(&event.kind)).map(|event| &event.path).collect();
        if !closing.is_empty() {
            self.frames.forget_closed(&self.state, &closing);
        }
        for event in events {
            let ends = matches!(event.kind, EventKind::BrainCancelled { .. } | EventKind::BrainError(_));
            if (ends && !event.path.is_root()) || matches!(event.kind, EventKind::UndoStart { .. }) {
                self.drop_flights_of(&event.path);
            }
        }
    }

    /// Aborts the effects in flight in a brain that has failed, was cancelled, or undoes its stages, while its run goes on.
    fn drop_flights_of(&mut self, brain: &Path) {
        let is_below = |path: &&Path| path.is_within(brain);
        for path in self.flights.keys().filter(is_below).cloned().collect::<Vec<_>>() {
            self.drop_flight(&path);
        }
    }
}

/// Returns whether an event closes the frame of a loop or a brain.
const fn closes(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::LoopComplete { .. }
            | EventKind::StepComplete { .. }
            | EventKind::LoopBrainComplete { .. }
            | EventKind::BrainComplete { .. }
            | EventKind::BrainError(_)
            | EventKind::BrainCancelled { .. }
            | EventKind::UndoStart { .. }
            | EventKind::UndoFailed { .. }
    )
}

/// Returns whether an append is tried again after a pause: with nothing in flight, a runner that releases its runs waits
/// for a store that fails less than a second.
fn retries(worker: &Worker, pause: Duration) -> bool {
    !worker.leaves() || !worker.flights.is_empty() || pause < Duration::from_millis(500)
}
