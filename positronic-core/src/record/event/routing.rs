//! Routing of a request between the runner and the answering model.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::record::request::model_error_kind::ModelErrorKind;
use crate::record::request::model_response::{ResponseMetadata, Usage};

/// A step of a model wrapper for a request. Answers and failures list them in order; models without wrappers
/// have none.
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
    /// A model failed, so the next one was asked.
    Failed {
        /// The model, as `provider/model`.
        model: String,
        /// The kind of failure.
        kind: ModelErrorKind,
        /// A message for people.
        message: String,
    },
    /// A model was skipped, since it had failed recently.
    Resting {
        /// The model, as `provider/model`.
        model: String,
        /// The kind of its failure.
        kind: ModelErrorKind,
        /// The remaining rest, stored in microseconds.
        #[serde(with = "crate::record::encoding::micros")]
        left: Duration,
    },
    /// The request waited before it was sent.
    Waited {
        /// The reason.
        reason: WaitReason,
        /// How long, stored in microseconds.
        #[serde(rename = "micros", with = "crate::record::encoding::micros")]
        time: Duration,
    },
    /// The answer comes from a development cache. It used and cost nothing.
    Cached {
        /// The request's hash.
        key: String,
        /// The original usage.
        usage: Usage,
    },
    /// An answer broke. The runner moves this into an event of its own, `LOOP_ANSWER_BROKEN`.
    Broken {
        /// What the provider had reported of it, with what it used.
        metadata: Box<ResponseMetadata>,
    },
    /// A development cache could not be read or written, and was bypassed.
    CacheFailed {
        /// A message for people.
        message: String,
    },
}

/// The reason why a request waits before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitReason {
    /// The limit of requests per minute was reached.
    Requests,
    /// The limit of tokens per minute was reached.
    Tokens,
    /// The provider requested a wait.
    RetryAfter,
    /// The limit of concurrent requests was reached.
    Slots,
}
