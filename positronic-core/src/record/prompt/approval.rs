//! A person's approval of a call: the question, and what became of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::Gate;
use crate::record::encoding::document;
use crate::record::encoding::skip::is_default;
use crate::record::event::event_envelope::Event;
use crate::record::event::event_fields::Decision;
use crate::record::event::event_kind::EventKind;
use crate::record::ids::{SignalId, Timestamp};
use crate::record::run::actor::Actor;

/// The approval that a call needs.
///
/// It exists from the call's proposal on. While a call before it keeps it from being asked for, `requested` is `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Approval {
    /// Why a person is asked.
    pub reason: String,
    /// Whether the person may edit the arguments.
    pub editable: bool,
    /// When the person was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<Timestamp>,
    /// When the question becomes void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// What became of the question; `None` while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ApprovalOutcome>,
}

/// What became of the question for an approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalOutcome {
    /// A person decided.
    Decided {
        /// The decision.
        decision: Decision,
        /// When it was made.
        at: Timestamp,
        /// Who decided, and over which channel.
        #[serde(default, skip_serializing_if = "is_default")]
        actor: Actor,
        /// Why it was rejected, in the person's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The arguments to run the call with, where the person edited them.
        #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
        /// The signal that brought the decision.
        signal: SignalId,
    },
    /// Something else ended the call, so the question became void.
    Withdrawn {
        /// When.
        at: Timestamp,
        /// What ended the call.
        cause: String,
    },
    /// Its time ran out without a decision.
    Expired {
        /// When.
        at: Timestamp,
    },
}

impl Approval {
    /// Makes the approval of a call that was proposed and not yet asked about.
    #[must_use]
    pub fn of_gate(gate: &Gate) -> Self {
        Self { reason: gate.reason.clone(), editable: gate.editable, requested: None, expires: None, outcome: None }
    }

    /// Says whether a person has been asked and has not decided.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        self.requested.is_some() && self.outcome.is_none()
    }

    /// Says whether nothing has become of the question yet, asked or not.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.outcome.is_none()
    }

    /// Returns the arguments to run the call with, where a person edited them.
    #[must_use]
    pub const fn edited(&self) -> Option<&Value> {
        match &self.outcome {
            Some(ApprovalOutcome::Decided { decision: Decision::Approved, arguments: Some(arguments), .. }) => {
                Some(arguments)
            }
            _ => None,
        }
    }

    /// Moves the end of an open question.
    pub(crate) fn postpone(&mut self, by: Duration) {
        if self.is_pending() {
            self.expires = self.expires.map(|expires| expires.after(by));
        }
    }

    /// Folds an event of the call; events about anything but its approval change nothing.
    pub(crate) fn follow(slot: &mut Option<Box<Self>>, event: &Event) {
        let at = event.at;
        let outcome = match &event.kind {
            EventKind::LoopApprovalRequested { reason, expires, editable, .. } => {
                *slot = Some(Box::new(Self {
                    reason: reason.clone(),
                    editable: *editable,
                    requested: Some(at),
                    expires: *expires,
                    outcome: None,
                }));
                return;
            }
            EventKind::LoopApprovalDecided { decision, arguments, reason, signal, actor } => ApprovalOutcome::Decided {
                decision: *decision,
                at,
                actor: actor.clone(),
                reason: reason.clone(),
                arguments: arguments.clone(),
                signal: signal.clone(),
            },
            EventKind::LoopApprovalWithdrawn { cause } => ApprovalOutcome::Withdrawn { at, cause: cause.clone() },
            EventKind::LoopApprovalExpired {} => ApprovalOutcome::Expired { at },
            _ => return,
        };
        if let Some(approval) = slot {
            approval.outcome = Some(outcome);
        }
    }
}
