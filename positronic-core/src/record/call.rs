//! Tools as a model sees them, and the calls of them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::Timestamp;
use super::limits::BatchPolicy;

/// Names a tool: 1 to 64 letters, digits, `_`, `-` and `.`. People and events see the id; a provider sees
/// [`ToolId::wire_name`]. A map by tools can be asked by their text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ToolId(Arc<str>);

/// Says why a text is no tool id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no tool name: use 1 to 64 letters, digits, `_`, `-` and `.`")]
pub struct ToolIdError(String);

impl ToolId {
    /// Makes an id from its text.
    ///
    /// # Errors
    ///
    /// [`ToolIdError`] when the text is empty, longer than 64 characters, or holds another character.
    pub fn new(text: &str) -> Result<Self, ToolIdError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if (1..=64).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Self(text.into()))
        } else {
            Err(ToolIdError(text.to_owned()))
        }
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name that a provider gets: providers allow no dot, so each becomes `_`. Two tools of one set
    /// whose wire names are equal are refused, so the way back is unambiguous.
    #[must_use]
    pub fn wire_name(&self) -> std::borrow::Cow<'_, str> {
        if self.0.contains('.') { self.0.replace('.', "_").into() } else { (&*self.0).into() }
    }
}

impl std::borrow::Borrow<str> for ToolId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for ToolId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

/// What a tool promises about its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CallFlags {
    /// A successful call ends the loop.
    #[serde(skip_serializing_if = "is_false")]
    pub exit: bool,
    /// The tool changes nothing outside, so it waits for no approval of others and may run twice.
    #[serde(skip_serializing_if = "is_false")]
    pub read_only: bool,
    /// Running the tool twice with one idempotency key has the effect of running it once.
    #[serde(skip_serializing_if = "is_false")]
    pub idempotent: bool,
    /// The tool runs while no other call of its loop does.
    #[serde(skip_serializing_if = "is_false")]
    pub sequential: bool,
    /// The tool may destroy something; people and bridges are told so.
    #[serde(skip_serializing_if = "is_false")]
    pub destructive: bool,
    /// The call runs a brain.
    #[serde(skip_serializing_if = "is_false")]
    pub brain: bool,
}

impl CallFlags {
    /// Says whether the tool promises nothing.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Says whether a call whose outcome is unknown may be run again.
    #[must_use]
    pub const fn may_repeat(self) -> bool {
        self.read_only || self.idempotent
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A tool as it is declared to a model and to people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDecl {
    /// The tool's id.
    pub id: ToolId,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the tool does; the model reads it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: Arc<Value>,
    /// What the tool promises.
    #[serde(default)]
    pub flags: CallFlags,
}

/// What a call needs a person's approval for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// Why a person is asked.
    pub reason: String,
    /// How long the question stands, in microseconds from when it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_for: Option<u64>,
    /// Whether the person may edit the arguments.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub editable: bool,
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
const fn is_true(flag: &bool) -> bool {
    *flag
}

/// Where an open call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// It will run as soon as there is room.
    Queued,
    /// It waits for an approval, an exit tool or a sequential tool before it.
    Deferred,
    /// It waits for a person's approval.
    Pending,
    /// It runs.
    Running,
    /// It waits for a webhook or a reply.
    Waiting,
    /// It has its result.
    Done,
}

/// What stands before a call in its batch, as far as it keeps the call from starting. The machine starts calls by this rule, and
/// the projections say by it which calls are deferred.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Before {
    undecided: bool,
    unfinished: bool,
    exit: bool,
}

impl Before {
    /// Adds the next call of the batch: whether its approval is open, whether it has its result, what its tool promises.
    pub(crate) const fn pass(&mut self, undecided: bool, finished: bool, flags: CallFlags) {
        self.undecided |= undecided;
        self.unfinished |= !finished;
        self.exit |= flags.exit;
    }

    /// Says whether a call before has no result yet.
    pub(crate) const fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    /// Says whether the calls before let a call start that needs no approval any more; `gated` says that it needed one.
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

/// One thing a call waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitSpec {
    /// The webhook's name; `reply` for an answer that is addressed to the call itself.
    pub webhook: String,
    /// What tells this wait from others for the same webhook.
    pub identifier: String,
    /// Whether a person answers, rather than a machine.
    #[serde(default, skip_serializing_if = "is_false")]
    pub person: bool,
    /// What the one who answers is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The JSON schema of the payload.
    pub schema: Arc<Value>,
    /// When the wait ends without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// What the call results in when the wait ends without an answer; an error where it is left out.
    #[serde(default, deserialize_with = "super::canonical::present", skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Value>,
}
