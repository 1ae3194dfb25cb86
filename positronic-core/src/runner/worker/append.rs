//! Appends of events: their numbers and times, and what the store writes with them.

use std::sync::Arc;

use backon::BackoffBuilder as _;

use crate::machine::{IllegalEvent, RunState, add_events, pending, summary};
use crate::record::{Claim, Epoch, Event, NewEvent, RunId, RunSummary, Seq, SignalId, Timestamp};
use crate::runner::clock::pauses;
use crate::store::{Append, EventStore, Index, SavedPrompts, Snapshot, StoreError, TimerChange};

/// The time of an event.
#[derive(Clone, Copy)]
pub(in crate::runner) struct Stamp {
    at: Timestamp,
    clock: Option<Timestamp>,
}

impl Stamp {
    /// Returns the time of an event in the name of a worker that did not append it: no time passes on the worker's clock.
    pub(in crate::runner) const fn for_worker(at: Timestamp, worker_at: Timestamp) -> Self {
        Self { at, clock: Some(worker_at) }
    }

    /// Returns the time of a worker's event after one with the time `last`, from its clock.
    pub(super) fn of_worker(now: Timestamp, last: Timestamp) -> Self {
        Self { at: now.max(last), clock: (now < last).then_some(now) }
    }
}

impl From<Timestamp> for Stamp {
    fn from(at: Timestamp) -> Self {
        Self { at, clock: None }
    }
}

/// Numbers the events of a transition from `first` on and gives them their time and epoch.
pub(in crate::runner) fn stamp(
    transition: Vec<NewEvent>,
    first: Seq,
    at: impl Into<Stamp>,
    epoch: Option<Epoch>,
) -> Vec<Arc<Event>> {
    stamp_all(NewEvent::transition(transition), first, at, epoch).collect()
}

/// Numbers the events of several transitions.
pub(super) fn stamp_all(
    new_events: Vec<NewEvent>,
    first: Seq,
    stamp: impl Into<Stamp>,
    epoch: Option<Epoch>,
) -> impl Iterator<Item = Arc<Event>> {
    let Stamp { at, clock } = stamp.into();
    let mut next = first;
    new_events.into_iter().map(move |NewEvent { path, kind, with_next }| {
        let seq = next;
        next = next.next();
        Arc::new(Event { seq, at, epoch, clock, with_next, path, kind })
    })
}

/// What an append carries besides its events.
#[derive(Default)]
pub(in crate::runner) struct Extras {
    pub(in crate::runner) epoch: Option<Epoch>,
    pub(in crate::runner) deliveries: Vec<SignalId>,
    pub(in crate::runner) timers: Vec<TimerChange>,
    pub(in crate::runner) snapshot: Option<Snapshot>,
    pub(in crate::runner) prompts: Option<SavedPrompts>,
    pub(in crate::runner) sinks: Vec<String>,
}

/// Creates the append of the events between two states. `row` is the run's summary before them.
pub(in crate::runner) fn append_of(
    run: &RunId,
    before: &RunState,
    after: &RunState,
    row: Option<&RunSummary>,
    events: &[Arc<Event>],
    Extras { epoch, deliveries, timers, snapshot, prompts, sinks }: Extras,
) -> Append {
    let index = index(run, before, after, row, events);
    Append {
        expected: before.next,
        epoch,
        events: events.to_vec(),
        index,
        deliveries,
        timers,
        snapshot,
        prompts,
        sinks,
    }
}

/// Appends events. If the store's answer is lost, appends them again: then either they are written, or the conflict shows
/// whether they were.
pub(in crate::runner) async fn append(store: &dyn EventStore, run: &RunId, append: Append) -> Result<(), StoreError> {
    let mut lost = match store.append(run, append.clone()).await {
        Err(lost @ StoreError::Unknown { .. }) => lost,
        answer => return answer,
    };
    for pause in pauses().build() {
        tokio::time::sleep(pause).await;
        match store.append(run, append.clone()).await {
            Err(error @ StoreError::Unknown { .. }) => lost = error,
            // The first one may still have been written.
            Err(StoreError::Failed { .. }) => {}
            Err(refused @ (StoreError::Conflict { .. } | StoreError::Fenced { .. })) => {
                match store.read(run, append.expected, append.events.len()).await {
                    Ok(events) if events == append.events => return Ok(()),
                    Ok(_) => return Err(refused),
                    Err(_) => {}
                }
            }
            answer => return answer,
        }
    }
    Err(lost)
}

/// Folds events into a copy of a state.
pub(in crate::runner) fn follow(before: &RunState, events: &[Arc<Event>]) -> Result<RunState, IllegalEvent> {
    let mut after = before.clone();
    for event in events {
        after.fold(event)?;
    }
    Ok(after)
}

/// Returns the run's summary and pending items after an append of `events`. `row` is the summary before it.
pub(super) fn index(
    run: &RunId,
    before: &RunState,
    after: &RunState,
    row: Option<&RunSummary>,
    events: &[Arc<Event>],
) -> Index {
    let waits = pending(after);
    let changed = waits != pending(before);
    let mut summary = summary_after(run, after, row, events);
    summary.pending = Some(waits.len());
    Index { summary, pending: changed.then_some(waits) }
}

/// Returns the run's summary after `events`, without the number of its pending items.
pub(super) fn summary_after(
    run: &RunId,
    state: &RunState,
    row: Option<&RunSummary>,
    events: &[Arc<Event>],
) -> RunSummary {
    let mut summary = summary(run, state, row);
    add_events(&mut summary, state, events);
    summary
}

/// Returns the live worker that has claimed a run.
pub(in crate::runner) async fn worker_of<'a>(
    store: &dyn EventStore,
    claim: Option<&'a Claim>,
) -> Result<Option<&'a str>, StoreError> {
    let Some(Claim { owner, released: false, .. }) = claim else { return Ok(None) };
    Ok(store.is_lease_live(owner).await?.then_some(&**owner))
}
