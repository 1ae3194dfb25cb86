//! What a call of a brain tells its client: progress while the run works, and the end of the leg.

use crate::last_answer::LastAnswer;
use crate::leg::{Encoder, LegEnd};
use crate::projection::{Item, Placed, Projection};

/// What the client of a call gets.
#[derive(Debug)]
pub(super) enum CallUpdate {
    /// What the run does now, in a few words.
    Progress(String),
    Over(EndedLeg),
}

/// The end of a leg, with what the run has said.
#[derive(Debug)]
pub(super) struct EndedLeg {
    pub(super) end: LegEnd,
    pub(super) answer: LastAnswer,
}

/// Encodes a leg.
#[derive(Debug, Default)]
pub(super) struct CallUpdates {
    answer: LastAnswer,
}

impl CallUpdates {
    /// Returns what the run has said.
    pub(super) fn into_answer(self) -> LastAnswer {
        self.answer
    }
}

fn progress(item: &Item) -> Option<String> {
    match item {
        Item::BrainStarted { title, .. } => Some(format!("brain {title}")),
        Item::StageStarted { path } => Some(format!("stage {path}")),
        Item::CallStarted { tool, .. } => Some(format!("tool {tool}")),
        Item::Progress { text, .. } => Some(text.clone()),
        _ => None,
    }
}

impl Encoder for CallUpdates {
    type Sent = CallUpdate;

    fn items(&mut self, items: Vec<Placed>) -> Vec<CallUpdate> {
        items.iter().for_each(|placed| self.answer.item(placed));
        items.iter().filter_map(|placed| progress(&placed.item)).map(CallUpdate::Progress).collect()
    }

    fn begin(&mut self, _: &Projection, _: bool) -> Vec<CallUpdate> {
        Vec::new()
    }

    fn end(&mut self, _: &Projection, end: LegEnd) -> Vec<CallUpdate> {
        vec![CallUpdate::Over(EndedLeg { end, answer: std::mem::take(&mut self.answer) })]
    }
}
