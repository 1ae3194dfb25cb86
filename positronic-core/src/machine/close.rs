//! Typed results for everything that is open when a frame ends from outside, deepest first.

use crate::record::{Actor, Body, Draft, Failure, LoopOutcome, SignalId, ToolResult};

use super::call::{Call, CallPhase};
use super::loop_frame::LoopFrame;
use super::state::{BrainFrame, Intent, RunState, Stage};

/// Returns the events that cancel a run.
pub(super) fn cancel(state: &RunState, signal: &SignalId, actor: &Actor, reason: Option<&String>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    if let Some(root) = &state.root {
        let why =
            reason.map_or_else(|| "the run was cancelled".to_owned(), |why| format!("the run was cancelled: {why}"));
        stage(root, &why, &mut drafts);
        drafts.push(Draft::new(
            root.path.clone(),
            Body::BrainCancelled { signal: Some(signal.clone()), actor: actor.clone(), reason: reason.cloned() },
        ));
    }
    drafts
}

/// Returns the events that end a brain in failure, with everything that is open in it.
pub(crate) fn end_brain(frame: &BrainFrame, failure: &Failure) -> Vec<Draft> {
    let mut drafts = Vec::new();
    stage(frame, &failure.message, &mut drafts);
    drafts.push(Draft::new(frame.path.clone(), Body::BrainError(failure.clone())));
    drafts
}

/// Returns the events that end a loop in failure, with every call that is open in it.
pub(crate) fn end_loop(frame: &LoopFrame, failure: &Failure) -> Vec<Draft> {
    let mut drafts = Vec::new();
    calls(frame, &failure.message, &mut drafts);
    let Failure { code, message, retryable } = failure.clone();
    let outcome = LoopOutcome::Failed { code, message, retryable };
    drafts.push(Draft::new(frame.path.clone(), Body::LoopComplete { outcome, usage: frame.usage, change: None }));
    drafts
}

fn brain(frame: &BrainFrame, why: &str, drafts: &mut Vec<Draft>) {
    if frame.end.is_none() {
        stage(frame, why, drafts);
        let cancelled = Body::BrainCancelled { signal: None, actor: Actor::default(), reason: Some(why.to_owned()) };
        drafts.push(Draft::new(frame.path.clone(), cancelled));
    }
}

fn stage(frame: &BrainFrame, why: &str, drafts: &mut Vec<Draft>) {
    match &frame.stage {
        Stage::Brain(inner) => brain(inner, why, drafts),
        Stage::Loop(inner) => {
            calls(inner, why, drafts);
            let complete = Body::LoopComplete { outcome: LoopOutcome::Cancelled, usage: inner.usage, change: None };
            drafts.push(Draft::new(inner.path.clone(), complete));
        }
        Stage::Ready | Stage::Step(_) | Stage::Failed(_) => {}
    }
}

/// Gives every open call of a loop its result.
pub(super) fn calls(frame: &LoopFrame, why: &str, drafts: &mut Vec<Draft>) {
    for open in frame.batch.iter().filter(|call| call.result().is_none()) {
        call(open, why, drafts);
    }
}

/// Gives an open call its result.
pub(super) fn call(call: &Call, why: &str, drafts: &mut Vec<Draft>) {
    let result = match &call.phase {
        CallPhase::Done(_) => return,
        CallPhase::Pending { .. } => {
            drafts.push(Draft::new(call.path.clone(), Body::LoopApprovalWithdrawn { cause: why.to_owned() }));
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
            brain(inner, why, drafts);
            let complete = Body::LoopBrainComplete { result: None, error: Some(why.to_owned()) };
            drafts.push(Draft::new(call.path.clone(), complete));
            ToolResult::Interrupted { reason: why.to_owned() }
        }
    };
    drafts.push(Draft::new(call.path.clone(), Body::LoopToolResult { result, duration: None, change: None }));
}
