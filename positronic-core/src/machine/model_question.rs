//! Questions that a step, or a plugin that prepares an iteration, asks a model.
//!
//! [`ask`] answers a question from the log if a rerun asks it again, and otherwise returns the intent under which it is
//! sent. [`answered`] and [`failed`] convert what comes of the request into events.

use std::time::Duration;

use super::limits::{LimitVerdict, may_ask};
use super::settle::inputs::Inputs;
use super::stages::{Frame, question_hash};
use super::{LoopPhase, OpenQuestion, RunState};
use crate::record::{EventKind, ModelError, ModelResponse, NewEvent, Path, Question, ResponseMetadata, Segment};

/// What to do with a question.
pub(crate) enum Asking {
    /// The log has the answer to the question with this index.
    Recorded(usize, ModelResponse),
    /// Appends the intent and sends the question.
    Send(usize, NewEvent),
    /// A limit does not allow it: appends the events and stops the step or the plugin.
    Blocked(Vec<NewEvent>),
    /// The asker gets this error.
    Refused(String),
}

/// Decides about a question of the step or iteration at `asks`, for the model with this name. `is_used` says which
/// recorded questions this attempt has asked already, `in_flight` which requests are under way.
pub(crate) fn ask(
    state: &RunState,
    asks: &Path,
    question: Question,
    model: String,
    is_used: impl Fn(usize) -> bool,
    in_flight: impl Fn(&Path) -> bool,
) -> Asking {
    if !is_in_time(state, asks) {
        return Asking::Refused("a plugin can ask a model only before its iteration begins".to_owned());
    }
    let asker = state.owner(asks).and_then(|brain| brain.stage.frame());
    let recorded = asker.map_or(&[][..], Frame::questions);
    let hash = question_hash(&question);
    let same = || recorded.iter().enumerate().filter(|(index, asked)| asked.hash == hash && !is_used(*index));
    if let Some((index, answer)) = same().find_map(|(index, asked)| Some((index, response(asked)?))) {
        return Asking::Recorded(index, answer);
    }
    match may_ask(state, asks) {
        LimitVerdict::Allowed => {}
        LimitVerdict::Blocked => return Asking::Blocked(blocked(asks)),
        LimitVerdict::Refused(reason) => return Asking::Refused(reason),
    }
    // A question whose answer was lost with its worker is sent again under its number.
    let lost = same().find(|(index, asked)| asked.answer.is_none() && !in_flight(&path_of(asks, *index)));
    let index = lost.map_or(recorded.len(), |(index, _)| index);
    let intent = EventKind::LoopModelCall { attempt: 0, model, question: Some(question) };
    Asking::Send(index, NewEvent::new(path_of(asks, index), intent))
}

/// Returns the event of an answer.
pub(super) fn answered(path: &Path, response: ModelResponse, duration: Duration) -> Vec<NewEvent> {
    let kind = EventKind::LoopModelResult { parts: response.parts.into(), metadata: response.metadata, duration };
    vec![NewEvent::new(path.clone(), kind)]
}

/// Returns the event by which a failed question is sent again; none if its asker gets the error.
pub(super) fn failed(path: &Path, error: ModelError, attempt: u32, inputs: &Inputs) -> Vec<NewEvent> {
    let Some(pause) = inputs.retry.delay(&error, attempt, inputs.jitter) else { return Vec::new() };
    let due = inputs.now.after(pause);
    vec![NewEvent::new(path.clone(), EventKind::LoopModelRetry { attempt, error, due })]
}

/// Returns the path of a question. Those of an iteration share its path, since they are asked one after the other.
fn path_of(asks: &Path, index: usize) -> Path {
    match asks.last() {
        Some(Segment::Iteration(_)) => asks.clone(),
        _ => asks.iteration(u32::try_from(index).unwrap_or(u32::MAX)),
    }
}

fn response(asked: &OpenQuestion) -> Option<ModelResponse> {
    let metadata = ResponseMetadata { finish: asked.finish.clone(), ..ResponseMetadata::default() };
    Some(ModelResponse { parts: asked.answer.as_ref()?.to_vec(), calls: Vec::new(), metadata })
}

/// Returns whether a question can be asked: a step's at any time, a plugin's until its iteration begins.
fn is_in_time(state: &RunState, asks: &Path) -> bool {
    let Some(Segment::Iteration(iteration)) = asks.last() else { return true };
    state.loop_at(asks).is_some_and(|frame| frame.iteration == iteration && matches!(frame.phase, LoopPhase::Prepare))
}

/// Returns the events of a question that a limit does not allow: a step is blocked, while the limit itself ends the loop of
/// an iteration.
fn blocked(asks: &Path) -> Vec<NewEvent> {
    match asks.last() {
        Some(Segment::Iteration(_)) => Vec::new(),
        _ => vec![NewEvent::new(asks.clone(), EventKind::StepBlocked {})],
    }
}
