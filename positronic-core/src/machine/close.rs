//! The events that end a run, a brain or a loop from outside: results for everything open in it come first.

use std::time::Duration;

use super::frames::{BrainFrame, LoopFrame};
use super::state::RunState;
use super::undo;
use crate::record::{
    Actor, EndReason, EventKind, Failure, LoopOutcome, NewEvent, Path, SignalId, ToolResult, UndoCause,
};

/// Returns the events that cancel a run, or begin to undo what it has done. A run that does that already is cancelled at once.
pub(super) fn cancel(state: &RunState, signal: &SignalId, actor: &Actor, reason: Option<&String>) -> Vec<NewEvent> {
    let mut new_events = Vec::new();
    if let Some(root) = &state.root {
        let why =
            reason.map_or_else(|| "the run was cancelled".to_owned(), |why| format!("the run was cancelled: {why}"));
        root.close_stage(&why, &mut new_events);
        let (signal, actor) = (Some(signal.clone()), actor.clone());
        new_events.push(undo::ended(root, UndoCause::Cancelled { signal, actor, reason: reason.cloned() }));
    }
    new_events
}

/// Returns the events that fail a brain and end everything open in it.
pub(crate) fn end_brain(frame: &BrainFrame, failure: &Failure) -> Vec<NewEvent> {
    let mut new_events = Vec::new();
    frame.close_stage(&failure.message, &mut new_events);
    new_events.push(undo::failed(frame, failure.clone()));
    new_events
}

/// Returns the event that fails the brain around a stage.
pub(super) fn fail_owner(state: &RunState, stage: &Path, failure: Failure) -> Vec<NewEvent> {
    state.owner(stage).map(|owner| undo::failed(owner, failure)).into_iter().collect()
}

/// Returns the events that fail a loop because a guard stops it at one of its calls, and end every other open call in it.
pub(super) fn stop_at_call(state: &RunState, call: &Path, message: String, duration: Duration) -> Vec<NewEvent> {
    let (result, duration) = (ToolResult::error(&*message), Some(duration));
    let stopped = NewEvent::new(call.clone(), EventKind::LoopToolResult { result, duration, change: None });
    let Some(frame) = state.loop_at(call) else { return vec![stopped] };
    let ended = end_loop(frame, &Failure { code: EndReason::Guard, message, retryable: false });
    std::iter::once(stopped).chain(ended.into_iter().filter(|event| event.path != *call)).collect()
}

/// Returns the events that fail a loop and end every open call in it.
pub(super) fn end_loop(frame: &LoopFrame, failure: &Failure) -> Vec<NewEvent> {
    let mut new_events = Vec::new();
    frame.close_calls(&failure.message, &mut new_events);
    let Failure { code, message, retryable } = failure.clone();
    let outcome = LoopOutcome::Failed { code, message, retryable };
    new_events
        .push(NewEvent::new(frame.path.clone(), EventKind::LoopComplete { outcome, usage: frame.usage, change: None }));
    new_events
}

/// Returns the events that end a loop with its open calls, or a brain whose loop has not begun, in failure.
pub(super) fn fail_loop(state: &RunState, path: &Path, failure: Failure) -> Vec<NewEvent> {
    match state.loop_at(path).filter(|frame| frame.path == *path) {
        Some(frame) => end_loop(frame, &failure),
        None => fail_owner(state, path, failure),
    }
}
