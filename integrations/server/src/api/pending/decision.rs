//! A decision: as a request has it, and as the signal that it becomes.

use positronic_core::record::{Amounts, Path, Pending, PendingKind, SignalKind, WaitSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::auth::Scope;
use crate::problem::{Problem, ProblemType};

/// A decision about a pending item, or the answer to it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// Approves a call.
    Approve {
        /// The edited arguments, all of them.
        arguments: Option<Value>,
    },
    /// Rejects a call, or a request for more of a limit.
    Reject {
        /// The reason; for a call, the model reads it.
        reason: Option<String>,
    },
    /// Grants more of a limit.
    Grant(Amounts),
    /// Answers a call or a stage that waits.
    Reply {
        /// The answer.
        payload: Value,
        /// Which of several possible answers it is, from 0.
        wait: Option<usize>,
    },
}

/// A decision: exactly one of `approve`, `reject`, `grant` and `reply`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct NewDecision {
    /// Approves the call.
    approve: Option<bool>,
    /// The edited arguments of an approved call.
    #[serde(deserialize_with = "present")]
    arguments: Option<Value>,
    /// Rejects the call, or the request for more.
    reject: Option<bool>,
    /// The reason of a rejection; for a call, the model reads it.
    reason: Option<String>,
    /// Grants more of a limit: `iterations`, `tokens`, `money` or `time` (microseconds).
    #[schemars(with = "Option<GrantedAmounts>")]
    grant: Option<Amounts>,
    /// The answer to a call that waits for one.
    #[serde(deserialize_with = "present")]
    reply: Option<Value>,
    /// Which of the possible answers it is, from 0, if there are several.
    wait: Option<usize>,
}

/// The amounts that a person grants in addition to a limit.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is the schema of the core's type")]
struct GrantedAmounts {
    iterations: Option<u64>,
    tokens: Option<u64>,
    /// A decimal number as text, such as `2.50`.
    money: Option<String>,
    /// Microseconds.
    time: Option<u64>,
}

/// A decision among several.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListedDecision {
    /// The run.
    run: String,
    /// The id of the pending item.
    id: String,
    /// Approves the call.
    #[serde(default)]
    approve: Option<bool>,
    /// The edited arguments of an approved call.
    #[serde(default, deserialize_with = "present")]
    arguments: Option<Value>,
    /// Rejects the call, or the request for more.
    #[serde(default)]
    reject: Option<bool>,
    /// The reason of a rejection.
    #[serde(default)]
    reason: Option<String>,
    /// Grants more of a limit.
    #[serde(default)]
    #[schemars(with = "Option<GrantedAmounts>")]
    grant: Option<Amounts>,
    /// The answer to a call that waits for one.
    #[serde(default, deserialize_with = "present")]
    reply: Option<Value>,
    /// Which of the possible answers it is, from 0.
    #[serde(default)]
    wait: Option<usize>,
}

impl ListedDecision {
    /// Returns the run, the pending item, and the decision about it.
    pub(super) fn parts(self) -> (String, String, NewDecision) {
        let Self { run, id, approve, arguments, reject, reason, grant, reply, wait } = self;
        (run, id, NewDecision { approve, arguments, reject, reason, grant, reply, wait })
    }
}

/// Distinguishes `null` from an absent field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl TryFrom<NewDecision> for Decision {
    type Error = Problem;

    fn try_from(new: NewDecision) -> Result<Self, Problem> {
        let NewDecision { approve, arguments, reject, reason, grant, reply, wait } = new;
        match (approve == Some(true), reject == Some(true), grant, reply) {
            (true, false, None, None) => Ok(Self::Approve { arguments }),
            (false, true, None, None) => Ok(Self::Reject { reason }),
            (false, false, Some(more), None) => Ok(Self::Grant(more)),
            (false, false, None, Some(payload)) => Ok(Self::Reply { payload, wait }),
            _ => {
                let detail = "expected exactly one of `\"approve\": true`, `\"reject\": true`, `grant` and `reply`";
                Err(Problem::new(ProblemType::InvalidBody).detail(detail))
            }
        }
    }
}

impl Decision {
    /// Returns the edited arguments.
    pub(super) const fn arguments(&self) -> Option<&Value> {
        match self {
            Self::Approve { arguments } => arguments.as_ref(),
            Self::Reject { .. } | Self::Grant(_) | Self::Reply { .. } => None,
        }
    }

    /// Returns the scope that a decision needs. A person may answer only a wait for a person, although the call may wait for a
    /// program's webhook as well.
    pub(super) fn scope(&self, pending: &Pending) -> Scope {
        let wait = match self {
            Self::Reply { wait, .. } => *wait,
            Self::Approve { .. } | Self::Reject { .. } | Self::Grant(_) => None,
        };
        let is_for_person = match &pending.kind {
            PendingKind::Answer { waits } => {
                answered(waits, wait).map_or_else(|| pending.kind.is_for_person(), |wait| wait.person)
            }
            PendingKind::Approval { .. } | PendingKind::Budget(_) => true,
        };
        if is_for_person { Scope::Decide } else { Scope::Operate }
    }

    /// Returns the signal of a decision about a call.
    pub(super) fn signal(self, call: &Path) -> SignalKind {
        let call = call.clone();
        match self {
            Self::Approve { arguments } => SignalKind::Approve { call, arguments },
            Self::Reject { reason } => SignalKind::Reject { call, reason },
            Self::Grant(more) => SignalKind::Grant { to: call, more },
            Self::Reply { payload, .. } => SignalKind::Reply { call, payload },
        }
    }

    /// Returns the signal of a decision, if it fits the pending item.
    pub(super) fn signal_for(self, pending: &Pending) -> Result<SignalKind, Problem> {
        let misfit = |detail: &str| Err(Problem::new(ProblemType::Unprocessable).detail(detail));
        match (&pending.kind, self) {
            (PendingKind::Approval { .. }, decision @ (Self::Approve { .. } | Self::Reject { .. }))
            | (PendingKind::Budget(_), decision @ (Self::Grant(_) | Self::Reject { .. })) => {
                Ok(decision.signal(&pending.call))
            }
            (PendingKind::Answer { waits }, Self::Reply { payload, wait }) => match answered(waits, wait) {
                Some(WaitSpec { webhook, identifier, .. }) if webhook != "reply" => {
                    Ok(SignalKind::Webhook { name: webhook.clone(), identifier: identifier.clone(), payload })
                }
                Some(_) => Ok(SignalKind::Reply { call: pending.call.clone(), payload }),
                None => misfit("the call waits for one of several answers; name it with `wait`, its index in `waits`"),
            },
            (PendingKind::Approval { .. }, _) => misfit("the call waits for an approval: approve or reject it"),
            (PendingKind::Budget(_), _) => misfit("the item asks for a higher limit: send `grant` or `reject`"),
            (PendingKind::Answer { .. }, _) => misfit("the call waits for an answer: reply to it"),
        }
    }
}

/// Returns the wait that a reply answers: the one with this index, else the reply to the call itself, else the only one.
fn answered(waits: &[WaitSpec], index: Option<usize>) -> Option<&WaitSpec> {
    match index {
        Some(index) => waits.get(index),
        None => waits.iter().find(|wait| wait.webhook == "reply").or(waits.first().filter(|_| waits.len() == 1)),
    }
}
