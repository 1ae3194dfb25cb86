//! The atomic append: events with everything that a store writes in the same transaction.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::record::encoding::scratch::with_scratch;
use crate::record::{
    Epoch, Event, EventKind, Pending, RunSummary, Seq, SignalId, Timer, Timestamp, TriggerId, stored_files,
};

/// An atomic append. The store also references the files whose hashes the events contain, until it removes the run.
#[derive(Debug, Clone)]
pub struct Append {
    /// The number of the first event.
    pub expected: Seq,
    /// The epoch of the appending worker's claim; `None` for a signal.
    pub epoch: Option<Epoch>,
    /// The events, numbered from `expected`. The appender has folded them first, so the machine accepts them all.
    pub events: Vec<Arc<Event>>,
    /// What lists show of the run after this append.
    pub index: Index,
    /// The webhooks that the events deliver. The store refuses the append if one of them was delivered before; it ignores
    /// one that it no longer has.
    pub deliveries: Vec<SignalId>,
    /// Changes to timers. A timer that fires must be due at the time in the change; else the store refuses the append.
    /// The copy of a log changes no timers, although its events mention them.
    pub timers: Vec<TimerChange>,
    /// A snapshot, which replaces the previous one.
    pub snapshot: Option<Snapshot>,
    /// A part of the saved prompts, which is added to the parts before it.
    pub prompts: Option<SavedPrompts>,
    /// The durable sinks of the worker that claims the run with this append. It becomes the one that feeds them; a sink
    /// that the run does not have yet begins at event 0. See [`SinkStore::sink_position`](super::SinkStore::sink_position).
    pub sinks: Vec<String>,
}

/// A change to a timer.
#[derive(Debug, Clone, PartialEq)]
pub enum TimerChange {
    /// Stores the timer and replaces the one with the same id.
    Set(Timer),
    /// Deletes the timer if it exists.
    Deleted(TriggerId),
    /// Fires the timer: the append begins the run that it starts.
    Fired {
        /// The timer.
        id: TriggerId,
        /// The time at which it is due.
        due: Timestamp,
        /// The next time; `None` deletes the timer.
        next: Option<Timestamp>,
    },
}

impl Append {
    /// Returns the events as lines of JSON, in one text. Each ends with a line break, and JSON has none within.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unrecordable`] when an event cannot be serialized, [`StoreError::Failed`] when their numbers do not
    /// begin with `expected` or have a gap.
    pub fn lines(&self) -> Result<Box<str>, StoreError> {
        with_scratch(|buffer| self.lines_with(buffer))
    }

    fn lines_with(&self, buffer: &mut Vec<u8>) -> Result<Box<str>, StoreError> {
        let mut next = self.expected;
        for event in &self.events {
            if event.seq != next {
                let message = format!("an event with number {} was appended as number {next}", event.seq);
                return Err(StoreError::Failed { message });
            }
            next = next.next();
            let refused = |reason: String| {
                let (event, path) = (event.kind.name().to_owned(), event.path.clone());
                StoreError::Unrecordable { event, path, reason }
            };
            event.write_line(buffer).map_err(|error| refused(error.to_string()))?;
            buffer.push(b'\n');
        }
        let lines = str::from_utf8(buffer).map_err(|error| StoreError::Failed { message: error.to_string() })?;
        Ok(lines.into())
    }

    /// Returns the signals that the events accept, with the number of each event.
    pub fn signals(&self) -> impl Iterator<Item = (&SignalId, Seq)> {
        self.events.iter().filter_map(|event| Some((event.kind.signal()?, event.seq)))
    }

    /// Returns whether the append ends a reservation, a pause and refusals of its run: it claims the run, or it is a
    /// signal. A note that no worker claims the run is not one.
    #[must_use]
    pub fn ends_deferral(&self) -> bool {
        self.events.iter().any(|event| match event.kind {
            EventKind::RunClaimed { .. } => true,
            // What a tool call apart from its worker shows or records is no signal either.
            EventKind::RunNotClaimed { .. }
            | EventKind::LoopOutput { .. }
            | EventKind::ValueRecorded { .. }
            | EventKind::ChildStart(_) => false,
            _ => self.epoch.is_none(),
        })
    }

    /// Returns the owner of the last claim among the events.
    #[must_use]
    pub fn claimant(&self) -> Option<&str> {
        self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::RunClaimed { owner, .. } => Some(owner.as_str()),
            _ => None,
        })
    }

    /// Returns the highest epoch that a claim among the events opens.
    #[must_use]
    pub fn claims(&self) -> Option<Epoch> {
        let claims = self.events.iter().filter(|event| matches!(event.kind, EventKind::RunClaimed { .. }));
        claims.filter_map(|event| event.epoch).max()
    }

    /// Returns the hashes of the files that these lines reference, some perhaps repeatedly.
    pub fn files(lines: &str) -> impl Iterator<Item = &str> {
        stored_files(lines)
    }
}

/// What lists show of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// The summary of the run.
    pub summary: RunSummary,
    /// Every pending item of the run; `None` leaves the items as they are.
    pub pending: Option<Vec<Pending>>,
}

/// A folded state of a log up to an event, so that resuming folds only the events after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The number of the first event that it does not cover.
    pub next: Seq,
    /// The version of its format. Snapshots of other versions are ignored.
    pub version: u32,
    /// The encoded state.
    pub content: String,
}

/// A part of a run's saved prompts: what its events from `from` on have changed in them. Resuming then needs only the
/// events after the last part, and the next run of a conversation none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPrompts {
    /// The number of the first event that it covers. A part that begins with event 0 replaces all others.
    pub from: Seq,
    /// The number of the first event that it does not cover.
    pub next: Seq,
    /// The version of its format. Parts of other versions are ignored.
    pub version: u32,
    /// The encoded part.
    pub content: String,
}
