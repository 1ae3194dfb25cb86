//! Appending: numbers and times for drafts, and what to do when somebody else was first.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::load;
use super::shared::Stop;
use super::worker::Worker;
use crate::machine::{IllegalEvent, RunState, awaits, pending, summary};
use crate::record::{Body, Draft, Epoch, Event, Path, RunId, RunSummary, Seq, SignalId, Timestamp};
use crate::store::{Append, Index, Snapshot, StoreError};

/// After how many events a snapshot is made anew, so that a decision about a long run need not fold its whole log.
const SNAPSHOT_EVERY: u64 = 256;

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
        let (before, at) = {
            let state = self.shared.state();
            (state.clone(), self.shared.now().max(state.at))
        };
        let next = before.next;
        let events = stamp(drafts, next, at, Some(self.epoch));
        // An event that cannot happen is never appended.
        let after = follow(&before, &events)?;
        let extras = Extras { epoch: Some(self.epoch), snapshot: self.snapshot(&after), ..Extras::default() };
        let append = append_of(&self.shared.run, &before, &after, Some(&*self.shared.summary()), &events, extras);
        let summary = append.index.summary.clone();
        // Whatever somebody else appends up to there makes this append fail, and is read then.
        self.shared.own.store(next.0 + events.len() as u64, Ordering::Release);
        match self.shared.runner.store.append(&self.shared.run, append).await {
            Ok(()) => {
                self.shared.take_over(after, summary, &events);
                self.close_frames(&events);
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
        let events = self.shared.catch_up().await?;
        self.close_frames(&events);
        let lost = self.shared.state().claim.as_ref().is_some_and(|claim| claim.epoch > self.epoch);
        if lost { Err(Stop::Lost) } else { Ok(()) }
    }

    fn close_frames(&mut self, events: &[Arc<Event>]) {
        if events.iter().any(|event| closes(&event.body)) {
            self.frames.forget_closed(&self.shared.state());
        }
    }

    /// Makes a snapshot where enough has been appended since the last one.
    fn snapshot(&mut self, after: &RunState) -> Option<Snapshot> {
        let due = after.next.0 - self.snapshot.0 >= SNAPSHOT_EVERY;
        let made = due.then(|| load::snapshot(after)).flatten();
        if made.is_some() {
            self.snapshot = after.next;
        }
        made
    }
}

/// What an append carries beside its events.
#[derive(Default)]
pub(super) struct Extras {
    pub(super) epoch: Option<Epoch>,
    pub(super) takes: Vec<SignalId>,
    pub(super) snapshot: Option<Snapshot>,
}

/// Makes the append of events that lead from one state to another; `row` is the row about the run before it.
pub(super) fn append_of(
    run: &RunId,
    before: &RunState,
    after: &RunState,
    row: Option<&RunSummary>,
    events: &[Arc<Event>],
    Extras { epoch, takes, snapshot }: Extras,
) -> Append {
    let index = index(run, before, after, row);
    Append { expected: before.next, epoch, events: events.to_vec(), index, takes, snapshot }
}

/// Folds events into a copy of a state.
pub(super) fn follow(before: &RunState, events: &[Arc<Event>]) -> Result<RunState, IllegalEvent> {
    let mut after = before.clone();
    for event in events {
        after.fold(event)?;
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
