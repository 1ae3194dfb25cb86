//! Results for everything that is open when a frame ends from outside, deepest first.

use super::frames::{BrainFrame, Call, CallPhase, Intent, LoopFrame, Stage};
use super::state::RunState;
use crate::record::{Actor, EventKind, Failure, LoopOutcome, NewEvent, SignalId, ToolResult};

/// Returns the events that cancel a run.
pub(super) fn cancel(state: &RunState, signal: &SignalId, actor: &Actor, reason: Option<&String>) -> Vec<NewEvent> {
    let mut new_events = Vec::new();
    if let Some(root) = &state.root {
        let why =
            reason.map_or_else(|| "the run was cancelled".to_owned(), |why| format!("the run was cancelled: {why}"));
        stage(root, &why, &mut new_events);
        new_events.push(NewEvent::new(
            root.path.clone(),
            EventKind::BrainCancelled { signal: Some(signal.clone()), actor: actor.clone(), reason: reason.cloned() },
        ));
    }
    new_events
}

/// Returns the events that fail a brain and end everything open in it.
pub(crate) fn end_brain(frame: &BrainFrame, failure: &Failure) -> Vec<NewEvent> {
    let mut new_events = Vec::new();
    stage(frame, &failure.message, &mut new_events);
    new_events.push(NewEvent::new(frame.path.clone(), EventKind::BrainError(failure.clone())));
    new_events
}

/// Returns the events that fail a loop and end every open call in it.
pub(super) fn end_loop(frame: &LoopFrame, failure: &Failure) -> Vec<NewEvent> {
    let mut new_events = Vec::new();
    calls(frame, &failure.message, &mut new_events);
    let Failure { code, message, retryable } = failure.clone();
    let outcome = LoopOutcome::Failed { code, message, retryable };
    new_events
        .push(NewEvent::new(frame.path.clone(), EventKind::LoopComplete { outcome, usage: frame.usage, change: None }));
    new_events
}

fn brain(frame: &BrainFrame, why: &str, new_events: &mut Vec<NewEvent>) {
    if frame.end.is_none() {
        stage(frame, why, new_events);
        let cancelled =
            EventKind::BrainCancelled { signal: None, actor: Actor::default(), reason: Some(why.to_owned()) };
        new_events.push(NewEvent::new(frame.path.clone(), cancelled));
    }
}

fn stage(frame: &BrainFrame, why: &str, new_events: &mut Vec<NewEvent>) {
    match &frame.stage {
        Stage::Brain(inner) => brain(inner, why, new_events),
        Stage::Loop(inner) => {
            calls(inner, why, new_events);
            let complete =
                EventKind::LoopComplete { outcome: LoopOutcome::Cancelled, usage: inner.usage, change: None };
            new_events.push(NewEvent::new(inner.path.clone(), complete));
        }
        Stage::Ready | Stage::Step(_) | Stage::Failed(_) => {}
    }
}

/// Ends every open call of a loop with a result.
pub(super) fn calls(frame: &LoopFrame, why: &str, new_events: &mut Vec<NewEvent>) {
    for open in frame.batch.iter().filter(|call| call.result().is_none()) {
        call(open, why, new_events);
    }
}

/// Ends an open call with a result.
pub(super) fn call(call: &Call, why: &str, new_events: &mut Vec<NewEvent>) {
    let result = match &call.phase {
        CallPhase::Done(_) => return,
        CallPhase::Pending { .. } => {
            new_events
                .push(NewEvent::new(call.path.clone(), EventKind::LoopApprovalWithdrawn { cause: why.to_owned() }));
            ToolResult::Skipped { reason: why.to_owned() }
        }
        CallPhase::Gated | CallPhase::Open(Intent::Ready | Intent::Backoff(_)) => {
            ToolResult::Skipped { reason: why.to_owned() }
        }
        CallPhase::Open(Intent::Running | Intent::Doubtful) => {
            ToolResult::Interrupted { reason: format!("{why}; whether the tool had its effect is unknown") }
        }
        CallPhase::Waiting { .. } | CallPhase::Resumed { .. } => {
            ToolResult::Interrupted { reason: format!("{why} while the call waited for an answer") }
        }
        CallPhase::Brain(inner) => {
            brain(inner, why, new_events);
            let complete = EventKind::LoopBrainComplete { result: None, error: Some(why.to_owned()) };
            new_events.push(NewEvent::new(call.path.clone(), complete));
            ToolResult::Interrupted { reason: why.to_owned() }
        }
    };
    new_events
        .push(NewEvent::new(call.path.clone(), EventKind::LoopToolResult { result, duration: None, change: None }));
}
