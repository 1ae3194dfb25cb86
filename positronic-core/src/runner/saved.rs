//! What an append saves beside its events, so that later readers need not read the log again.
//!
//! Every [`SNAPSHOT_EVERY`] events an append carries a snapshot of the state and a part of the prompts. The last append
//! of a run in a conversation carries the final state and the run's turn instead of the parts; see [`History`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::load::{self, Content};
use super::shared::Shared;
use crate::machine::RunState;
use crate::projection::History;
use crate::record::{Event, RunSummary, Seq};
use crate::store::{SavedPrompts, Snapshot};

/// The number of events between snapshots, so that a signal to a long run does not fold the whole log.
const SNAPSHOT_EVERY: u64 = 256;

/// What an append saves.
#[derive(Default)]
pub(super) struct Saved {
    pub(super) snapshot: Option<Snapshot>,
    pub(super) prompts: Option<SavedPrompts>,
    /// The conversation up to the end of the run, if the append ends it.
    history: Option<History>,
}

impl Saved {
    /// Returns what an append of events saves, from the state after them.
    pub(super) fn with(shared: &Shared, after: &RunState, events: &[Arc<Event>]) -> Self {
        if after.has_ended() && after.start.conversation.is_some() {
            return Self::at_end(shared, after, events);
        }
        let last = shared.snapshot.load(Ordering::Relaxed);
        if after.next.0.saturating_sub(last) < SNAPSHOT_EVERY {
            return Self::default();
        }
        let prompts = (!after.has_ended()).then(|| {
            // The prompts before the append: they are folded only after it.
            let state = shared.state();
            let (from, part) = shared.prompts().part(state.next);
            load::encoded(from, state.next, &Content::Part(part))
        });
        Self { snapshot: load::snapshot(after), prompts: prompts.flatten(), history: None }
    }

    fn at_end(shared: &Shared, after: &RunState, events: &[Arc<Event>]) -> Self {
        let mut prompts = shared.prompts().clone();
        for event in events {
            prompts.apply(event);
        }
        let history = prompts.conversation();
        let block = history.last_block().cloned().map(Content::Turns);
        let prompts = block.and_then(|block| load::encoded(Seq(0), after.next, &block));
        Self { snapshot: load::snapshot(after), prompts, history: Some(history) }
    }

    /// Records that the append succeeded. `row` is the run's summary after it.
    pub(super) fn stored(self, shared: &Shared, row: &RunSummary) {
        if let Some(snapshot) = &self.snapshot {
            shared.snapshot.store(snapshot.next.0, Ordering::Relaxed);
        }
        if let Some(history) = self.history {
            let history = if self.prompts.is_some() { history.stored() } else { history };
            shared.runner.histories.put(row, history);
        }
    }

    /// Records that the append was not made, or that this is unknown.
    pub(super) fn lost(&self, shared: &Shared) {
        if self.prompts.is_some() {
            shared.prompts().forget_parts();
        }
    }
}
