//! Appends: numbers and times for new events, and retries when another writer was first.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::load;
use super::shared::Stop;
use super::triggers::timers;
use super::worker::{Announced, Worker};
use crate::machine::{Effect, IllegalEvent, RunState, awaits, pending, summary};
use crate::record::{Epoch, Event, EventKind, NewEvent, Path, RunId, RunSummary, Seq, SignalId, Timestamp};
use crate::store::{Append, Index, Snapshot, StoreError, TimerChange};

/// After how many events a snapshot is made anew, so that a decision about a long run need not fold its whole log.
const SNAPSHOT_EVERY: u64 = 256;

/// How long a worker waits before it asks a store again that has failed: six seconds in all.
pub(super) const PAUSES: [Duration; 7] = {
    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }
    [millis(50), millis(100), millis(200), millis(400), millis(800), millis(1600), millis(3200)]
};

/// Says whether what stops a worker may pass: the store failed at this, and may not the next time.
pub(super) const fn passes(stop: &Stop) -> bool {
    matches!(stop, Stop::Store(StoreError::Failed { .. }))
}

/// Gives new events their numbers, one time and an epoch.
pub(super) fn stamp(new_events: Vec<NewEvent>, first: Seq, at: Timestamp, epoch: Option<Epoch>) -> Vec<Arc<Event>> {
    let mut seq = first;
    new_events
        .into_iter()
        .map(|NewEvent { path, kind }| {
            let event = Event { seq, at, epoch, path, kind };
            seq = seq.next();
            Arc::new(event)
        })
        .collect()
}

fn unstamp(event: Arc<Event>) -> NewEvent {
    let Event { path, kind, .. } = Arc::unwrap_or_clone(event);
    NewEvent { path, kind }
}

impl Worker {
    /// Appends events, and the intents of whatever can begin from then on. Answers `false` when somebody else was first:
    /// then what they did is folded in, nothing was appended, and the caller has to decide again.
    pub(super) async fn append(&mut self, own: impl Into<Announced>) -> Result<bool, Stop> {
        Ok(self.try_append(own.into(), true).await?.is_none())
    }

    /// Appends events after which nothing begins.
    pub(super) async fn append_last(&mut self, new_events: Vec<NewEvent>) -> Result<bool, Stop> {
        Ok(self.try_append(new_events.into(), false).await?.is_none())
    }

    /// Appends what came of an effect, after whatever somebody else appends meanwhile, as long as the run waits for
    /// it: a call that was cancelled takes no result any more.
    pub(super) async fn append_outcome(&mut self, path: &Path, new_events: Vec<NewEvent>) -> Result<bool, Stop> {
        let mut own = new_events.into();
        while awaits(&self.shared.state(), path) {
            match self.try_append(own, true).await? {
                None => return Ok(true),
                Some(returned) => own = returned,
            }
        }
        tracing::debug!(run = %self.shared.run, %path, "an outcome came too late");
        Ok(false)
    }

