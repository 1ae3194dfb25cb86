//! Conversion of outcomes into events: retries, failures of steps, calls and loops, and refused calls.
//!
//! The runner performs an effect and describes its outcome as plain data. All consequences are decided here, with the
//! time and the random number that the runner passes in.

mod author_code;
pub(super) mod context;
mod iteration;
mod model_answer;
mod plugins;
mod refused_answer;
mod retry;

use std::time::Duration;

use serde_json::Value;

use super::close::{fail_loop, stop_at_call};
use super::{REPLY, RunState, model_question, undo};
use crate::error::{Error, Result};
use crate::record::{
    ArmShape, BrainStart, CallFlags, Change, EndReason, EventKind, Failure, LoopOutcome, ModelError, ModelResponse,
    NewEvent, Part, Path, PluginStates, ReplacedInput, ResponseMetadata, RoutingStep, StageKind, Timestamp, ToolCall,
    ToolResult, TriggerChange, WaitDeadline, WaitSpec,
};

pub(crate) use context::SettleContext;
use model_answer::answer;
use refused_answer::refused_answer;
use retry::{model_failed, tool_failed};

pub(crate) use iteration::{ConfiguredIteration, begin_iteration, begin_loop};
pub(crate) use plugins::{plugin_steps, plugin_updated};
pub(crate) use refused_answer::RefusingGuard;

/// The outcome of an effect.
pub(crate) enum Outcome {
    /// A step has returned the next state of its brain, or failed. `retries` limits how often it is tried again after this error.
    Step { result: Result<Value>, retries: u32 },
    /// A model has answered.
    Answer(Answered),
    /// A model has given an answer of another form than was asked for, or one that a guard does not let pass.
    Misfit {
        response: ModelResponse,
        message: String,
        guard: Option<RefusingGuard>,
        replaced: Vec<Replaced>,
        attempt: u32,
    },
    /// A model has given no answer.
    ModelFailed { error: ModelError, attempt: u32 },
    /// A tool has returned.
    Tool(Returned),
    /// A tool has failed, which may be tried again so often.
    ToolFailed { error: Error, attempt: u32, retries: u32 },
    /// A guard has stopped the loop at a call that was about to run, or has run.
    CallStopped { message: String, replaced: Vec<Replaced> },
    /// It is unknown whether a tool has had its effect. `retries` limits how often it may run again.
    ToolInDoubt { reason: String, attempt: u32, retries: u32 },
    /// A model has answered a question of a step or a plugin, or given no answer.
    Question { result: Result<ModelResponse, ModelError>, attempt: u32 },
    /// A loop's configuration has failed.
    NotConfigured(Error),
    /// The chosen arm of a branch.
    Chosen(Result<ArmShape>),
    /// What a group of brains begins with.
    GroupBegun(Result<GroupBegun>),
    /// A guard has passed, or has a reason why it has not.
    Checked(Result<Option<Value>>),
    /// What a stage waits for, and until when.
    WaitBegun(Result<(Vec<WaitSpec>, Option<WaitDeadline>)>),
    /// How the end of a group, of a wait, or an arm without a brain changes the state; `None` if it stays.
    StageEnded(Result<Option<Change>>),
    /// The first event of a nested brain, or why it cannot start.
    BrainBegun(Result<Box<BrainStart>>),
    /// How the result of a nested brain changes states, and whether another round of it follows; of a brain that has not completed,
    /// nothing.
    BrainEnded(Result<(StateChanges, bool)>),
    /// The result of a brain.
    BrainResult(Result<Value>),
    /// A loop has ended with this outcome, and its `on_exit`, if any, has returned the next state of the brain.
    LoopClosed(LoopOutcome, Result<Option<Value>>),
    /// How the answer to a call that waited changes states.
    Resumed(Result<StateChanges>),
}

