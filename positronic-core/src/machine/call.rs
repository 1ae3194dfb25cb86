//! A call of a loop's current batch, and where it stands.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::limits::is_default;
use super::state::{BrainFrame, Intent, Values};
use crate::record::{CallFlags, Gate, Path, Seq, Timestamp, ToolResult, WaitSpec};

/// A call of the current batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Its path.
    pub path: Path,
    /// The tool.
    pub tool: String,
    /// The arguments that run: the proposed ones, or the edited ones.
    pub arguments: Arc<Value>,
    /// Whether a person has edited the arguments.
    #[serde(default)]
    pub edited: bool,
    /// What the tool promises.
    pub flags: CallFlags,
    /// What it needs an approval for.
    pub gate: Option<Gate>,
    /// The try, from 0.
    pub attempt: u32,
    /// How often the worker's process ended while the tool ran.
    #[serde(default, skip_serializing_if = "is_default")]
    pub crashes: u32,
    /// When the tool was started last.
    pub started: Option<Timestamp>,
    /// How many files and widgets it has made.
    pub outputs: u32,
    /// How many of them the tries before this one have made.
    pub outputs_before: u32,
    /// The values that the tool computed once.
    pub values: Values,
    /// Where it stands.
    pub phase: CallPhase,
}

/// Where a call stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CallPhase {
    /// It needs an approval that has not been asked for.
    Gated,
    /// A person is asked.
    Pending {
        /// The event that asked.
        since: Seq,
        /// When the question becomes void.
        expires: Option<Timestamp>,
    },
    /// It may run.
    Open(Intent),
    /// It runs a brain.
    Brain(Arc<BrainFrame>),
    /// It waits.
    Waiting {
        /// The event that began the wait.
        since: Seq,
        /// What it waits for.
        waits: Vec<WaitSpec>,
        /// What the tool returned before.
        output: Value,
    },
    /// It has its answer and goes on.
    Resumed {
        /// Which of its waits was answered.
        wait: u32,
        /// The webhook of that wait.
        #[serde(default)]
        webhook: String,
        /// The identifier of that wait.
        #[serde(default)]
        identifier: String,
        /// Whether it waited for others, too.
        #[serde(default)]
        several: bool,
        /// The answer, or the result of the wait that was not answered.
        payload: Value,
        /// Whether an answer came.
        answered: bool,
        /// What the tool returned before.
        output: Value,
    },
    /// It has its result.
    Done(ToolResult),
}

impl Call {
    /// Returns the result, once there is one.
    #[must_use]
    pub const fn result(&self) -> Option<&ToolResult> {
        match &self.phase {
            CallPhase::Done(result) => Some(result),
            CallPhase::Gated
            | CallPhase::Pending { .. }
            | CallPhase::Open(_)
            | CallPhase::Brain(_)
            | CallPhase::Waiting { .. }
            | CallPhase::Resumed { .. } => None,
        }
    }

    /// Returns the brain that it runs.
    pub(super) fn inner(&self) -> Option<&BrainFrame> {
        match &self.phase {
            CallPhase::Brain(inner) => Some(inner),
            _ => None,
        }
    }

    /// Says whether something of it is in flight.
    #[must_use]
    pub fn is_running(&self) -> bool {
        match &self.phase {
            CallPhase::Open(intent) => matches!(intent, Intent::Running),
            CallPhase::Brain(_) | CallPhase::Resumed { .. } => true,
            CallPhase::Gated | CallPhase::Pending { .. } | CallPhase::Waiting { .. } | CallPhase::Done(_) => false,
        }
    }
}
