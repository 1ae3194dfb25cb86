//! What is written at once.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::record::{
    Epoch, Event, EventKind, Pending, RunSummary, Seq, SideOutput, SignalId, Timer, Timestamp, TriggerId,
};

/// An atomic append. The files that its events record are known from then on as this run's, and stay as long as it does.
#[derive(Debug, Clone)]
pub struct Append {
    /// The number that the first of the events has.
    pub expected: Seq,
    /// The attachment of the worker that appends; none for a signal.
    pub epoch: Option<Epoch>,
    /// The events, numbered from `expected` on. None of them is refused by the machine: whoever appends has folded
    /// them first.
    pub events: Vec<Arc<Event>>,
    /// What lists show of the run from then on.
    pub index: Index,
    /// The mail that the events deliver, which nobody else gets then. An append that takes what was taken before is
    /// refused; one that takes what there is not any more is an append all the same.
    pub takes: Vec<SignalId>,
    /// What becomes of timers. One that fires has to be as the append says; else the append is refused. A log that is copied
    /// changes none, although its events tell of them.
    pub timers: Vec<TimerChange>,
    /// A snapshot, which replaces the one before.
    pub snapshot: Option<Snapshot>,
}

/// What an append does to a timer.
#[derive(Debug, Clone, PartialEq)]
pub enum TimerChange {
    /// It is kept, in the place of the one with its id.
    Set(Timer),
    /// It goes, if it is there.
    Deleted(TriggerId),
    /// It fires: the append begins the run that it starts.
    Fired {
        /// Which.
        id: TriggerId,
        /// The time that it is due.
        due: Timestamp,
        /// Its next time; it goes where there is none.
        next: Option<Timestamp>,
    },
}

impl Append {
    /// Returns the events' lines of JSON, as any store keeps them.
    pub(super) fn lines(&self) -> Result<Vec<Box<str>>, StoreError> {
        let mut next = self.expected;
        let line = |event: &Arc<Event>| {
            if event.seq != next {
                let message = format!("an event with number {} was appended as number {next}", event.seq);
                return Err(StoreError::Failed { message });
            }
            next = next.next();
            let line = event.to_json().map_err(|error| StoreError::Unrecordable {
                event: event.kind.name().to_owned(),
                path: event.path.clone(),
                reason: error.to_string(),
            })?;
            Ok(line.into_boxed_str())
        };
        self.events.iter().map(line).collect()
    }

    /// Returns the hashes of the files that the events record and that the store keeps.
    pub(super) fn blobs(&self) -> impl Iterator<Item = &str> {
        self.events.iter().filter_map(|event| match &event.kind {
            EventKind::LoopOutput { output: SideOutput::File(file), .. } => file.blob(),
            _ => None,
        })
    }

    /// Returns the signals that the events accept, with the event of each.
    pub(super) fn signals(&self) -> impl Iterator<Item = (&SignalId, Seq)> {
        self.events.iter().filter_map(|event| Some((event.kind.signal()?, event.seq)))
    }

    /// Returns the newest attachment that the events open, if they open one.
    pub(super) fn claims(&self) -> Option<Epoch> {
        let claims = self.events.iter().filter(|event| matches!(event.kind, EventKind::RunClaimed { .. }));
        claims.filter_map(|event| event.epoch).max()
    }
}

/// What lists show of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// The row about the run.
    pub summary: RunSummary,
    /// Everything in it that waits for somebody; `None` where that is as before.
    pub pending: Option<Vec<Pending>>,
}

/// What a log comes to as of an event, so that not all of it has to be folded again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The number of the first event that is not in it.
    pub next: Seq,
    /// The version of its format. One of another version is of no use, and no loss.
    pub version: u32,
    /// What it holds.
    pub content: String,
}