/// What a group of brains begins with.
pub(crate) struct GroupBegun {
    /// The options of each brain, in order.
    pub(crate) options: Vec<Value>,
    /// How many work at the same time.
    pub(crate) limit: u32,
    /// When a race ends without a winner.
    pub(crate) due: Option<Timestamp>,
    /// The brains, in order; one for all items of a `map`.
    pub(crate) brains: Vec<ArmShape>,
}

/// What a guard has replaced.
#[derive(Debug, Clone)]
pub(crate) struct Replaced {
    pub(crate) guard: String,
    /// The value that it has replaced.
    pub(crate) value: Value,
    /// What came in the place of a message.
    pub(crate) input: Option<ReplacedInput>,
}

impl Replaced {
    pub(crate) fn event(self, path: &Path) -> NewEvent {
        let Self { guard, value, input } = self;
        NewEvent::new(path.clone(), EventKind::LoopGuardReplaced { guard, replaced: value, input })
    }
}

/// A model's answer with its calls validated.
pub(crate) struct Answered {
    pub(crate) parts: Vec<Part>,
    pub(crate) metadata: ResponseMetadata,
    pub(crate) calls: Vec<Validated>,
    /// What the loop's plugins store from then on.
    pub(crate) plugins: PluginStates,
    /// The plugins that failed to look at it, and their errors.
    pub(crate) failed: Vec<(String, String)>,
    /// What guards have replaced in it.
    pub(crate) replaced: Vec<Replaced>,
}

/// A call, and why it is refused if it is.
pub(crate) struct Validated {
    pub(crate) call: ToolCall,
    pub(crate) refused: Option<String>,
    /// The arguments that guards have replaced.
    pub(crate) replaced: Vec<Replaced>,
}

/// The error of a plugin that refuses a request, or of a guard that stops a loop.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Veto(pub(crate) String);

/// The error of a guard or a hook that takes longer than the runner lets it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Overdue(pub(crate) String);

/// What a tool has returned.
pub(crate) struct Returned {
    pub(crate) output: Value,
    pub(crate) brief: Option<String>,
    /// What it waits for, and for how long.
    pub(crate) waits: Vec<(WaitSpec, Option<Duration>)>,
    pub(crate) triggers: Vec<TriggerChange>,
    /// What guards have replaced in the output.
    pub(crate) replaced: Vec<Replaced>,
    /// How it changes states, or why that failed.
    pub(crate) changes: Result<StateChanges>,
}

/// How the result of a call changes states.
#[derive(Default)]
pub(crate) struct StateChanges {
    /// The change of the brain's state.
    pub(crate) change: Option<Change>,
    /// The changes of plugins' states, as events that come before the result.
    pub(crate) new_events: Vec<NewEvent>,
}

/// Returns the events that an outcome of the effect at `path` leads to; `duration` is in microseconds.
pub(crate) fn settle(
    state: &RunState,
    path: &Path,
    outcome: Outcome,
    duration: Duration,
    context: &SettleContext,
) -> Vec<NewEvent> {
    let mut outcome = outcome;
    let broken = take_broken(&mut outcome);
    let new_events = settled(state, path, outcome, duration, context);
    if broken.is_empty() {
        return new_events;
    }
    broken.into_iter().map(|kind| NewEvent::new(path.clone(), kind)).chain(new_events).collect()
}

