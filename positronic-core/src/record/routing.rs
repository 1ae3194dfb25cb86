//! What happened to a request between the runner and the model that answered it.

use serde::{Deserialize, Serialize};

use super::usage::{ModelErrorKind, Usage};

/// One thing that a wrapper of models did with a request. An answer, or a failure, names them in the order in which they
/// happened; models that no wrapper stands before name none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RoutingStep {
    /// A rule sent it to a model.
    Routed {
        /// The rule's name.
        rule: String,
        /// The model, as `provider/model`.
        model: String,
    },
    /// A model failed in a way that is its own, so it was the next one's turn.
    Failed {
        /// The model, as `provider/model`.
        model: String,
        /// What kind of failure it was.
        kind: ModelErrorKind,
        /// A sentence for people.
        message: String,
    },
    /// A model was passed over, since it had failed shortly before.
    Resting {
        /// The model, as `provider/model`.
        model: String,
        /// How it had failed.
        kind: ModelErrorKind,
        /// For how many more microseconds it rests.
        left: u64,
    },
    /// The request waited before it was sent.
    Waited {
        /// What for.
        reason: WaitReason,
        /// For how many microseconds.
        micros: u64,
    },
    /// The answer was given earlier to an identical request, and comes from a development cache. It used and cost nothing.
    Cached {
        /// The request's hash.
        key: String,
        /// What the answer had used when it was given.
        usage: Usage,
    },
    /// A development cache could not be read or written, so it was as if there were none.
    CacheFailed {
        /// A sentence for people.
        message: String,
    },
}

/// What a request waits for before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitReason {
    /// The limit of requests per minute was reached.
    Requests,
    /// The limit of tokens per minute was reached.
    Tokens,
    /// The provider had asked to wait.
    RetryAfter,
    /// The limit of concurrent requests was reached.
    Slots,
}
