//! The draft of a worker's next append: what follows from outcomes and from the state, before it is in the log.
//!
//! The worker decides on the state after its draft, so outcomes that have arrived together are appended together.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use super::append::Stamp;
use crate::machine::Effect;
use crate::record::{Event, NewEvent, Path};

/// What the next append writes.
#[derive(Default)]
pub(in crate::runner) struct Draft {
    pub(in crate::runner) events: Vec<Arc<Event>>,
    /// The effects whose intents are among the events.
    pub(super) effects: Vec<Effect>,
    /// The effects whose outcomes are among the events, and where.
    pub(super) outcomes: Vec<(Path, Range<usize>)>,
    /// The time of the events: all events of an append have that of the first.
    pub(super) stamp: Option<Stamp>,
    /// The number of events whose size is known, and the sum of their sizes.
    measured: (usize, usize),
}

/// The number of events from which on a draft is appended.
const FULL: usize = 64;
/// The number of bytes from which on a draft is appended: a few large documents are as much work for a store as many small ones, and a
/// crash loses no more of them.
const FULL_BYTES: usize = 4 << 20;
/// The number of events from which on a draft is measured, which takes as long as encoding it.
const MEASURED_FROM: usize = 8;

/// The events of an effect's outcome.
pub(super) type OutcomeEvents = (Path, Vec<NewEvent>);

impl Draft {
    /// Returns whether it is appended before more is added. Few events may be larger than the limit.
    pub(super) fn is_full(&mut self) -> bool {
        if self.events.len() < MEASURED_FROM {
            return false;
        }
        let (known, bytes) = self.measured;
        let added = self.events.get(known..).unwrap_or_default();
        let bytes = added.iter().map(|event| json_bytes(&event.kind)).fold(bytes, usize::saturating_add);
        self.measured = (self.events.len(), bytes);
        self.events.len() >= FULL || bytes >= FULL_BYTES
    }

    /// Removes everything, and keeps the room for the next draft.
    pub(super) fn clear(&mut self) {
        let Self { events, effects, outcomes, stamp, measured } = self;
        *measured = (0, 0);
        events.clear();
        effects.clear();
        outcomes.clear();
        *stamp = None;
    }

    /// Returns the outcomes of a draft whose events were not appended.
    pub(super) fn into_outcomes(self) -> Vec<OutcomeEvents> {
        let new_event = |event: &Arc<Event>| {
            let Event { path, kind, with_next, .. } = &**event;
            NewEvent { path: path.clone(), kind: kind.clone(), with_next: *with_next }
        };
        let events = |range: Range<usize>| self.events.get(range).unwrap_or_default().iter().map(new_event).collect();
        self.outcomes.into_iter().map(|(path, range)| (path, events(range))).collect()
    }
}

/// Returns the number of bytes of a value as JSON; 0 if it cannot be written.
fn json_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).map_or(0, |()| count.0)
}