/// Takes the answers that broke out of the outcome of a request.
fn take_broken(outcome: &mut Outcome) -> Vec<EventKind> {
    let steps = match outcome {
        Outcome::Answer(Answered { metadata: ResponseMetadata { via, .. }, .. })
        | Outcome::Misfit { response: ModelResponse { metadata: ResponseMetadata { via, .. }, .. }, .. }
        | Outcome::ModelFailed { error: ModelError { via, .. }, .. }
        | Outcome::Question { result: Err(ModelError { via, .. }), .. } => via,
        Outcome::Question { result: Ok(response), .. } => &mut response.metadata.via,
        Outcome::Step { .. }
        | Outcome::Tool(_)
        | Outcome::ToolFailed { .. }
        | Outcome::CallStopped { .. }
        | Outcome::ToolInDoubt { .. }
        | Outcome::NotConfigured(_)
        | Outcome::Chosen(_)
        | Outcome::GroupBegun(_)
        | Outcome::Checked(_)
        | Outcome::WaitBegun(_)
        | Outcome::StageEnded(_)
        | Outcome::BrainBegun(_)
        | Outcome::BrainEnded(_)
        | Outcome::BrainResult(_)
        | Outcome::LoopClosed(..)
        | Outcome::Resumed(_) => return Vec::new(),
    };
    let broken = steps.extract_if(.., |step| matches!(step, RoutingStep::Broken { .. }));
    let event = |step| match step {
        RoutingStep::Broken { metadata } => Some(EventKind::LoopAnswerBroken { metadata }),
        _ => None,
    };
    broken.filter_map(event).collect()
}

fn settled(
    state: &RunState,
    path: &Path,
    outcome: Outcome,
    duration: Duration,
    context: &SettleContext,
) -> Vec<NewEvent> {
    match outcome {
        Outcome::Step { result, retries } => step(state, path, (result, retries), duration, context),
        Outcome::Answer(answered) => answer(state, path, answered, duration),
        Outcome::Misfit { response, message, guard, replaced, attempt } => {
            let replaced = replaced.into_iter().map(|replaced| replaced.event(path));
            replaced.chain(refused_answer(state, path, response, (message, guard), attempt, duration)).collect()
        }
        Outcome::ModelFailed { error, attempt } => model_failed(state, path, error, attempt, context),
        Outcome::Tool(returned) => tool(path, returned, duration, context.now),
        Outcome::ToolFailed { error, attempt, retries } => {
            let Some(flags) = state.call(path).map(|call| call.flags) else { return Vec::new() };
            vec![NewEvent::new(path.clone(), tool_failed(flags, attempt, retries, &error, duration, context))]
        }
        Outcome::CallStopped { message, replaced } => {
            let replaced = replaced.into_iter().map(|replaced| replaced.event(path));
            replaced.chain(stop_at_call(state, path, message, duration)).collect()
        }
        Outcome::ToolInDoubt { reason, attempt, retries } => {
            let again = state.call(path).filter(|call| call.flags.may_repeat());
            let kind = match again.and_then(|_| context.again(attempt, retries)) {
                Some(due) => EventKind::LoopToolRetry { attempt, message: reason, due },
                None => EventKind::LoopToolResult {
                    result: ToolResult::Interrupted { reason },
                    duration: Some(duration),
                    change: None,
                },
            };
            vec![NewEvent::new(path.clone(), kind)]
        }
        Outcome::Question { result: Ok(response), .. } => model_question::answered(path, response, duration),
        Outcome::Question { result: Err(error), attempt } => model_question::failed(path, error, attempt, context),
        Outcome::NotConfigured(error) => {
            let (is_veto, retryable) = (error.source().is::<Veto>(), error.source().is::<Overdue>());
            let (code, what) = match (is_veto, retryable) {
                (true, _) => (EndReason::Guard, "was stopped"),
                (_, true) => (EndReason::Timeout, "cannot be configured"),
                (false, false) => (EndReason::Config, "cannot be configured"),
            };
            let message = format!("the loop `{path}` {what}: {}", error.with_line());
            fail_loop(state, path, Failure { code, message, retryable })
        }
        Outcome::Chosen(arm) => author_code::choose(state, path, arm),
        Outcome::GroupBegun(begun) => author_code::begin_group(state, path, begun),
        Outcome::Checked(checked) => author_code::check(state, path, checked),
        Outcome::WaitBegun(begun) => author_code::begin_wait(state, path, begun),
        Outcome::StageEnded(change) => author_code::end_stage(state, path, change, context),
        Outcome::BrainBegun(begun) => author_code::begin_brain(state, path, begun),
        Outcome::BrainEnded(mapped) => author_code::end_brain(state, path, mapped, context),
        Outcome::BrainResult(result) => author_code::complete_brain(state, path, result),
        Outcome::LoopClosed(outcome, exited) => author_code::close_loop(state, path, outcome, exited),
        Outcome::Resumed(changes) => author_code::resume_call(state, path, changes, context),
    }
}

