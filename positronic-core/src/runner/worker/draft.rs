//! The draft of a worker's next append: what follows from outcomes and from the state, before it is in the log.
//!
//! The worker decides on the state after its draft, so outcomes that have arrived together are appended together.

use std::ops::Range;
use std::sync::Arc;

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
}

/// The events of an effect's outcome.
pub(super) type OutcomeEvents = (Path, Vec<NewEvent>);

impl Draft {
    /// Removes everything, and keeps the room for the next draft.
    pub(super) fn clear(&mut self) {
        let Self { events, effects, outcomes, stamp } = self;
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
