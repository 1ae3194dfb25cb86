//! The status of a run, and its pending items.

use std::sync::Arc;

use crate::record::{Path, Pending, PendingKind, Segment, Status};

use super::effect::Next;
use super::frames::{BrainEnd, BrainFrame, Call, CallPhase, Intent, LoopPhase, Stage};
use super::grants::PendingGrant;
use super::limits::Bound;
use super::next::next;
use super::state::RunState;
use super::tree::Open;

/// Returns the status of a run.
#[must_use]
pub fn status(state: &RunState) -> Status {
    status_and_next(state).0
}

/// Returns the status of a run, and the next effects as of its last event.
pub(super) fn status_and_next(state: &RunState) -> (Status, Next) {
    let over = |status| (status, Next::default());
    let Some(root) = &state.root else { return over(Status::Running) };
    match &root.end {
        Some(BrainEnd::Completed(_)) => over(Status::Completed),
        Some(BrainEnd::Failed(_)) => over(Status::Failed),
        Some(BrainEnd::Cancelled) => over(Status::Cancelled),
        None if state.paused.is_some() => over(Status::Paused),
        None => {
            let next = next(state, state.at);
            let idle = next.effects.is_empty() && !is_in_flight(root) && !pending(state).is_empty();
            (if idle { Status::Waiting } else { Status::Running }, next)
        }
    }
}

/// Returns whether there is an intent without outcome, or a delayed retry; `asks` decides it for requests.
fn in_flight(brain: &BrainFrame, asks: fn(Intent) -> bool) -> bool {
    let asks = asks_below(brain.waits_for_more(), asks);
    match &brain.stage {
        Stage::Step(step) => is_busy(step.intent),
        Stage::Brain(inner) => in_flight(inner, asks),
        Stage::Loop(frame) => {
            let asks = asks_below(frame.grants.asked.is_some(), asks);
            match &frame.phase {
                LoopPhase::Ask { intent, .. } => asks(*intent),
                LoopPhase::Batch => frame.batch.iter().any(|call| call_in_flight(call, asks)),
                LoopPhase::Prepare | LoopPhase::Answered | LoopPhase::Ending(_) => false,
            }
        }
        Stage::Ready | Stage::Failed(_) => false,
    }
}

/// A delayed request is not retried before more is granted, if a request for more is open.
const fn asks_below(waits_for_more: bool, asks: fn(Intent) -> bool) -> fn(Intent) -> bool {
    if waits_for_more { is_running } else { asks }
}

const fn is_running(intent: Intent) -> bool {
    matches!(intent, Intent::Running)
}

/// Returns whether a brain has work in flight, or delayed retries.
pub(super) fn is_in_flight(brain: &BrainFrame) -> bool {
    in_flight(brain, is_busy)
}

/// Returns whether a call progresses without further model calls: a delayed request does
/// not, since it would be sent later.
pub(super) fn progresses_without_model(call: &Call) -> bool {
    call_in_flight(call, is_running)
}

fn call_in_flight(call: &Call, asks: fn(Intent) -> bool) -> bool {
    match &call.phase {
        CallPhase::Open(intent) => is_busy(*intent),
        CallPhase::Brain(inner) => in_flight(inner, asks),
        CallPhase::Gated
        | CallPhase::Pending { .. }
        | CallPhase::Waiting { .. }
        | CallPhase::Resumed { .. }
        | CallPhase::Done(_) => false,
    }
}

/// Returns whether the run waits for the outcome of an effect at this path: a step, a question of a step, a request, or a
/// call without a result.
#[must_use]
pub fn awaits(state: &RunState, path: &Path) -> bool {
    let running = |intent: &Intent| *intent == Intent::Running;
    let Some(brain) = state.owner(path).filter(|brain| brain.end.is_none()) else { return false };
    match (&brain.stage, path.last()) {
        (Stage::Step(step), Some(Segment::Stage(_))) => running(&step.intent),
        (Stage::Step(step), Some(Segment::Iteration(_))) => running(&step.intent) || step.held,
        (Stage::Loop(frame), Some(Segment::Iteration(iteration))) => {
            let waits = match &frame.phase {
                LoopPhase::Prepare => true,
                LoopPhase::Ask { intent, .. } => running(intent),
                LoopPhase::Answered | LoopPhase::Batch | LoopPhase::Ending(_) => false,
            };
            iteration == frame.iteration && waits
        }
        (Stage::Loop(_), Some(Segment::Call(..))) => state.call(path).is_some_and(|call| call.result().is_none()),
        _ => false,
    }
}

/// Returns whether values can be recorded at this path: only for a running step or tool.
pub(crate) fn keeps_values(state: &RunState, path: &Path) -> bool {
    match path.last() {
        Some(Segment::Call(..)) => {
            state.call(path).is_some_and(|call| matches!(call.phase, CallPhase::Open(Intent::Running)))
        }
        _ => awaits(state, path),
    }
}

const fn is_busy(intent: Intent) -> bool {
    matches!(intent, Intent::Running | Intent::Backoff(_))
}

/// Lists pending items in path order, from any depth.
#[must_use]
pub fn pending(state: &RunState) -> Vec<Pending> {
    let mut out = Vec::new();
    if let Some(root) = state.root.as_deref().filter(|root| root.end.is_none()) {
        root.find_open(&mut |open| {
            out.extend(Bound::of(open).filter_map(asked));
            if let Open::Call(call) = open {
                out.extend(waiting(call));
            }
            None::<()>
        });
    }
    out
}

/// Returns the open request for more of a limit.
fn asked(bound: Bound<'_>) -> Option<Pending> {
    let PendingGrant { since, request } = bound.grants().asked?;
    let (call, kind) = (bound.path().clone(), PendingKind::Budget(request));
    Some(Pending { call, tool: String::new(), arguments: Arc::default(), since, kind })
}

/// Returns the approval or the answer for which a call waits.
fn waiting(call: &Call) -> Option<Pending> {
    let (since, kind) = match &call.phase {
        CallPhase::Pending { since, expires } => {
            (*since, PendingKind::Approval { gate: call.gate.clone()?, expires: *expires })
        }
        CallPhase::Waiting { since, waits, .. } => (*since, PendingKind::Answer { waits: waits.clone() }),
        CallPhase::Gated
        | CallPhase::Open(_)
        | CallPhase::Brain(_)
        | CallPhase::Resumed { .. }
        | CallPhase::Done(_) => return None,
    };
    let (tool, arguments) = (call.tool.clone(), Arc::clone(&call.arguments));
    Some(Pending { call: call.path.clone(), tool, arguments, since, kind })
}
