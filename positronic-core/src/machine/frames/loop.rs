//! The frame of a loop: its phase, what its iteration was prepared with, and its batch of calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::Call;
use super::{Intent, OpenQuestion};

use super::known_contents::KnownContents;
use crate::machine::grants::{Grants, Spending};
use crate::record::encoding::skip::is_default;
use crate::record::{
    AnswerFault, ChildRun, ContentHash, ContextItem, LimitKind, Limits, LoopOutcome, MadeBy, ModelRequest, Part, Path,
    PluginStates, Seq, Settings, Timestamp, ToolResult, ToolSet, Transcript, Usage,
};

/// A rejected answer, which is not a valid structured action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RejectedAnswer {
    /// Its parts.
    pub parts: Arc<[Part]>,
    /// The error.
    pub message: String,
    /// The guard that refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
    /// The model that gave it.
    #[serde(default, skip_serializing_if = "MadeBy::is_unknown")]
    pub by: MadeBy,
}

/// An update of a plugin's state that an application has sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenUpdate {
    /// The event that accepted it.
    pub seq: Seq,
    /// The plugin.
    pub plugin: String,
    /// The update.
    pub update: Arc<Value>,
}

/// A loop that has begun.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoopFrame {
    /// Its path.
    pub path: Path,
    /// The current iteration, from 0.
    pub iteration: u32,
    /// The phase of the iteration.
    pub phase: LoopPhase,
    /// When it fails if it has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// The limits.
    pub limits: Limits,
    /// The decisions on the limits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub grants: Grants,
    /// The cost of model answers, here and below.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spent: Spending,
    /// The brain whose budget ended the loop, if it was not a limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<Path>,
    /// Whether that was the budget of the conversation.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ended_by_shared: bool,
    /// Whether a text answer does not end the loop: it has an exit tool, or requires an exit.
    pub exits: bool,
    /// The request of the current iteration.
    pub prepared: Prepared,
    /// The state that the current iteration's configuration saw: after a restart it reruns on it.
    pub seen: Arc<Value>,
    /// The plugin states from which the current iteration was prepared, for the same reason.
    #[serde(default, skip_serializing_if = "PluginStates::is_empty")]
    pub seen_plugins: PluginStates,
    /// The questions of plugins to models during the preparation of the next iteration, or of guards about its answer and its calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<OpenQuestion>,
    /// The messages of people, by their numbers, that guards have replaced for the next iteration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<u32>,
    /// The updates of plugins that applications have sent and no plugin has taken yet, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<OpenUpdate>,
    /// The rejected answers to the iteration's request, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RejectedAnswer>,
    /// The tokens of this loop and everything below it.
    pub usage: Usage,
    /// The active time, in microseconds: while a live worker had claimed the run. Only counted if it is
    /// limited.
    pub active: u64,
    /// The calls of the current batch, in order.
    pub batch: Vec<Arc<Call>>,
    /// The size of the batch.
    pub expected: u32,
    /// Whether a message arrived that the model has not read.
    pub unread: bool,
    /// The child runs that calls have started in the background, with the event, as long as their ends have not been reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<(Seq, ChildRun)>,
    /// The number of consecutive failed calls.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failures: u32,
    /// The fault of the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<AnswerFault>,
    /// The number of consecutive answers with a fault.
    #[serde(default, skip_serializing_if = "is_default")]
    pub faults: u32,
    /// Whether the iteration at which a limit was reached had begun.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cut: bool,
    /// The summary iteration, and the loop's outcome after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrap_up: Option<(u32, LoopOutcome)>,
    /// Rejected calls, as hashes of tool and arguments.
    pub denials: Arc<BTreeSet<ContentHash>>,
    known: Arc<KnownContents>,
}

/// The phase of a loop's iteration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub enum LoopPhase {
    /// The configuration closure and the plugins must run.
    #[default]
    Prepare,
    /// The model must answer.
    Ask {
        /// The try, from 0.
        attempt: u32,
        /// The state of the request.
        intent: Intent,
    },
    /// The model answered without a call.
    Answered,
    /// The calls must get their results.
    Batch,
    /// The loop must be closed.
    Ending(LoopOutcome),
}

/// The request of an iteration, without the messages.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Prepared {
    /// The system prompt.
    pub system: Arc<str>,
    /// The context items.
    pub context: Arc<[ContextItem]>,
    /// The tools.
    pub tools: Arc<ToolSet>,
    /// The model settings.
    pub settings: Arc<Settings>,
}

impl Prepared {
    /// Builds the request of an iteration.
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
    pub(in crate::machine) fn new(path: Path, limits: Limits, seen: Arc<Value>) -> Self {
        Self { path, limits, seen, ..Self::default() }
    }

    /// Returns the outcome of a loop that has one iteration left to sum up.
    pub(in crate::machine) const fn wraps_up(&self) -> Option<&LoopOutcome> {
        match &self.phase {
            LoopPhase::Ending(outcome @ (LoopOutcome::MaxIterations | LoopOutcome::Limit { .. }))
                if self.limits.wrap_up && self.wrap_up.is_none() && self.ended_by.is_none() =>
            {
                Some(outcome)
            }
            _ => None,
        }
    }

    /// Returns the usage of the loop and everything below it; the iterations and failures are its own.
    pub(in crate::machine) fn used(&self, kind: LimitKind) -> u64 {
        match kind {
            LimitKind::Tokens => self.usage.total(),
            LimitKind::Money => self.spent.known.nanos(),
            LimitKind::Time => self.active,
            LimitKind::Iterations => u64::from(self.iteration),
            LimitKind::Failures => u64::from(self.failures),
        }
    }

    /// Returns whether the loop's next `LOOP_ITERATION` can reference this content by hash.
    #[must_use]
    pub fn knows(&self, hash: &ContentHash) -> bool {
        self.known.get(hash).is_some()
    }

    pub(in crate::machine) fn known_mut(&mut self) -> &mut KnownContents {
        Arc::make_mut(&mut self.known)
    }

    /// Returns the output of the exit tool that ended the loop.
    pub(crate) fn exit_output(&self) -> Option<&Value> {
        let mut exits = self.batch.iter().filter(|call| call.ends_loop()).filter_map(|call| call.result());
        exits.find_map(|result| match result {
            ToolResult::Success { output, .. } => Some(output),
            _ => None,
        })
    }

    /// Finds a call of the current batch by its index.
    #[must_use]
    pub fn call(&self, iteration: u32, index: u32) -> Option<&Call> {
        if iteration != self.iteration {
            return None;
        }
        self.batch.get(usize::try_from(index).ok()?).map(|call| &**call)
    }

    pub(in crate::machine) fn call_mut(&mut self, iteration: u32, index: u32) -> Option<&mut Call> {
        if iteration != self.iteration {
            return None;
        }
        self.batch.get_mut(usize::try_from(index).ok()?).map(Arc::make_mut)
    }
}
