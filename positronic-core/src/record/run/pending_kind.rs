//! Pending items: what a run waits for, and who answers it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::loop_limits::BudgetRequest;
use crate::record::ids::{Seq, Timestamp};
use crate::record::path::Path;
use crate::record::prompt::call::{Gate, WaitSpec};

/// A pending item, which waits for input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pending {
    /// The waiting call, or the loop or brain that asks for more; empty for the run's own brain.
    pub call: Path,
    /// The tool; empty if there is none.
    pub tool: String,
    /// The arguments; `null` if there are none.
    pub arguments: Arc<Value>,
    /// The event that began the wait.
    pub since: Seq,
    /// The kind of wait.
    pub kind: PendingKind,
}

/// The kind of a pending item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PendingKind {
    /// A person's approval.
    Approval {
        /// The reason for the approval, and whether the arguments may be edited.
        gate: Gate,
        /// When the request expires.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Timestamp>,
    },
    /// A higher limit.
    Budget(BudgetRequest),
    /// A webhook or a reply; the first one counts.
    Answer {
        /// The possible answers.
        waits: Vec<WaitSpec>,
    },
}

impl PendingKind {
    /// Returns the possible answers; a decision has none.
    #[must_use]
    pub fn waits(&self) -> &[WaitSpec] {
        match self {
            Self::Answer { waits } => waits,
            Self::Approval { .. } | Self::Budget(_) => &[],
        }
    }

    /// Returns whether only the end of another run answers it.
    #[must_use]
    pub fn is_for_run(&self) -> bool {
        let waits = self.waits();
        !waits.is_empty() && waits.iter().all(|wait| wait.webhook == WaitSpec::CHILD)
    }

    /// Returns whether the run's caller answers it, with the result of a tool of its own.
    #[must_use]
    pub fn is_for_caller(&self) -> bool {
        self.waits().iter().any(|wait| wait.webhook == WaitSpec::REPLY && !wait.person)
    }

    /// Returns whether a person can decide or answer.
    #[must_use]
    pub fn is_for_person(&self) -> bool {
        match self {
            Self::Answer { waits } => waits.iter().any(|wait| wait.person),
            Self::Approval { .. } | Self::Budget(_) => true,
        }
    }
}