    /// Appends events and, where the run goes on, the intents of what can begin then; or gives the events back when
    /// somebody else was first.
    async fn try_append(&mut self, own: Announced, goes_on: bool) -> Result<Option<Announced>, Stop> {
        let Announced { new_events, mut effects } = own;
        if new_events.is_empty() {
            // It would change nothing, so the same would have to be done again, without end.
            return Err(Stop::Nothing);
        }
        let (before, at) = {
            let state = self.shared.state();
            (state.clone(), self.shared.now().max(state.at))
        };
        let next = before.next;
        let own = (new_events.len(), effects.len());
        let mut events = stamp(new_events, next, at, Some(self.epoch));
        // An event that cannot happen is never appended.
        let mut after = follow(&before, &events)?;
        if goes_on {
            effects.extend(self.announce_next(&mut after, &mut events)?);
        }
        let snapshot = self.snapshot(&after);
        let (shared, epoch) = (Arc::clone(&self.shared), self.epoch);
        let made = |after: &RunState| {
            let timers = timers(&shared.run, after, &events);
            let extras = Extras { epoch: Some(epoch), timers, snapshot: snapshot.clone(), ..Extras::default() };
            append_of(&shared.run, &before, after, Some(&*shared.summary()), &events, extras)
        };
        let mut append = made(&after);
        let summary = append.index.summary.clone();
        // Whatever somebody else appends up to there makes this append fail, and is read then.
        self.shared.own.store(next.0 + events.len() as u64, Ordering::Release);
        let mut pauses = PAUSES.iter();
        let failed = loop {
            let failed = match shared.runner.store.append(&shared.run, append).await {
                Ok(()) => {
                    if let Some(snapshot) = &snapshot {
                        self.shared.snapshot.store(snapshot.next.0, Ordering::Relaxed);
                    }
                    self.shared.take_over(after, summary, &events);
                    self.close_frames(&events);
                    self.announced.extend(effects);
                    return Ok(None);
                }
                Err(StoreError::Conflict { .. }) => match self.catch_up_with().await {
                    // An append whose answer was lost is there.
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
            // What is in flight goes on meanwhile, and what came of it is not lost.
            let Some(pause) = pauses.next().filter(|_| passes(&failed)) else { break failed };
            tracing::warn!(run = %self.shared.run, error = %failed, "the store failed; the same is tried again");
            tokio::time::sleep(*pause).await;
            append = made(&after);
        };
        // Nobody knows how far the log goes now: whatever comes rings.
        self.shared.own.store(0, Ordering::Release);
        Err(failed)
    }

    /// Adds the intents of whatever can begin after the events, as long as there is any, and returns its effects.
    fn announce_next(&self, after: &mut RunState, events: &mut Vec<Arc<Event>>) -> Result<Vec<Effect>, IllegalEvent> {
        let mut effects = Vec::new();
        loop {
            let Announced { new_events, effects: more } = self.follows(after);
            if new_events.is_empty() {
                return Ok(effects);
            }
            let announced = stamp(new_events, after.next, after.at, Some(self.epoch));
            for event in &announced {
                after.fold(event)?;
            }
            events.extend(announced);
            effects.extend(more);
        }
    }

    /// Folds in what others have appended, as patiently as what is appended here.
    pub(super) async fn catch_up(&mut self) -> Result<(), Stop> {
        let mut pauses = PAUSES.iter();
        loop {
            match self.catch_up_with().await {
                Ok(_) => return Ok(()),
                Err(stop) => match pauses.next().filter(|_| passes(&stop)) {
                    Some(pause) => tokio::time::sleep(*pause).await,
                    None => return Err(stop),
                },
            }
        }
    }

    async fn catch_up_with(&mut self) -> Result<Vec<Arc<Event>>, Stop> {
        let events = self.shared.catch_up().await?;
        self.close_frames(&events);
        let lost = self.shared.state().claim.as_ref().is_some_and(|claim| claim.epoch > self.epoch);
        if lost { Err(Stop::Lost) } else { Ok(events) }
    }

    fn close_frames(&mut self, events: &[Arc<Event>]) {
        if events.iter().any(|event| closes(&event.kind)) {
            self.frames.forget_closed(&self.shared.state());
        }
    }

    /// Makes a snapshot where enough has been appended since the last one, by whichever workers.
    fn snapshot(&self, after: &RunState) -> Option<Snapshot> {
        let last = self.shared.snapshot.load(Ordering::Relaxed);
        (after.next.0.saturating_sub(last) >= SNAPSHOT_EVERY).then(|| load::snapshot(after)).flatten()
    }
}

/// What an append carries beside its events.
#[derive(Default)]
pub(super) struct Extras {
    pub(super) epoch: Option<Epoch>,
    pub(super) takes: Vec<SignalId>,
    pub(super) timers: Vec<TimerChange>,
    pub(super) snapshot: Option<Snapshot>,
}

/// Makes the append of events that lead from one state to another; `row` is the row about the run before it.
pub(super) fn append_of(
    run: &RunId,
    before: &RunState,
    after: &RunState,
    row: Option<&RunSummary>,
    events: &[Arc<Event>],
    Extras { epoch, takes, timers, snapshot }: Extras,
) -> Append {
    let index = index(run, before, after, row);
    Append { expected: before.next, epoch, events: events.to_vec(), index, takes, timers, snapshot }
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
const fn closes(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::LoopComplete { .. } | EventKind::StepComplete { .. } | EventKind::LoopBrainComplete { .. }
    )
}
