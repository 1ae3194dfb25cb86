//! What a call of a brain tells its client: progress while the run works, and the end of the leg.

use std::collections::HashMap;

use crate::cut_off::CutOff;
use crate::last_answer::LastAnswer;
use crate::leg::{Encoder, LegEnd};
use crate::projection::{ApprovalOutcome, Item, Placed, Projection};

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
    /// The calls that did not run because a person has refused them, or did not decide in time.
    pub(super) refused: Vec<RefusedCall>,
    pub(super) cut_off: CutOff,
}

/// A call that was not approved.
#[derive(Debug)]
pub(super) struct RefusedCall {
    pub(super) tool: String,
    pub(super) outcome: ApprovalOutcome,
    pub(super) reason: Option<String>,
}

/// Encodes a leg.
#[derive(Debug, Default)]
pub(super) struct CallUpdates {
    answer: LastAnswer,
    /// The tools of the calls, by their ids.
    tools: HashMap<String, String>,
    refused: Vec<RefusedCall>,
    cut_off: CutOff,
}

impl CallUpdates {
    /// Returns the end of a leg, with what the run has said.
    pub(super) fn ended(&mut self, end: LegEnd) -> EndedLeg {
        let Self { answer, refused, cut_off, .. } = self;
        EndedLeg {
            end,
            answer: std::mem::take(answer),
            refused: std::mem::take(refused),
            cut_off: std::mem::take(cut_off),
        }
    }

    fn item(&mut self, item: &Item) {
        self.cut_off.item(item);
        match item {
            Item::CallStarted { id, tool, .. } => _ = self.tools.insert(id.clone(), tool.clone()),
            Item::ApprovalClosed { call, outcome, reason, .. } if *outcome != ApprovalOutcome::Approved => {
                let tool = self.tools.get(call).unwrap_or(call).clone();
                self.refused.push(RefusedCall { tool, outcome: *outcome, reason: reason.clone() });
            }
            _ => {}
        }
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
        for placed in &items {
            self.answer.item(placed);
            self.item(&placed.item);
        }
        items.iter().filter_map(|placed| progress(&placed.item)).map(CallUpdate::Progress).collect()
    }

    fn begin(&mut self, _: &Projection, _: bool) -> Vec<CallUpdate> {
        Vec::new()
    }

    fn end(&mut self, _: &Projection, end: LegEnd) -> Vec<CallUpdate> {
        vec![CallUpdate::Over(self.ended(end))]
    }
}
