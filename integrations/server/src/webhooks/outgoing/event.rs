//! The kinds of notices, and which event of a log causes which.

use positronic_core::record::{Event, EventKind, ResumeCause};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of notice about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub enum WebhookEvent {
    /// The run has started.
    #[serde(rename = "run.started")]
    RunStarted,
    /// The run has completed.
    #[serde(rename = "run.completed")]
    RunCompleted,
    /// The run has failed.
    #[serde(rename = "run.failed")]
    RunFailed,
    /// The run was cancelled.
    #[serde(rename = "run.cancelled")]
    RunCancelled,
    /// A person paused the run.
    #[serde(rename = "run.paused")]
    RunPaused,
    /// A person resumed the run.
    #[serde(rename = "run.resumed")]
    RunResumed,
    /// No worker can claim the run, although it has work.
    #[serde(rename = "run.not_claimed")]
    RunNotClaimed,
    /// The run asks a person: for an approval, for a higher limit, or for an answer.
    #[serde(rename = "decision.pending")]
    DecisionPending,
    /// A person decided or answered.
    #[serde(rename = "decision.made")]
    DecisionMade,
    /// The request expired before a person decided.
    #[serde(rename = "decision.expired")]
    DecisionExpired,
    /// Something else ended what the person was asked about.
    #[serde(rename = "decision.withdrawn")]
    DecisionWithdrawn,
}

impl WebhookEvent {
    /// Returns the name, as in the `type` of a payload.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RunStarted => "run.started",
            Self::RunCompleted => "run.completed",
            Self::RunFailed => "run.failed",
            Self::RunCancelled => "run.cancelled",
            Self::RunPaused => "run.paused",
            Self::RunResumed => "run.resumed",
            Self::RunNotClaimed => "run.not_claimed",
            Self::DecisionPending => "decision.pending",
            Self::DecisionMade => "decision.made",
            Self::DecisionExpired => "decision.expired",
            Self::DecisionWithdrawn => "decision.withdrawn",
        }
    }
}

/// What an event of a log means for webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Nothing.
    None,
    /// A notice.
    Notice(WebhookEvent),
    /// A notice, if the wait with this index asked a person. The wait is in an earlier event of the same call.
    IfPerson(u32, WebhookEvent),
}

pub(super) fn meaning(event: &Event) -> Meaning {
    use WebhookEvent as W;
    let of_run = |notice| if event.path.is_root() { Meaning::Notice(notice) } else { Meaning::None };
    match &event.kind {
        EventKind::BrainStart(_) => of_run(W::RunStarted),
        EventKind::BrainComplete { .. } => of_run(W::RunCompleted),
        EventKind::BrainError(_) => of_run(W::RunFailed),
        EventKind::BrainCancelled { .. } => of_run(W::RunCancelled),
        EventKind::BrainPaused { .. } => of_run(W::RunPaused),
        EventKind::BrainResumed { .. } => of_run(W::RunResumed),
        EventKind::RunNotClaimed { .. } => of_run(W::RunNotClaimed),
        EventKind::LoopApprovalRequested { .. } | EventKind::BudgetRequested(_) => Meaning::Notice(W::DecisionPending),
        EventKind::LoopApprovalDecided { .. } | EventKind::BudgetDecided { .. } => Meaning::Notice(W::DecisionMade),
        EventKind::LoopApprovalExpired {} | EventKind::BudgetExpired {} => Meaning::Notice(W::DecisionExpired),
        EventKind::LoopApprovalWithdrawn { .. } => Meaning::Notice(W::DecisionWithdrawn),
        EventKind::LoopWait { waits, .. } | EventKind::StageWait { waits, .. }
            if waits.iter().any(|wait| wait.person) =>
        {
            Meaning::Notice(W::DecisionPending)
        }
        EventKind::LoopResume { cause: ResumeCause::Answered, wait, .. }
        | EventKind::StageResume { cause: ResumeCause::Answered, wait, .. } => {
            Meaning::IfPerson(*wait, W::DecisionMade)
        }
        EventKind::LoopResume { cause: ResumeCause::Expired, wait, .. }
        | EventKind::StageResume { cause: ResumeCause::Expired, wait, .. } => {
            Meaning::IfPerson(*wait, W::DecisionExpired)
        }
        _ => Meaning::None,
    }
}
