//! A call of a loop's batch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BrainFrame, Intent, Values};
use crate::record::encoding::skip::is_default;
use crate::record::{CallFlags, Gate, Path, Seq, Timestamp, ToolResult, WaitSpec};

/// A call of the current batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Its path.
    pub path: Path,
    /// The tool.
    pub tool: String,
    /// The effective arguments: the proposed or the edited ones.
    pub arguments: Arc<Value>,
    /// Whether a person has edited the arguments.
    #[serde(default)]
    pub edited: bool,
    /// The tool's flags.
    pub flags: CallFlags,
    /// Whether its brain, which took the dialogue over, has handed it back. Then the call does not end its loop.
    #[serde(default, skip_serializing_if = "is_default")]
    pub handed_back: bool,
    /// The required approval.
    pub gate: Option<Gate>,
    /// The try, from 0.
    pub attempt: u32,
    /// The start of this try if it runs apart from the run's worker.
    #[serde(default, skip_serializing_if = "is_default")]
    pub detached: Option<Seq>,
    /// How often the worker's process ended during the call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub crashes: u32,
    /// When the tool was last started.
    pub started: Option<Timestamp>,
    /// The number of its files and widgets.
    pub outputs: u32,
    /// The number of files and widgets of earlier tries.
    pub outputs_before: u32,
    /// The recorded values of the tool.
    pub values: Values,
    /// Its phase.
    pub phase: CallPhase,
}

/// The phase of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CallPhase {
    /// It needs an approval that was not yet requested.
    Gated,
    /// A person is asked.
    Pending {
        /// The event of the request.
        since: Seq,
        /// When the request expires.
        expires: Option<Timestamp>,
    },
    /// It is ready to run.
    Open(Intent),
    /// It runs a brain.
    Brain(Arc<BrainFrame>),
    /// It waits.
    Waiting {
        /// The event that began the wait.
        since: Seq,
        /// When it was appended.
        #[serde(default)]
        at: Timestamp,
        /// What it waits for.
        waits: Vec<WaitSpec>,
        /// The tool's return value.
        output: Value,
    },
    /// It has an answer and resumes.
    Resumed {
        /// The index of the answered wait.
        wait: u32,
        /// The webhook of that wait.
        #[serde(default)]
        webhook: String,
        /// The identifier of that wait.
        #[serde(default)]
        identifier: String,
        /// Whether there were other waits.
        #[serde(default)]
        several: bool,
        /// The answer, or the result of an expired wait.
        payload: Value,
        /// Whether an answer arrived.
        answered: bool,
        /// The tool's return value.
        output: Value,
    },
    /// It has a result.
    Done(ToolResult),
}

impl Call {
    /// Returns the result, if there is one.
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

    /// Returns whether its success ends its loop.
    #[must_use]
    pub const fn ends_loop(&self) -> bool {
        self.flags.exit && !self.handed_back
    }

    /// Returns whether its brain takes the dialogue over, and has not handed it back.
    #[must_use]
    pub const fn hands_over(&self) -> bool {
        self.flags.handoff && !self.handed_back
    }

    /// Returns whether it has work in flight.
    #[must_use]
    pub fn is_running(&self) -> bool {
        match &self.phase {
            CallPhase::Open(intent) => matches!(intent, Intent::Running),
            CallPhase::Brain(_) | CallPhase::Resumed { .. } => true,
            CallPhase::Gated | CallPhase::Pending { .. } | CallPhase::Waiting { .. } | CallPhase::Done(_) => false,
        }
    }
}
