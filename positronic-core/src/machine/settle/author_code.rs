//! Outcomes of the author's code that runs in the worker: nested brains and groups begin and end, loops close, waits resume.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::context::SettleContext;
use super::{GroupBegun, StateChanges};
use crate::error::Result;
use crate::machine::close::{self, fail_loop};
use crate::machine::{BrainEnd, CallPhase, REPLY, RunState, Stage, undo};
use crate::record::{
    ArmShape, BrainStart, Change, EndReason, EventKind, Failure, LoopOutcome, NewEvent, Path, Segment, ToolResult,
    WaitDeadline, WaitSpec,
};

/// Begins the nested brain of a stage or a call, or fails the brain around the stage, or the call.
pub(super) fn begin_brain(state: &RunState, path: &Path, begun: Result<Box<BrainStart>>) -> Vec<NewEvent> {
    let event = |kind| NewEvent::new(path.clone(), kind);
    match (begun, state.call(path).is_some()) {
        (Ok(start), true) => {
            let kind = EventKind::LoopBrainStart { title: start.title.clone(), options: start.options.clone() };
            vec![event(kind), event(EventKind::BrainStart(start))]
        }
        (Ok(start), false) => vec![event(EventKind::BrainStart(start))],
        (Err(error), true) => {
            let result = ToolResult::error(format!("the brain failed to start: {error}"));
            vec![event(EventKind::LoopToolResult { result, duration: None, change: None })]
        }
        (Err(error), false) => {
            let message = format!("the brain `{path}` failed to start: {error}");
            let failure = Failure { code: EndReason::Config, message, retryable: false };
            state.owner(path).map_or_else(Vec::new, |owner| close::end_brain(owner, &failure))
        }
    }
}

/// Begins a group of brains.
pub(super) fn begin_group(state: &RunState, path: &Path, begun: Result<GroupBegun>) -> Vec<NewEvent> {
    let kind =
        begun.map(|GroupBegun { options, limit, due, brains }| EventKind::GroupStart { brains, options, limit, due });
    event_or_failure(state, path, kind, EndReason::Step, format_args!("the stage `{path}` cannot begin"))
}

/// Records the chosen arm of a branch.
pub(super) fn choose(state: &RunState, path: &Path, arm: Result<ArmShape>) -> Vec<NewEvent> {
    let kind = arm.map(EventKind::BranchChosen);
    event_or_failure(state, path, kind, EndReason::Step, format_args!("the branch `{path}` cannot choose"))
}

/// Records the check of a guard.
pub(super) fn check(state: &RunState, path: &Path, checked: Result<Option<Value>>) -> Vec<NewEvent> {
    let kind =
        checked.map(|reason| EventKind::GuardChecked { passed: reason.is_none(), reason: reason.unwrap_or_default() });
    event_or_failure(state, path, kind, EndReason::Step, format_args!("the guard `{path}` failed"))
}

/// Begins the wait of a stage.
pub(super) fn begin_wait(
    state: &RunState,
    path: &Path,
    begun: Result<(Vec<WaitSpec>, Option<WaitDeadline>)>,
) -> Vec<NewEvent> {
    let kind = begun.map(|(mut waits, due)| {
        let (due, fixed) = (due.map(|due| due.at), due.is_some_and(|due| due.is_fixed));
        for wait in &mut waits {
            wait.expires = due;
            if wait.webhook == REPLY {
                path.as_str().clone_into(&mut wait.identifier);
            }
        }
        EventKind::StageWait { waits, due, fixed }
    });
    event_or_failure(state, path, kind, EndReason::Step, format_args!("the wait `{path}` cannot begin"))
}

