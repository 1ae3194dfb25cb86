//! What an append saves beside its events, so that later readers need not read the log again.
//!
//! Every [`SNAPSHOT_EVERY`] events an append carries a snapshot of the state. When the worker releases the run, so that it
//! can be resumed anywhere, and as many events are new, the append carries a part of the prompts; a run that works to its
//! end saves none. The last append of a run in a conversation carries the final state and the run's turn instead of the
//! parts; see [`History`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::load::{self, SavedContent};
use super::shared::Shared;
use crate::machine::RunState;
use crate::projection::History;
use crate::record::{Event, EventKind, RunSummary, Seq};
use crate::store::{SavedPrompts, Snapshot};

/// The number of events between snapshots, so that a signal to a long run does not fold the whole log.
const SNAPSHOT_EVERY: u64 = 256;

/// What an append saves. Unless the append succeeds, the next part of the prompts contains everything again.
pub(super) struct Saved {
    shared: Arc<Shared>,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) prompts: Option<SavedPrompts>,
    /// The conversation up to the end of the run, if the append ends it.
    history: Option<History>,
}

impl Saved {
    /// Returns what an append of events saves, from the state after them.
    pub(super) fn with(shared: &Arc<Shared>, after: &RunState, events: &[Arc<Event>]) -> Self {
        let mut saved = Self { shared: Arc::clone(shared), snapshot: None, prompts: None, history: None };
        let last = shared.snapshot.load(Ordering::Relaxed);
        let is_turn = after.has_ended() && after.start.conversation.is_some();
        if is_turn || after.next.0.saturating_sub(last) >= SNAPSHOT_EVERY {
            saved.snapshot = load::snapshot(after);
        }
        if is_turn {
            saved.turn(after.next, events);
        } else if after.has_ended() {
            // Nothing continues the run, so its parts would only take space.
            let is_saved = shared.prompts().saved() > Seq(0);
            saved.prompts = is_saved.then(|| load::nothing(after.next));
        } else if events.iter().any(|event| matches!(event.kind, EventKind::RunReleased { .. })) {
            saved.part();
        }
        saved
    }

    /// Adds a part with the prompts before the append, which are folded only after it.
    fn part(&mut self) {
        let state = self.shared.state();
        let mut prompts = self.shared.prompts();
        if state.next.0.saturating_sub(prompts.saved().0) >= SNAPSHOT_EVERY {
            let (from, part) = prompts.part(state.next);
            self.prompts = load::encoded(from, state.next, &SavedContent::Part(part));
        }
    }

    fn turn(&mut self, next: Seq, events: &[Arc<Event>]) {
        let mut prompts = self.shared.prompts().clone();
        for event in events {
            prompts.apply(event);
        }
        let history = prompts.conversation();
        let block = history.last_block().cloned().map(SavedContent::Turns);
        self.prompts = block.and_then(|block| load::encoded(Seq(0), next, &block));
        self.history = Some(history);
    }

    /// Records that the append succeeded. `row` is the run's summary after it.
    pub(super) fn stored(mut self, row: &RunSummary) {
        if let Some(snapshot) = self.snapshot.take() {
            self.shared.snapshot.store(snapshot.next.0, Ordering::Relaxed);
        }
        let is_saved = self.prompts.take().is_some();
        if let Some(history) = self.history.take() {
            let history = if is_saved { history.stored() } else { history };
            self.shared.runner.state.histories.put(row, history);
        }
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        if self.prompts.is_some() {
            self.shared.prompts().forget_parts();
        }
    }
}