fn step(
    state: &RunState,
    path: &Path,
    (result, retries): (Result<Value>, u32),
    duration: Duration,
    context: &SettleContext,
) -> Vec<NewEvent> {
    let Some(brain) = state.owner(path) else { return Vec::new() };
    let attempt = brain.stage.as_step().map_or(0, |step| step.attempt);
    let error = match result {
        Ok(next) => {
            let change = Change::between(&brain.state, &next);
            return vec![NewEvent::new(path.clone(), EventKind::StepComplete { change, duration })];
        }
        Err(error) => error,
    };
    if let Some(due) = context.again(attempt, retries) {
        let message = error.with_line();
        return vec![NewEvent::new(path.clone(), EventKind::StepRetry { attempt, message, due })];
    }
    let failure = Failure {
        code: EndReason::Step,
        message: format!(
            "the {} `{path}` failed: {}",
            brain.current().map_or(StageKind::Step, |stage| stage.kind),
            error.with_line()
        ),
        retryable: error.is_transient(),
    };
    match brain.undoing {
        Some(_) => vec![NewEvent::new(path.clone(), EventKind::UndoFailed { message: failure.message })],
        None => vec![undo::failed(brain, failure)],
    }
}

fn tool(path: &Path, returned: Returned, duration: Duration, now: Timestamp) -> Vec<NewEvent> {
    let Returned { output, brief, waits, triggers, replaced, changes } = returned;
    let replaced = replaced.into_iter().map(|replaced| replaced.event(path));
    let StateChanges { change, mut new_events } = match changes {
        Ok(changes) => changes,
        Err(error) => {
            let result = ToolResult::error(format!(
                "the tool did its work and gave {output}, but its change of the state failed, so the state is as \
                 before: {error}"
            ));
            let kind = EventKind::LoopToolResult { result, duration: Some(duration), change: None };
            return replaced.chain([NewEvent::new(path.clone(), kind)]).collect();
        }
    };
    // Most calls have one event, and a vector that grows has room for four.
    new_events.reserve_exact(1 + replaced.len() + triggers.len());
    new_events.extend(replaced);
    let set = |change| NewEvent::new(path.clone(), EventKind::LoopTrigger { change });
    new_events.extend(triggers.into_iter().map(set));
    let kind = if waits.is_empty() {
        EventKind::LoopToolResult { result: ToolResult::Success { output, brief }, duration: Some(duration), change }
    } else {
        let waits = waits.into_iter().map(|(spec, valid_for)| absolute(path, spec, valid_for, now)).collect();
        EventKind::LoopWait { waits, output, change }
    };
    new_events.push(NewEvent::new(path.clone(), kind));
    new_events
}

/// Says until when a wait is valid, and for whose reply it waits.
fn absolute(call: &Path, mut spec: WaitSpec, valid_for: Option<Duration>, now: Timestamp) -> WaitSpec {
    spec.expires = valid_for.map(|valid| now.after(valid));
    if spec.webhook == REPLY {
        spec.identifier = call.as_str().to_owned();
    }
    spec
}

/// Says whether the next iteration of a loop offers a tool: one that wraps up offers those alone that end the loop, and only the loop of a
/// brain that took a dialogue over can hand it back.
pub(crate) fn offers(state: &RunState, path: &Path, flags: CallFlags) -> bool {
    let wraps_up = state.loop_at(path).is_some_and(|frame| frame.wrap_up.is_some());
    if flags.hand_back {
        let taken_over = path.parent().and_then(|brain| state.call(&brain)).is_some_and(|call| call.hands_over());
        return taken_over && !wraps_up;
    }
    flags.exit || !wraps_up
}

#[cfg(test)]
mod tests;
