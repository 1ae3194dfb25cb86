//! The event after which a retry of a failed run continues: the last one before its failure began.
//!
//! A failure is several events: a loop that fails gives each open call a result, then ends; the brains around it fail one after
//! the other. A retry continues before all of them, so that calls with results keep them and open ones are open again.

use super::apply::IllegalEvent;
use super::frames::{BrainEnd, BrainFrame};
use super::stages::Frame as _;
use super::state::RunState;
use crate::record::{EndReason, Event, EventKind, Failure, LoopOutcome, Seq, ToolResult};

/// The place where a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RetryPoint {
    /// The last event before the failure.
    pub(crate) before: Seq,
    /// Whether a limit was reached there, which a retry would reach again.
    pub(crate) at_limit: bool,
    /// Whether a brain has undone its stages there.
    pub(crate) undone: bool,
}

/// Finds the place where a run failed; `None` if it has not failed.
pub(crate) fn retry_point<'a>(log: impl IntoIterator<Item = &'a Event>) -> Result<Option<RetryPoint>, IllegalEvent> {
    let mut state = RunState::default();
    // The last event that was not part of a failure, and the failure since then.
    let (mut before, mut failed) = (Seq(0), None);
    for event in log {
        let undone = matches!(event.kind, EventKind::BrainError(_))
            && state.brain(&event.path).is_some_and(|brain| brain.undoing.is_some());
        state.fold(event)?;
        if state.root.as_deref().is_some_and(BrainFrame::is_failing) {
            let at_limit = is_at_limit(&event.kind);
            failed.get_or_insert(RetryPoint { before, at_limit, undone }).undone |= undone;
            continue;
        }
        failed = None;
        if !(event.with_next && closes(&event.kind)) {
            before = event.seq;
        }
    }
    let has_failed = state.root.as_deref().is_some_and(|root| matches!(root.end, Some(BrainEnd::Failed(_))));
    Ok(failed.filter(|_| has_failed))
}

const fn is_at_limit(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::LoopMaxIterations { .. }
            | EventKind::LoopLimit(_)
            | EventKind::LoopComplete { outcome: LoopOutcome::MaxIterations | LoopOutcome::Limit { .. }, .. }
            | EventKind::BrainError(Failure { code: EndReason::Limit, .. })
    )
}

/// Returns whether an event ends something that is open when its frame fails; it belongs to the transition of the failure.
const fn closes(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::LoopToolResult { result: ToolResult::Skipped { .. } | ToolResult::Interrupted { .. }, .. }
            | EventKind::LoopApprovalWithdrawn { .. }
            | EventKind::LoopBrainComplete { error: Some(_), .. }
            | EventKind::BrainCancelled { .. }
            | EventKind::LoopComplete { outcome: LoopOutcome::Cancelled, .. }
    )
}
