//! The next effects of a run: a pure function of the state and the time.

use crate::record::{
    EndReason, EventKind, Failure, LoopOutcome, NewEvent, Path, Segment, Speaker, StageKind, Timestamp,
};

use super::crashes::{isolate, park};
use super::effect::{Effect, Next};
use super::frames::{BrainEnd, BrainFrame, Intent, LoopFrame, LoopPhase, Stage};
use super::limits::{Around, Before, Bound};
use super::stages::r#loop::{EMPTY, batch};
use super::state::RunState;

/// Computes the effects for this state and time. Without effects and without work in flight, the run is
/// suspended or over.
#[must_use]
pub fn next(state: &RunState, now: Timestamp) -> Next {
    let out = effects(state, now);
    match park(state, &out) {
        Some(parked) => Next { effects: vec![Effect::Append(vec![parked])], ..Next::default() },
        None => out,
    }
}

/// Computes the effects without a look at crashes.
pub(super) fn effects(state: &RunState, now: Timestamp) -> Next {
    let mut out = Next::default();
    if let Some(root) = &state.root
        && state.paused.is_none()
        && root.end.is_none()
    {
        brain(root, now, &mut Around::default(), &mut out);
        isolate(state, &mut out);
    }
    out
}

/// Visits a brain.
pub(super) fn brain<'a>(frame: &'a BrainFrame, now: Timestamp, around: &mut Around<'a>, out: &mut Next) {
    around.within(Bound::all_of(frame), |around| stage(frame, now, around, out));
}

fn stage<'a>(frame: &'a BrainFrame, now: Timestamp, around: &mut Around<'a>, out: &mut Next) {
    let Some(stage) = frame.current() else {
        out.effects.push(Effect::CompleteBrain { path: frame.path.clone() });
        return;
    };
    let path = || frame.path.stage(&stage.name);
    match &frame.stage {
        Stage::Ready => match stage.kind {
            StageKind::Step => out.effects.push(Effect::Step { path: path(), attempt: 0 }),
            StageKind::Loop if around.exhausted(Before::Iteration) => out.held = true,
            // Without a request for more, the loop begins nevertheless, and ends before it calls a model.
            StageKind::Loop if around.asks_for_more(Before::Iteration, now, out) => {}
            StageKind::Loop => out.effects.push(Effect::Prepare { path: path(), iteration: 0 }),
            StageKind::Brain if nests_too_deep(&path()) => {
                fail(frame, Failure { code: EndReason::Brain, message: too_deep(&path()), retryable: false }, out);
            }
            StageKind::Brain => out.effects.push(Effect::StartBrain { path: path() }),
        },
        Stage::Step(step) if step.held && around.exhausted(Before::Request) => out.held = true,
        Stage::Step(step) if step.held && around.asks_for_more(Before::Request, now, out) => {}
        Stage::Step(step) => {
            if startable(step.intent, now, out) {
                out.effects.push(Effect::Step { path: path(), attempt: step.intent.next_attempt(step.attempt) });
            }
        }
        Stage::Loop(inner) => one_loop(inner, now, around, out),
        Stage::Brain(inner) => match &inner.end {
            None => brain(inner, now, around, out),
            Some(BrainEnd::Completed(_)) => out.effects.push(Effect::FinishBrain { path: path() }),
            Some(BrainEnd::Failed(failure)) => fail(
                frame,
                Failure {
                    code: EndReason::Brain,
                    message: format!("the brain `{}` failed: {}", path(), failure.message),
                    retryable: failure.retryable,
                },
                out,
            ),
            Some(BrainEnd::Cancelled) => {}
        },
        Stage::Failed(failure) => fail(frame, failure.clone(), out),
    }
}

/// The maximum nesting of open brains. A snapshot with more could not be read, since JSON parsers limit
/// the depth.
const DEEPEST: usize = 16;

/// Returns whether a brain at this path would exceed the maximum nesting.
pub(super) fn nests_too_deep(path: &Path) -> bool {
    let mut brains = 1;
    let mut staged = false;
    for segment in path.segments() {
        let stage = matches!(segment, Segment::Stage(_));
        brains += usize::from((stage && staged) || matches!(segment, Segment::Call(..)));
        staged = stage;
    }
    // The last segment is the brain that would begin; a call is already counted.
    brains + usize::from(staged) > DEEPEST
}

pub(super) fn too_deep(path: &Path) -> String {
    format!("the brain `{path}` cannot begin: it would exceed the maximum nesting of {DEEPEST} brains")
}

fn fail(frame: &BrainFrame, failure: Failure, out: &mut Next) {
    out.effects.push(Effect::Append(vec![NewEvent::new(frame.path.clone(), EventKind::BrainError(failure))]));
}

