//! Results of calls, and outcomes of loops.

use crate::record::encoding::skip::is_default;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of a call. Every call gets exactly one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolResult {
    /// The tool succeeded.
    Success {
        /// The return value; `null` for a tool without one.
        output: Value,
        /// A shorter text for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        brief: Option<String>,
    },
    /// The tool failed or does not exist, or its arguments were invalid.
    Error {
        /// The error message, which the model reads.
        message: String,
    },
    /// A person rejected the call or an identical one before it, or its approval expired.
    Denied {
        /// What denied it; absent in older logs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<DenialCause>,
        /// The reason, in the person's words if a person rejected it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The call was never started.
    Skipped {
        /// What prevented it.
        reason: String,
    },
    /// The call was started and its outcome is unknown.
    Interrupted {
        /// What interrupted it.
        reason: String,
    },
}

impl ToolResult {
    /// Returns whether the tool succeeded.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Success { .. })
    }

    /// Creates a successful result.
    pub fn success(output: impl Into<Value>) -> Self {
        Self::Success { output: output.into(), brief: None }
    }

    /// Creates an error result.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error { message: message.into() }
    }

    /// Returns why the call has no output; `None` if the tool succeeded.
    #[must_use]
    pub fn into_failure(self) -> Option<String> {
        match self {
            Self::Success { .. } => None,
            Self::Error { message } => Some(message),
            Self::Denied { reason, .. } => Some(reason.unwrap_or_else(|| "it was denied without a reason".to_owned())),
            Self::Skipped { reason } | Self::Interrupted { reason } => Some(reason),
        }
    }
}

/// What denied a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DenialCause {
    /// A person rejected it.
    Rejected,
    /// The time for an approval was over.
    Expired,
    /// A person rejected an identical call of the loop before.
    Repeated,
}

/// The outcome of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoopOutcome {
    /// The model answered with text and without calls.
    Answered,
    /// An exit tool succeeded.
    Exited {
        /// The exit tool's id.
        tool: String,
    },
    /// The loop reached its limit of iterations.
    MaxIterations,
    /// Another limit was reached.
    Limit {
        /// The kind of limit.
        limit: crate::record::run::loop_limits::LimitKind,
    },
    /// The model's answer was useless.
    Stopped {
        /// The fault of the answer.
        cause: crate::record::request::answer_fault::AnswerFault,
        /// A message with the fault and what to do.
        message: String,
    },
    /// The model could not be reached, or the loop's configuration failed.
    Failed {
        /// The kind of failure.
        code: super::failure::EndReason,
        /// The reason.
        message: String,
        /// Whether a later retry can help.
        #[serde(default, skip_serializing_if = "is_default")]
        retryable: bool,
    },
    /// The run was cancelled.
    Cancelled,
}
