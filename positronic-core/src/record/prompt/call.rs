//! Tool declarations, and calls.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tool_id::ToolId;
use crate::record::encoding::document;
use crate::record::encoding::skip::{is_default, is_true, yes};
use crate::record::ids::{RunId, Timestamp};
use crate::record::path::Path;
use crate::record::run::loop_limits::BatchPolicy;

/// The declared properties of a tool's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CallFlags {
    /// A successful call ends the loop.
    #[serde(skip_serializing_if = "is_default")]
    pub exit: bool,
    /// The tool has no side effects, so it waits for no approval of others and may be rerun.
    #[serde(skip_serializing_if = "is_default")]
    pub read_only: bool,
    /// Repeated calls with one idempotency key have no further effect.
    #[serde(skip_serializing_if = "is_default")]
    pub idempotent: bool,
    /// The tool runs alone, without other calls of its loop.
    #[serde(skip_serializing_if = "is_default")]
    pub sequential: bool,
    /// The tool may destroy something; for people and bridges.
    #[serde(skip_serializing_if = "is_default")]
    pub destructive: bool,
    /// The call runs a brain.
    #[serde(skip_serializing_if = "is_default")]
    pub brain: bool,
    /// The brain takes the dialogue over: its first loop continues that of the call.
    #[serde(skip_serializing_if = "is_default")]
    pub handoff: bool,
    /// The conversation stays with the brain that took the dialogue over: its next messages go there.
    #[serde(skip_serializing_if = "is_default")]
    pub stay: bool,
    /// A successful call hands the dialogue back to the loop that handed it over.
    #[serde(skip_serializing_if = "is_default")]
    pub hand_back: bool,
    /// The call is skipped if a call before it in its batch has failed, since the model did not know that when it asked for it.
    #[serde(skip_serializing_if = "is_default")]
    pub after_success: bool,
    /// The run's caller answers the call, with a tool of its own.
    #[serde(skip_serializing_if = "is_default")]
    pub caller: bool,
}

impl CallFlags {
    /// Returns whether a text no longer ends a loop with this tool. Handoffs and tools that hand back do not count, since such a loop can also
    /// answer.
    pub(crate) const fn is_plain_exit(self) -> bool {
        self.exit && !self.handoff && !self.hand_back
    }

    /// Returns whether a call with an unknown outcome may be rerun.
    #[must_use]
    pub const fn may_repeat(self) -> bool {
        self.read_only || self.idempotent
    }
}

/// A tool's declaration for models and people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDecl {
    /// The tool's id.
    pub id: ToolId,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: Arc<Value>,
    /// The tool's flags.
    #[serde(default)]
    pub flags: CallFlags,
}

/// The approval that a call requires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// The reason for the approval.
    pub reason: String,
    /// How long the request is valid from when it is asked, stored in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::record::encoding::micros::optional")]
    pub valid_for: Option<Duration>,
    /// Whether the person may edit the arguments.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub editable: bool,
}

/// The state of an open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallState {
    /// It will run as soon as there is capacity.
    Queued,
    /// It waits for an approval, an exit tool or a sequential tool before it.
    Deferred,
    /// It waits for a person's approval.
    Pending,
    /// It runs.
    Running,
    /// It waits for a webhook or a reply.
    Waiting,
    /// It has a result.
    Done,
}

/// The state of the calls before a call in its batch. The machine decides with it which calls start, and the projections which
/// calls are deferred.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PrecedingCalls {
    undecided: bool,
    unfinished: bool,
    exit: bool,
}

impl PrecedingCalls {
    /// Adds the next call of the batch: whether its approval is open, whether it has a result, and whether its success ends the loop.
    pub(crate) const fn pass(&mut self, undecided: bool, finished: bool, ends_loop: bool) {
        self.undecided |= undecided;
        self.unfinished |= !finished;
        self.exit |= ends_loop;
    }

    /// Returns whether an earlier call has no result yet.
    pub(crate) const fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    /// Returns whether the earlier calls let an approved call start; `gated` states whether it required approval.
    pub(crate) const fn lets_start(&self, flags: CallFlags, gated: bool, policy: BatchPolicy) -> bool {
        if self.exit || (flags.exit && self.unfinished) {
            return false;
        }
        match policy {
            BatchPolicy::Strict => !self.unfinished,
            BatchPolicy::Eager => true,
            BatchPolicy::Gated => gated || flags.read_only || !self.undecided,
        }
    }
}

/// When the wait of a stage ends without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitDeadline {
    /// The time.
    pub at: Timestamp,
    /// Whether the author has named it: a fork keeps it, and does not count from its own beginning.
    pub is_fixed: bool,
}

impl WaitDeadline {
    /// Creates the end of a wait that takes as long.
    #[must_use]
    pub fn after(now: Timestamp, time: std::time::Duration) -> Self {
        Self { at: now.after(time), is_fixed: false }
    }

    /// Creates the end of a wait until a time.
    #[must_use]
    pub const fn at(at: Timestamp) -> Self {
        Self { at, is_fixed: true }
    }
}

/// A wait of a call or a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitSpec {
    /// The webhook's name; `reply` for a reply to the call itself: by a person, or by the run's caller.
    pub webhook: String,
    /// Distinguishes this wait from others for the same webhook.
    pub identifier: String,
    /// Whether an answer that was sent before the wait began does not count.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fresh: bool,
    /// Whether a person answers, and not a program.
    #[serde(default, skip_serializing_if = "is_default")]
    pub person: bool,
    /// The question to the answering person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The JSON schema of the payload.
    pub schema: Arc<Value>,
    /// When the wait ends without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// The call's result when the wait expires; an error if not set.
    #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Value>,
}

impl WaitSpec {
    /// The webhook's name in a wait for the end of a child run, whose id is the identifier. No webhook from outside has it.
    pub const CHILD: &str = "run";

    /// The webhook's name in a wait for a reply to the call or the stage itself.
    pub(crate) const REPLY: &str = "reply";

    /// Creates the wait for the end of a child run.
    pub(crate) fn for_child(child: &RunId) -> Self {
        Self::of_program(Self::CHILD, child.as_str())
    }

    /// Creates the wait of a call of a caller's tool, for its result.
    pub(crate) fn for_caller(call: &Path) -> Self {
        Self::of_program(Self::REPLY, call.as_str())
    }

    /// Creates a wait for any payload, without a question and an expiry.
    fn of_program(webhook: &str, identifier: &str) -> Self {
        Self {
            webhook: webhook.to_owned(),
            identifier: identifier.to_owned(),
            fresh: false,
            person: false,
            prompt: None,
            schema: Arc::new(Value::Bool(true)),
            expires: None,
            otherwise: None,
        }
    }

    /// Returns the child run for whose end it waits.
    pub(crate) fn child(&self) -> Option<RunId> {
        (self.webhook == Self::CHILD).then(|| RunId::new(self.identifier.as_str()))
    }
}
