//! The status of a run, and its pending items.

use std::sync::Arc;
use std::time::Duration;

use super::effect::Next;
use super::frames::{BrainEnd, BrainFrame, Call, CallPhase, Intent, LoopFrame, OpenFrame, WaitFrame};
use super::grants::PendingGrant;
use super::limits::LimitedFrame;
use super::next::next;
use super::stages::Frame as _;
use super::state::RunState;
use crate::record::{Path, Pending, PendingKind, Segment, Status, Timestamp, WaitSpec};

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
            let idle = next.effects.is_empty()
                && match root.in_flight(Intent::is_busy) {
                    true => sleeps(state, next.wake.map_or(Duration::ZERO, |wake| wake.since(state.at))),
                    // A sleep is not pending: no answer can end it.
                    false => next.wake.is_some() || !pending(state).is_empty(),
                };
            (if idle { Status::Waiting } else { Status::Running }, next)
        }
    }
}

/// The shortest time without work in which a run waits. A worker keeps a run through a shorter one, as between two tries.
const SLEEP: Duration = Duration::from_secs(10);

/// Returns whether nothing is in flight, and nothing is due for long.
fn sleeps(state: &RunState, left: Duration) -> bool {
    left >= SLEEP && !state.any_open(OpenFrame::is_in_flight)
}

/// Returns whether the run waits for the outcome of an effect at this path: a step, a question of a step, a request, or a
/// call without a result.
#[must_use]
pub fn awaits(state: &RunState, path: &Path) -> bool {
    let owner = state.owner(path).filter(|brain| brain.end.is_none());
    owner.and_then(|brain| brain.stage.frame()).is_some_and(|frame| frame.awaits(path))
}

/// Returns since when the call or the stage at a path waits for an answer.
pub(crate) fn waits_since(state: &RunState, path: &Path) -> Option<Timestamp> {
    match path.last()? {
        Segment::Call(..) => match &state.call(path)?.phase {
            CallPhase::Waiting { at, .. } => Some(*at),
            _ => None,
        },
        _ => state.owner(path)?.stage.as_wait().map(|wait| wait.began),
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

/// Lists pending items in path order, from any depth.
#[must_use]
pub fn pending(state: &RunState) -> Vec<Pending> {
    let mut out = Vec::new();
    if state.has_ended() {
        return out;
    }
    state.for_each_open(|open| {
        out.extend(LimitedFrame::of(open).filter_map(asked));
        match open {
            OpenFrame::Call(call) => out.extend(waiting(call)),
            OpenFrame::Wait(brain, frame) => out.extend(stage_wait(brain, frame)),
            OpenFrame::Loop(frame) => out.extend(children(frame)),
            OpenFrame::Brain(_) | OpenFrame::Step(..) | OpenFrame::Group(_) => {}
        }
    });
    out
}

/// Returns the open request for more of a limit.
fn asked(bound: LimitedFrame<'_>) -> Option<Pending> {
    let PendingGrant { since, request } = bound.grants().asked?;
    let (call, kind) = (bound.path().clone(), PendingKind::Budget(request));
    Some(Pending { call, tool: String::new(), arguments: Arc::default(), since, kind })
}

/// Returns the child runs for which a loop waits.
fn children(frame: &LoopFrame) -> Option<Pending> {
    let (since, _) = frame.background.first().filter(|_| frame.waits_for_children())?;
    let waits = frame.background.iter().map(|(_, child)| WaitSpec::for_child(&child.run)).collect();
    let (call, kind) = (frame.path.clone(), PendingKind::Answer { waits });
    Some(Pending { call, tool: String::new(), arguments: Arc::default(), since: *since, kind })
}

/// Returns the answer for which a stage waits.
fn stage_wait(brain: &BrainFrame, frame: &WaitFrame) -> Option<Pending> {
    if frame.end.is_some() || frame.waits.is_empty() {
        return None;
    }
    let kind = PendingKind::Answer { waits: frame.waits.clone() };
    Some(Pending {
        call: brain.current_path()?,
        tool: String::new(),
        arguments: Arc::default(),
        since: frame.since,
        kind,
    })
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
