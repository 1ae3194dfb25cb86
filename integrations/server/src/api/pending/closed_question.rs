//! Questions that are no longer pending: the decision or the event that closed them.

use std::sync::Arc;

use positronic_core::record::{Actor, Decision, Event, EventKind, RunId, Seq};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::pending_item::question_id;
use crate::api::run_item::value;
use crate::app::App;
use crate::problem::{Problem, ProblemType};
use crate::time::Time;

/// A decision or an answer, as the log has it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DecisionItem {
    verdict: Verdict,
    /// Who decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// Over which channel: `cli`, `http`, `slack`, ….
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
    at: Time,
    /// The event that records it.
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The edited arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    /// The granted amounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    granted: Option<Value>,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<Value>,
}

/// What was decided.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Approved,
    Rejected,
    Granted,
    Refused,
    Replied,
}

impl DecisionItem {
    /// Returns whether a person or a named program has made it. A webhook's message that has no name decides nothing.
    pub(crate) const fn has_author(&self) -> bool {
        self.by.is_some() || !matches!(self.verdict, Verdict::Replied)
    }

    /// Returns the decision that an event records.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let (verdict, actor): (_, &Actor) = match &event.kind {
            EventKind::LoopApprovalDecided { decision: Decision::Approved, actor, .. } => (Verdict::Approved, actor),
            EventKind::LoopApprovalDecided { decision: Decision::Rejected, actor, .. } => (Verdict::Rejected, actor),
            EventKind::BudgetDecided { decision: Decision::Approved, actor, .. } => (Verdict::Granted, actor),
            EventKind::BudgetDecided { decision: Decision::Rejected, actor, .. } => (Verdict::Refused, actor),
            EventKind::LoopResume { signal: Some(_), actor, .. }
            | EventKind::StageResume { signal: Some(_), actor, .. } => (Verdict::Replied, actor),
            _ => return None,
        };
        let (mut reason, mut arguments, mut granted, mut reply) = (None, None, None, None);
        match &event.kind {
            EventKind::LoopApprovalDecided { arguments: edited, reason: why, .. } => {
                (reason, arguments) = (why.clone(), edited.clone());
            }
            EventKind::BudgetDecided { more, reason: why, .. } => {
                reason.clone_from(why);
                granted = matches!(verdict, Verdict::Granted).then(|| value(more));
            }
            EventKind::LoopResume { payload, .. } | EventKind::StageResume { payload, .. } => {
                reply = Some(payload.clone());
            }
            _ => {}
        }
        let (by, channel) = (actor.by.clone(), actor.channel.clone());
        Some(Self { verdict, by, channel, at: event.at.into(), seq: event.seq.0, reason, arguments, granted, reply })
    }
}

impl App {
    /// Returns why a question with this id is not pending: it was decided, it has expired, or something else ended it.
    pub(crate) async fn why_not_pending(&self, run: &RunId, id: &str) -> Problem {
        let log = match self.client.events(run, Seq(0)).await {
            Ok(log) => log,
            Err(error) => return error.into(),
        };
        let Some(asked) = log.iter().find(|event| question_id(run, &event.path, event.seq) == id) else {
            return Problem::new(ProblemType::UnknownCall).detail(format!("the run `{run}` never had an item `{id}`"));
        };
        closed_question(&log, asked)
    }
}

/// Returns the decision, the expiry or the other event that has closed a question.
fn closed_question(log: &[Arc<Event>], asked: &Event) -> Problem {
    let later = log.iter().filter(|event| event.seq > asked.seq);
    for event in later {
        let is_own = event.path == asked.path;
        if is_own && let Some(decision) = DecisionItem::of(event) {
            return Problem::new(ProblemType::AlreadyDecided).field("decision", decision);
        }
        match &event.kind {
            EventKind::LoopApprovalExpired {}
            | EventKind::BudgetExpired {}
            | EventKind::LoopResume { .. }
            | EventKind::StageResume { .. }
                if is_own =>
            {
                return Problem::new(ProblemType::Expired).field("at", Time(event.at));
            }
            EventKind::BrainCancelled { .. } | EventKind::BrainError(_) | EventKind::BrainComplete { .. }
                if event.path.is_root() =>
            {
                return ProblemType::RunClosed.into();
            }
            EventKind::LoopApprovalWithdrawn { cause } if is_own => {
                return Problem::new(ProblemType::NotWaiting).detail(cause);
            }
            EventKind::LoopToolResult { .. } if is_own => {
                return Problem::new(ProblemType::NotWaiting).detail("the call has its result");
            }
            _ => {}
        }
    }
    Problem::new(ProblemType::NotWaiting).detail("the call does not wait now")
}