/// Completes the stage of a group or a wait that has ended, or of a branch whose arm has no brain.
pub(super) fn end_stage(
    state: &RunState,
    path: &Path,
    change: Result<Option<Change>>,
    context: &SettleContext,
) -> Vec<NewEvent> {
    let Some(stage) = state.owner(path).map(|brain| &brain.stage) else { return Vec::new() };
    let (what, duration) = match stage {
        Stage::Group(group) => ("results", context.elapsed(group.began)),
        Stage::Wait(wait) => ("end", context.elapsed(wait.began)),
        // The arm of a branch that has no brain begins nothing.
        Stage::Ready => ("arm", Duration::ZERO),
        Stage::Step(_) | Stage::Loop(_) | Stage::Brain(_) | Stage::Failed(_) => return Vec::new(),
    };
    let kind = change.map(|change| EventKind::StepComplete { change, duration });
    event_or_failure(state, path, kind, EndReason::State, format_args!("the {what} of `{path}` cannot be applied"))
}

/// Completes the stage or the call of a nested brain that has ended. `again` is whether it runs in another round.
pub(super) fn end_brain(
    state: &RunState,
    path: &Path,
    mapped: Result<(StateChanges, bool)>,
    context: &SettleContext,
) -> Vec<NewEvent> {
    let Some(inner) = state.brain(path) else { return Vec::new() };
    let Some(end) = &inner.end else { return Vec::new() };
    let duration = context.elapsed(inner.began);
    if state.call(path).is_some() {
        let end = BrainCallEnd { end, handed_back: inner.handed_back.as_ref() };
        return end_brain_call(path, &end, mapped.map(|(changes, _)| changes), duration);
    }
    let stage = match path.last() {
        Some(Segment::Call(..)) => path.parent().unwrap_or_default(),
        _ => path.clone(),
    };
    match mapped {
        Ok((StateChanges { change, .. }, true)) => end_round(state, &stage, change),
        Ok((StateChanges { change, .. }, false)) => {
            vec![NewEvent::new(stage, EventKind::StepComplete { change, duration })]
        }
        Err(error) => {
            let message = format!("cannot apply the result of the brain `{path}`: {error}");
            fail_owner(state, &stage, EndReason::State, message)
        }
    }
}

/// Ends a round of a repeated brain, or fails the brain around it if it was the last one.
fn end_round(state: &RunState, stage: &Path, change: Option<Change>) -> Vec<NewEvent> {
    let Some(owner) = state.owner(stage) else { return Vec::new() };
    let (round, most) = (owner.round, owner.current().map_or(0, |stage| stage.rounds));
    let mut new_events = vec![NewEvent::new(stage.clone(), EventKind::RepeatRound { round, change })];
    if round.saturating_add(1) >= most {
        let message = format!("the stage `{stage}` is not done after {most} rounds, its limit");
        new_events.extend(fail_owner(state, stage, EndReason::Limit, message));
    }
    new_events
}

/// The end of a brain that a call runs.
struct BrainCallEnd<'a> {
    end: &'a BrainEnd,
    /// The output of the call with which it handed the dialogue back.
    handed_back: Option<&'a Value>,
}

impl BrainCallEnd<'_> {
    /// Returns the output of the call: the brain's result, and why it has handed the dialogue back if it has.
    fn output(&self, result: &Value) -> Value {
        match (self.handed_back, result) {
            (None, result) => result.clone(),
            (Some(why), Value::Null) => json!({ "handed_back": why }),
            (Some(why), result) => json!({ "handed_back": why, "result": result }),
        }
    }
}

fn end_brain_call(
    path: &Path,
    ended: &BrainCallEnd<'_>,
    mapped: Result<StateChanges>,
    duration: Duration,
) -> Vec<NewEvent> {
    let failed = |error: String| (None, Some(error.clone()), ToolResult::error(error), StateChanges::default());
    let (output, error, result, changes) = match (ended.end, mapped) {
        (BrainEnd::Completed(output), Ok(changes)) => {
            (Some(output.clone()), None, ToolResult::success(ended.output(output)), changes)
        }
        (BrainEnd::Completed(output), Err(error)) => {
            let message = format!(
                "the brain returned {output}, but its change of the state failed, so the state is as before: {error}"
            );
            (Some(output.clone()), None, ToolResult::error(message), StateChanges::default())
        }
        (BrainEnd::Failed(failure), _) => failed(failure.message.clone()),
        (BrainEnd::Cancelled, _) => failed("it was cancelled".to_owned()),
    };
    let event = |kind| NewEvent::new(path.clone(), kind);
    let StateChanges { change, new_events } = changes;
    let handed_back = ended.handed_back.is_some() && result.is_success();
    let mut all = vec![event(EventKind::LoopBrainComplete { result: output, error, handed_back })];
    all.extend(new_events);
    all.push(event(EventKind::LoopToolResult { result, duration: Some(duration), change }));
    all
}

