//! The failure of a brain.

use serde::{Deserialize, Serialize};

use crate::record::encoding::skip::is_default;

/// The failure of a brain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The kind of failure.
    pub code: EndReason,
    /// A message that says what happened and where.
    pub message: String,
    /// Whether a retry can help.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retryable: bool,
}

/// The kinds of failures of a brain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// A step returned an error or panicked.
    Step,
    /// A loop's configuration is wrong, or its closure failed.
    Config,
    /// The model could not be reached, or returned nothing usable.
    Model,
    /// The model returned no valid structured action, after all retries.
    Action,
    /// The model's answer was useless: refused, filtered, cut off, or empty.
    Answer,
    /// A guard of a loop stopped it or refused more answers than `answer_retries` allows, or a plugin refused a request.
    Guard,
    /// A limit with `OnLimit::Error` was reached.
    Limit,
    /// A nested brain failed.
    Brain,
    /// The state could not be encoded or decoded.
    State,
    /// The process ended repeatedly at the same point.
    Crash,
    /// A loop or a nested brain took longer than its timeout, or a plugin longer than its runner lets it.
    Timeout,
}