/// Returns whether an effect can start now, and records a later start time.
pub(super) fn startable(intent: Intent, now: Timestamp, out: &mut Next) -> bool {
    match intent {
        Intent::Ready | Intent::Doubtful => true,
        Intent::Running => false,
        Intent::Backoff(due) if due <= now => true,
        Intent::Backoff(due) => {
            out.wake_at(due);
            false
        }
    }
}

fn one_loop<'a>(frame: &'a LoopFrame, now: Timestamp, around: &mut Around<'a>, out: &mut Next) {
    if let Some((iteration, outcome)) = &frame.wrap_up {
        // There is no iteration after the summary.
        let is_over = matches!(frame.phase, LoopPhase::Prepare) && frame.iteration > *iteration;
        if is_over || matches!(frame.phase, LoopPhase::Answered) {
            out.effects.push(Effect::CloseLoop { path: frame.path.clone(), outcome: outcome.clone() });
            return;
        }
    }
    if let Some(stopped) = frame.stopped() {
        out.effects.push(Effect::Append(vec![stopped]));
        return;
    }
    if limits_bind(frame).is_some_and(|before| around.at_limit(frame, before, now, out)) {
        return;
    }
    match &frame.phase {
        LoopPhase::Prepare => {
            if around.exhausted(Before::Iteration) {
                out.held = true;
            } else {
                out.effects.push(Effect::Prepare { path: frame.path.clone(), iteration: frame.iteration });
            }
        }
        LoopPhase::Ask { attempt, intent } => {
            if around.exhausted(Before::Request) {
                out.held |= startable(*intent, now, &mut Next::default());
            } else if startable(*intent, now, out) {
                out.effects.push(Effect::Ask { path: frame.path.iteration(frame.iteration), attempt: *attempt });
            }
        }
        LoopPhase::Answered => {
            if frame.asks_again() && !frame.exits {
                out.effects.push(engine_message(frame, EMPTY.to_owned()));
            } else if frame.exits {
                out.effects.push(engine_message(frame, nudge(frame)));
            } else {
                let outcome = LoopOutcome::Answered;
                out.effects.push(Effect::CloseLoop { path: frame.path.clone(), outcome });
            }
        }
        LoopPhase::Batch => {
            let before = out.effects.len();
            around.within([Bound::Loop(frame)], |around| batch::next(frame, now, around, out));
            if out.effects.len() == before && batch::is_blocked_by_limit(frame) {
                around.at_limit(frame, Before::Iteration, now, out);
            }
        }
        LoopPhase::Ending(_) if frame.wraps_up().is_some() => {
            out.effects.push(engine_message(frame, summary_request(frame)));
        }
        LoopPhase::Ending(outcome) => {
            out.effects.push(Effect::CloseLoop { path: frame.path.clone(), outcome: outcome.clone() });
        }
    }
}

/// Sends the model a message from the engine.
fn engine_message(frame: &LoopFrame, text: String) -> Effect {
    let message = EventKind::LoopMessage {
        text,
        files: Vec::new(),
        message_id: None,
        from: Speaker::Engine,
        signal: None,
        actor: crate::record::Actor::default(),
    };
    Effect::Append(vec![NewEvent::new(frame.path.clone(), message)])
}

/// Returns the message after a text answer in a loop that only an exit tool can end.
fn nudge(frame: &LoopFrame) -> String {
    match exits(frame) {
        none if none.is_empty() => "Call a tool. Text alone does not finish this task.".to_owned(),
        exits => format!("Call a tool. Text alone does not finish this task: when it is done, call {exits}."),
    }
}

/// Returns the message that requests a summary at a limit.
fn summary_request(frame: &LoopFrame) -> String {
    let how = match exits(frame) {
        none if none.is_empty() => "Answer".to_owned(),
        exits => format!("Call {exits}"),
    };
    format!(
        "The limit of this task is reached, and this is your last answer. No other tools are available. {how} with what you have so \
         far, and say what is missing."
    )
}

fn exits(frame: &LoopFrame) -> String {
    let tools = frame.prepared.tools.tools().iter().filter(|tool| tool.flags.exit);
    tools.map(|tool| format!("`{}`", tool.id.wire_name())).collect::<Vec<_>>().join(" or ")
}

/// A limit applies before the next model call: calls of the last answer are executed first, so that an exit
/// tool in the iteration that uses the last token still ends its loop.
fn limits_bind(frame: &LoopFrame) -> Option<Before> {
    match &frame.phase {
        LoopPhase::Prepare => Some(Before::Iteration),
        LoopPhase::Ask { attempt: 0, intent } if frame.iteration == 0 && *intent != Intent::Running => {
            Some(Before::FirstRequest)
        }
        LoopPhase::Ask { intent, .. } => (*intent != Intent::Running).then_some(Before::Request),
        LoopPhase::Answered => frame.exits.then_some(Before::Request),
        LoopPhase::Batch | LoopPhase::Ending(_) => None,
    }
}