/// Completes a brain with its result.
pub(super) fn complete_brain(state: &RunState, path: &Path, result: Result<Value>) -> Vec<NewEvent> {
    let kind = match result {
        Ok(result) => EventKind::BrainComplete { result },
        Err(error) => {
            let title = state.brain(path).map(|brain| &*brain.title).unwrap_or_default();
            let message = format!("cannot compute the result of `{title}`: {error}");
            let failure = Failure { code: EndReason::State, message, retryable: false };
            return state.brain(path).map(|brain| undo::failed(brain, failure)).into_iter().collect();
        }
    };
    vec![NewEvent::new(path.clone(), kind)]
}

/// Ends a loop. `exited` is the state that its `on_exit` returns, if it has one.
pub(super) fn close_loop(
    state: &RunState,
    path: &Path,
    outcome: LoopOutcome,
    exited: Result<Option<Value>>,
) -> Vec<NewEvent> {
    let exited = match exited {
        Ok(exited) => exited,
        Err(error) => {
            let message = format!("`on_exit` of the loop `{path}` failed: {error}");
            return fail_loop(state, path, Failure { code: EndReason::State, message, retryable: false });
        }
    };
    let Some(owner) = state.owner(path) else { return Vec::new() };
    let usage = state.loop_at(path).map(|frame| frame.usage).unwrap_or_default();
    let change = exited.and_then(|next| Change::between(&owner.state, &next));
    vec![NewEvent::new(path.clone(), EventKind::LoopComplete { outcome, usage, change })]
}

/// Returns the result of a call from its answer, and how the answer changes states.
pub(super) fn resume_call(
    state: &RunState,
    path: &Path,
    changes: Result<StateChanges>,
    context: &SettleContext,
) -> Vec<NewEvent> {
    let Some(call) = state.call(path) else { return Vec::new() };
    let CallPhase::Resumed { webhook, several, payload, answered, output, .. } = call.phase.clone() else {
        return Vec::new();
    };
    let (result, changes) = match changes {
        Ok(changes) => {
            let output = match (output, several) {
                _ if !answered => payload,
                (Value::Null, false) => payload,
                (Value::Null, true) => json!({ "answer": payload, "webhook": webhook }),
                (output, false) => json!({ "answer": payload, "result": output }),
                (output, true) => json!({ "answer": payload, "result": output, "webhook": webhook }),
            };
            (ToolResult::success(output), changes)
        }
        Err(error) => {
            let message = format!(
                "the answer {payload} arrived, but its change of the state failed, so the state is as before: {error}"
            );
            (ToolResult::error(message), StateChanges::default())
        }
    };
    let duration = call.started.map(|started| context.elapsed(started));
    let StateChanges { change, new_events: mut all } = changes;
    all.push(NewEvent::new(path.clone(), EventKind::LoopToolResult { result, duration, change }));
    all
}

/// Returns the event of a stage, or fails its brain.
fn event_or_failure(
    state: &RunState,
    path: &Path,
    kind: Result<EventKind>,
    code: EndReason,
    what: fmt::Arguments<'_>,
) -> Vec<NewEvent> {
    match kind {
        Ok(kind) => vec![NewEvent::new(path.clone(), kind)],
        Err(error) => fail_owner(state, path, code, format!("{what}: {}", error.with_line())),
    }
}

/// Fails the brain of a stage.
fn fail_owner(state: &RunState, path: &Path, code: EndReason, message: String) -> Vec<NewEvent> {
    close::fail_owner(state, path, Failure { code, message, retryable: false })
}
