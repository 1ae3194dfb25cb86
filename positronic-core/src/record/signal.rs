//! What the outside says to a run.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::budget::{Amounts, Budget, SharedBudget};
use super::ids::{RunId, SignalId};
use super::path::Path;
use super::trigger::Fired;

/// Who sent something, and how it came. Every part may be unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, typed_builder::TypedBuilder)]
#[serde(default)]
#[builder(field_defaults(default, setter(strip_option, into)))]
pub struct Actor {
    /// The person or system that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The channel it came over: `cli`, `http`, `slack`, ….
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The W3C trace context (`traceparent`) it came with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// Starts a run. It is recorded in the run's first `BRAIN_START`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Start {
    /// The start's own id, which becomes the run's: the same id starts the same run. With it, a start that is another one in
    /// anything but its actor is refused, and told what differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<SignalId>,
    /// Whom the run belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Who started it, and over which channel.
    #[serde(skip_serializing_if = "is_unknown")]
    pub actor: Actor,
    /// The conversation it is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The run before it in the conversation, whose prompts and those before are its history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<RunId>,
    /// What opens the first loop of the run's brain; behind its own input, where it has one. A brain without a loop refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Opening>,
    /// The trigger that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fired: Option<Fired>,
    /// What the run may use, whatever its brain's author says: each limit that is set here takes the place of the author's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// What the prompts of its conversation may use together. It stands beside what the run alone may use: whichever is
    /// used up first binds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_budget: Option<SharedBudget>,
    /// The run and the event number it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<(RunId, super::ids::Seq)>,
    /// What is other than the brain's code says.
    #[serde(skip_serializing_if = "is_nothing")]
    pub overrides: Overrides,
}

/// A message that a run is started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// What is said.
    pub text: String,
    /// The sender's own id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// What is other in a run than its brain's code says: for trying things out in a fork. It counts for every loop, from
/// its next iteration on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Overrides {
    /// The system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The name of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

fn is_nothing(overrides: &Overrides) -> bool {
    *overrides == Overrides::default()
}

pub(crate) fn is_unknown(actor: &Actor) -> bool {
    *actor == Actor::default()
}

/// What the outside says to a run that exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// The signal's own id. The same id twice is the same signal.
    pub id: SignalId,
    /// Who sent it, and how.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub actor: Actor,
    /// What it says.
    pub kind: SignalKind,
}

/// The kinds of signals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SignalKind {
    /// Lets a pending call run, with its own arguments or with edited ones.
    Approve {
        /// The call's path.
        call: Path,
        /// The arguments to run it with, where they differ from the proposed ones.
        #[serde(default, deserialize_with = "super::canonical::present", skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
    },
    /// Grants a loop or a brain more that has reached a limit and asks for it.
    Grant {
        /// The loop's or the brain's path; that of the run's own brain is empty.
        to: Path,
        /// How much more.
        more: Amounts,
    },
    /// Refuses a pending call, or more for a loop or a brain that asks for it.
    Reject {
        /// The path of the call, the loop or the brain.
        call: Path,
        /// Why; the model reads it of a call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Delivers a webhook's payload to whichever call waits for it.
    Webhook {
        /// The webhook's name.
        name: String,
        /// What tells this wait from others for the same webhook.
        identifier: String,
        /// The payload, checked against the webhook's schema.
        payload: Value,
    },
    /// Answers a call that waits for a reply addressed to itself.
    Reply {
        /// The call's path.
        call: Path,
        /// The answer.
        payload: Value,
    },
    /// Says something to a loop of the run.
    Message {
        /// The loop, where it is not the only one that is open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Path>,
        /// What is said.
        text: String,
        /// The sender's own id of the message, which need not be the signal's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
    },
    /// Stops starting new work; what is in flight runs to its end.
    Pause,
    /// Goes on after a pause.
    Resume,
    /// Ends the run; every open call gets a typed result.
    Cancel {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// Extra data under names, in the order they were added.
pub(crate) type Named = IndexMap<String, Value>;
