//! The event after which a retry of a failed run continues: the last one before its failure began.
//!
//! A failure is several events: a loop that fails gives each open call a result, then ends; the brains around it fail one after
//! the other. A retry continues before all of them, so that calls with results keep them and open ones are open again.

use super::apply::IllegalEvent;
use super::frames::{BrainEnd, BrainFrame};
use super::stages::Frame as _;
use super::state::RunState;
use crate::record::{EndReason, Event, EventKind, Failure, LoopOutcome, Seq, ToolResult, UndoCause};

/// The place where a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedPlace {
    /// The last event before the failure.
    pub(crate) before: Seq,
    /// Whether a limit was reached there, which a retry would reach again.
    pub(crate) at_limit: bool,
    /// Whether a brain has undone its stages there.
    pub(crate) undone: bool,
}

/// Finds the place where a run failed; `None` if it has not failed.
pub(crate) fn failed_place<'a>(log: impl IntoIterator<Item = &'a Event>) -> Result<Option<FailedPlace>, IllegalEvent> {
    let mut state = RunState::default();
    // The events since the last one that was not part of a failure, with that one.
    let mut last: Vec<&Event> = Vec::new();
    let mut before: Vec<&Event> = Vec::new();
    for event in log {
        state.fold(event)?;
        if state.root.as_deref().is_some_and(BrainFrame::is_failing) {
            last.push(event);
        } else {
            before.push(event);
            before.append(&mut last);
            last.clear();
        }
    }
    if !state.root.as_deref().is_some_and(|root| matches!(root.end, Some(BrainEnd::Failed(_)))) {
        return Ok(None);
    }
    let at_limit = last.first().is_some_and(|event| is_at_limit(&event.kind));
    let message = last.iter().find_map(|event| message(&event.kind)).unwrap_or_default();
    let end = before.iter().rposition(|event| !closes(&event.kind, message));
    let begun = before.iter().rev().find_map(|event| match &event.kind {
        EventKind::UndoStart { cause, .. } => Some(cause),
        _ => None,
    });
    // The failure of a brain that has undone its stages begins with that of the undo.
    let undone = matches!(begun, Some(UndoCause::Failed(failure)) if message.contains(&failure.message));
    Ok(end.and_then(|end| before.get(end)).map(|event| FailedPlace { before: event.seq, at_limit, undone }))
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

fn message(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::BrainError(Failure { message, .. })
        | EventKind::LoopComplete { outcome: LoopOutcome::Failed { message, .. }, .. } => Some(message),
        _ => None,
    }
}

/// Returns whether an event ends something that was open when its frame failed with this message.
fn closes(kind: &EventKind, failure: &str) -> bool {
    let is_cause = |reason: &str| !failure.is_empty() && reason.starts_with(failure);
    match kind {
        EventKind::LoopToolResult {
            result: ToolResult::Skipped { reason } | ToolResult::Interrupted { reason },
            ..
        } => is_cause(reason),
        EventKind::LoopApprovalWithdrawn { cause } => is_cause(cause),
        EventKind::LoopBrainComplete { error: Some(error), .. } => is_cause(error),
        EventKind::BrainCancelled { reason: Some(reason), .. } => is_cause(reason),
        EventKind::LoopComplete { outcome: LoopOutcome::Cancelled, .. } => true,
        _ => false,
    }
}
