//! How calls and loops end.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The final result of a call. Every call gets exactly one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolResult {
    /// The tool did its work.
    Success {
        /// What it returned; `null` for a tool without a result.
        output: Value,
        /// What the model reads in its place, where that is shorter.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        brief: Option<String>,
    },
    /// The tool failed, was unknown, or its arguments did not fit.
    Error {
        /// A sentence that says what went wrong; the model reads it.
        message: String,
    },
    /// A person refused the call.
    Denied {
        /// Why, in the person's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Who refused it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The call was never started.
    Skipped {
        /// What came first.
        reason: String,
    },
    /// The call was started and its outcome is unknown.
    Interrupted {
        /// What interrupted it.
        reason: String,
    },
}

impl ToolResult {
    /// Says whether the tool did its work.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Success { .. })
    }

    /// Makes the result of a tool that did its work.
    pub fn success(output: impl Into<Value>) -> Self {
        Self::Success { output: output.into(), brief: None }
    }

    /// Makes an error result.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error { message: message.into() }
    }
}

/// How a loop ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoopOutcome {
    /// The model answered with text and called nothing.
    Answered,
    /// An exit tool succeeded.
    Exited {
        /// The exit tool's id.
        tool: String,
    },
    /// The loop reached its number of iterations.
    MaxIterations,
    /// Another limit was reached.
    Limit {
        /// Which.
        limit: super::limits::LimitKind,
    },
    /// The model answered, and the answer was of no use.
    Stopped {
        /// What was wrong with it.
        cause: super::answer::AnswerFault,
        /// A sentence that says so, and what to do about it.
        message: String,
    },
    /// The model could not be reached, or the loop's configuration failed.
    Failed {
        /// What kind of failure it is.
        code: super::event_kind::EndReason,
        /// A sentence that says why.
        message: String,
        /// Whether trying again later can help.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        retryable: bool,
    },
    /// The run was cancelled.
    Cancelled,
}
