//! The frame of a loop: where its iteration stands, what the iteration sends, and what counts towards its limits.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::Call;
use super::known::Known;
use super::limits::{Grants, Spending, is_default};
use super::state::{Asked, Intent};
use crate::record::{
    AnswerFault, ContentHash, ContextItem, Limits, LoopOutcome, ModelRequest, Part, Path, PluginStates, Settings,
    ToolSet, Transcript, Usage,
};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// An answer that was refused, since it is no decision that fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// Its parts.
    pub parts: Arc<[Part]>,
    /// What is wrong with it.
    pub message: String,
}

/// A loop that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopFrame {
    /// Its path.
    pub path: Path,
    /// The version of the rules by which the record becomes messages, as `LOOP_START` says it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub projection: u32,
    /// The current iteration, from 0.
    pub iteration: u32,
    /// Where the iteration stands.
    pub phase: LoopPhase,
    /// The limits.
    pub limits: Limits,
    /// What people have said about the limits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub grants: Grants,
    /// What the answers of models have cost, here and below.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spent: Spending,
    /// The brain whose budget ended the loop, where it was not a limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<Path>,
    /// Whether that was the budget of the conversation.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ended_by_shared: bool,
    /// Whether a text answer does not end the loop: an exit tool is among the tools, or the loop requires an exit.
    pub exits: bool,
    /// What the current iteration sends to the model.
    pub prepared: Prepared,
    /// The state that the current iteration's configuration saw: after a restart it runs again on it.
    pub seen: Arc<Value>,
    /// What the plugins kept when the current iteration was prepared, for the same reason.
    #[serde(default, skip_serializing_if = "PluginStates::is_empty")]
    pub seen_plugins: PluginStates,
    /// The questions that plugins have asked a model while they prepare the next iteration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
    /// The answers to the iteration's request that were refused, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// The tokens of this loop and all below it.
    pub usage: Usage,
    /// The active time, in microseconds: while a worker that was alive had the run in hand. Counted only where it is
    /// limited.
    pub active: u64,
    /// The calls of the current batch, in order.
    pub batch: Vec<Arc<Call>>,
    /// How many calls the batch has.
    pub expected: u32,
    /// Whether a message came that the model has not read.
    pub unread: bool,
    /// How many calls have failed since one did its work.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// What is wrong with the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<AnswerFault>,
    /// How many answers in a row had a fault.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub faults: u32,
    /// Whether the iteration at which a limit was reached had begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The iteration in which the model sums up, and how the loop ends after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrap_up: Option<(u32, LoopOutcome)>,
    /// Rejected calls, as hashes of tool and arguments.
    pub denials: Arc<BTreeSet<ContentHash>>,
    known: Arc<Known>,
}

/// Where an iteration of a loop stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum LoopPhase {
    /// The configuration closure and the plugins have to run.
    Prepare,
    /// The model has to answer.
    Ask {
        /// The try, from 0.
        attempt: u32,
        /// Where the request stands.
        intent: Intent,
    },
    /// The model answered without a call.
    Answered,
    /// The calls have to get their results.
    Batch,
    /// The loop has to be closed.
    Ending(LoopOutcome),
}

/// What one iteration sends to the model beside the messages.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Prepared {
    /// The system prompt.
    pub system: Arc<str>,
    /// The context items.
    pub context: Arc<[ContextItem]>,
    /// The tools.
    pub tools: Arc<ToolSet>,
    /// How the model is to answer.
    pub settings: Arc<Settings>,
}

impl Prepared {
    /// Makes the request of an iteration.
    #[must_use]
    pub fn request(&self, iteration: Path, attempt: u32, messages: Transcript) -> ModelRequest {
        ModelRequest {
            path: iteration,
            attempt,
            system: Arc::clone(&self.system),
            context: Arc::clone(&self.context),
            tools: Arc::clone(&self.tools),
            messages,
            settings: Arc::clone(&self.settings),
        }
    }
}

impl LoopFrame {
    pub(super) fn new(path: Path, limits: Limits, projection: u32, seen: Arc<Value>) -> Self {
        Self {
            path,
            projection,
            iteration: 0,
            phase: LoopPhase::Prepare,
            limits,
            grants: Grants::default(),
            spent: Spending::default(),
            ended_by: None,
            ended_by_shared: false,
            exits: false,
            prepared: Prepared::default(),
            seen,
            seen_plugins: PluginStates::default(),
            asked: Vec::new(),
            refused: Vec::new(),
            usage: Usage::default(),
            active: 0,
            batch: Vec::new(),
            expected: 0,
            unread: false,
            failures: 0,
            fault: None,
            faults: 0,
            cut: false,
            wrap_up: None,
            denials: Arc::default(),
            known: Arc::default(),
        }
    }

    /// Says whether a hash alone stands for this content in the loop's next `LOOP_ITERATION`.
    #[must_use]
    pub fn knows(&self, hash: &ContentHash) -> bool {
        self.known.get(hash).is_some()
    }

    pub(super) fn known_mut(&mut self) -> &mut Known {
        Arc::make_mut(&mut self.known)
    }

    /// Finds the call at this place of the current batch.
    #[must_use]
    pub fn call(&self, iteration: u32, index: u32) -> Option<&Call> {
        if iteration != self.iteration {
            return None;
        }
        self.batch.get(usize::try_from(index).ok()?).map(|call| &**call)
    }

    pub(super) fn call_mut(&mut self, iteration: u32, index: u32) -> Option<&mut Call> {
        if iteration != self.iteration {
            return None;
        }
        self.batch.get_mut(usize::try_from(index).ok()?).map(Arc::make_mut)
    }
}
