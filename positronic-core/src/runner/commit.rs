//! Appending: numbers and times for drafts, and what to do when somebody else was first.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::worker::{Stop, Worker};
use crate::machine::{IllegalEvent, RunState, awaits, pending, summary};
use crate::record::{Body, Draft, Epoch, Event, Path, RunId, RunSummary, Seq, Timestamp};
use crate::store::{Append, Index, StoreError};

/// Gives drafts their numbers, one time and an epoch.
pub(super) fn stamp(drafts: Vec<Draft>, first: Seq, at: Timestamp, epoch: Option<Epoch>) -> Vec<Arc<Event>> {
    let mut seq = first;
    drafts
        .into_iter()
        .map(|Draft { path, body }| {
            let event = Event { seq, at, epoch, path, body };
            seq = seq.next();
            Arc::new(event)
        })
        .collect()
}

fn unstamp(event: Arc<Event>) -> Draft {
    let Event { path, body, .. } = Arc::unwrap_or_clone(event);
    Draft { path, body }
}

impl Worker {
    /// Appends drafts. Answers `false` when somebody else was first: then what they did is folded in, nothing was
    /// appended, and the caller has to decide again.
    pub(super) async fn append(&mut self, drafts: Vec<Draft>) -> Result<bool, Stop> {
        Ok(self.try_append(drafts).await?.is_none())
    }

    /// Appends what came of an effect, after whatever somebody else appends meanwhile, as long as the run waits for
    /// it: a call that was cancelled takes no result any more.
    pub(super) async fn append_outcome(&mut self, path: &Path, mut drafts: Vec<Draft>) -> Result<bool, Stop> {
        while awaits(&self.shared.state(), path) {
            match self.try_append(drafts).await? {
                None => return Ok(true),
                Some(returned) => drafts = returned,
            }
        }
        tracing::debug!(run = %self.shared.run, %path, "an outcome came too late");
        Ok(false)
    }

    /// Appends drafts, or gives them back when somebody else was first.
    async fn try_append(&mut self, drafts: Vec<Draft>) -> Result<Option<Vec<Draft>>, Stop> {
        let (next, at) = {
            let state = self.shared.state();
            (state.next, self.shared.now().max(state.at))
        };
        let events = stamp(drafts, next, at, Some(self.epoch));
        let (after, index) = self.folded(&events)?;
        let append = Append {
            expected: next,
            epoch: Some(self.epoch),
            events: events.clone(),
            index: index.clone(),
            takes: Vec::new(),
            snapshot: None,
        };
        // Whatever somebody else appends up to there makes this append fail, and is read then.
        self.shared.own.store(next.0 + events.len() as u64, Ordering::Release);
        match self.shared.runner.store.append(&self.shared.run, append).await {
            Ok(()) => {
                self.take_over(after, index.summary, &events);
                Ok(None)
            }
            Err(StoreError::Conflict { .. }) => {
                self.shared.own.store(0, Ordering::Release);
                self.catch_up().await?;
                Ok(Some(events.into_iter().map(unstamp).collect()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Folds in what others have appended.
    pub(super) async fn catch_up(&mut self) -> Result<(), Stop> {
        let next = self.shared.state().next;
        let events = self.shared.runner.store.read(&self.shared.run, next, usize::MAX).await?;
        self.fold(&events)
    }

    fn fold(&mut self, events: &[Arc<Event>]) -> Result<(), Stop> {
        let (after, index) = self.folded(events)?;
        self.take_over(after, index.summary, events);
        Ok(())
    }

    /// Folds events into a copy of the state: an event that cannot happen is never appended.
    fn folded(&self, events: &[Arc<Event>]) -> Result<(RunState, Index), Stop> {
        let before = self.shared.state().clone();
        let after = follow(&before, events).map_err(|error| Stop(error.to_string()))?;
        let index = index(&self.shared.run, &before, &after, Some(&self.summary));
        Ok((after, index))
    }

    fn take_over(&mut self, after: RunState, summary: RunSummary, events: &[Arc<Event>]) {
        let mut state = self.shared.state();
        *state = after;
        let mut prompts = self.shared.prompts();
        for event in events {
            prompts.apply(event);
        }
        drop(prompts);
        self.summary = summary;
        if events.iter().any(|event| closes(&event.body)) {
            self.frames.forget_closed(&state);
        }
    }
}

/// Folds events into a copy of a state.
pub(super) fn follow(before: &RunState, events: &[Arc<Event>]) -> Result<RunState, IllegalEvent> {
    let mut after = before.clone();
    for event in events {
        after.apply(event)?;
    }
    Ok(after)
}

/// Makes what lists show of a run after an append; `row` is the row before it.
pub(super) fn index(run: &RunId, before: &RunState, after: &RunState, row: Option<&RunSummary>) -> Index {
    let waits = pending(after);
    let changed = waits != pending(before);
    Index { summary: summary(run, after, row), pending: changed.then_some(waits) }
}

/// Says whether an event closes the frame of a loop or a brain.
const fn closes(body: &Body) -> bool {
    matches!(body, Body::LoopComplete { .. } | Body::StepComplete { .. } | Body::LoopBrainComplete { .. })
}
