//! Questions that a step, a plugin that prepares an iteration, or a guard of an answer or a call asks a model.
//!
//! [`ask`] answers a question from the log if a rerun asks it again, and otherwise returns the intent under which it is
//! sent. [`answered`] and [`failed`] convert what comes of the request into events.

use std::time::Duration;

use super::limits::{LimitVerdict, may_ask};
use super::settle::context::SettleContext;
use super::stages::{Frame, question_hash};
use super::{CallPhase, LoopPhase, OpenQuestion, RunState};
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
    let Some(place) = Place::of(state, asks) else {
        return Asking::Refused(
            "it is too late to ask a model: a plugin asks only before its iteration begins, a guard before its verdict"
                .to_owned(),
        );
    };
    let asker = state.owner(asks).and_then(|brain| brain.stage.frame());
    let recorded = asker.map_or(&[][..], Frame::questions);
    let hash = question_hash(&question);
    let same = || recorded.iter().enumerate().filter(|(index, asked)| asked.hash == hash && !is_used(*index));
    if let Some((index, answer)) = same().find_map(|(index, asked)| Some((index, response(asked)?))) {
        return Asking::Recorded(index, answer);
    }
    match may_ask(state, asks) {
        LimitVerdict::Allowed => {}
        LimitVerdict::Blocked => match place {
            Place::Step => return Asking::Blocked(vec![NewEvent::new(asks.clone(), EventKind::StepBlocked {})]),
            // The limit itself ends the loop.
            Place::Preparation => return Asking::Blocked(Vec::new()),
            // What it asks about would be lost with it.
            Place::Answer { .. } | Place::Call { .. } => {
                return Asking::Refused("the model is not called: its budget is used up".to_owned());
            }
        },
        LimitVerdict::Refused(reason) => return Asking::Refused(reason),
    }
    let index = match place {
        // The fold drops questions of a preparation that were not answered.
        Place::Preparation => recorded.iter().filter(|asked| asked.answer.is_some()).count(),
        // A question whose answer was lost with its worker is sent again under its number.
        Place::Step | Place::Answer { .. } | Place::Call { .. } => {
            let lost = same().find(|(index, asked)| asked.answer.is_none() && !in_flight(&place.path(asks, *index)));
            lost.map_or(recorded.len(), |(index, _)| index)
        }
    };
    let intent = EventKind::LoopModelCall { attempt: 0, model, question: Some(question) };
    Asking::Send(index, NewEvent::new(place.path(asks, index), intent))
}

/// Returns the event of an answer.
pub(super) fn answered(path: &Path, response: ModelResponse, duration: Duration) -> Vec<NewEvent> {
    let kind = EventKind::LoopModelResult { parts: response.parts.into(), metadata: response.metadata, duration };
    vec![NewEvent::new(path.clone(), kind)]
}

/// Returns the event by which a failed question is sent again; none if its asker gets the error.
pub(super) fn failed(path: &Path, error: ModelError, attempt: u32, context: &SettleContext) -> Vec<NewEvent> {
    let Some(pause) = context.retry.delay(&error, attempt, context.jitter) else { return Vec::new() };
    let due = context.now.after(pause);
    vec![NewEvent::new(path.clone(), EventKind::LoopModelRetry { attempt, error, due })]
}

/// What asks.
#[derive(Clone, Copy)]
enum Place {
    Step,
    /// A plugin that prepares an iteration.
    Preparation,
    /// A guard or a plugin that checks the answer of an iteration.
    Answer {
        iteration: u32,
    },
    /// A guard that checks the edited arguments or the output of a call of an iteration.
    Call {
        iteration: u32,
    },
}

impl Place {
    /// Returns what asks at a path, unless nothing can ask there now.
    fn of(state: &RunState, asks: &Path) -> Option<Self> {
        let of = |iteration| state.loop_at(asks).filter(|frame| frame.iteration == iteration);
        match asks.last()? {
            Segment::Stage(_) => Some(Self::Step),
            Segment::Iteration(iteration) => {
                matches!(of(iteration)?.phase, LoopPhase::Prepare).then_some(Self::Preparation)
            }
            Segment::Question(iteration, _) => of(iteration)?.is_asking().then_some(Self::Answer { iteration }),
            Segment::Call(iteration, _) => {
                matches!(state.call(asks)?.phase, CallPhase::Open(_)).then_some(Self::Call { iteration })
            }
        }
    }

    /// Returns the path of a question. Those of a preparation share its path, since they are asked one after the other.
    fn path(self, asks: &Path, index: usize) -> Path {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        match self {
            Self::Step => asks.iteration(index),
            Self::Preparation => asks.clone(),
            Self::Answer { iteration } | Self::Call { iteration } => {
                asks.parent().unwrap_or_default().question(iteration, index)
            }
        }
    }
}

fn response(asked: &OpenQuestion) -> Option<ModelResponse> {
    let metadata = ResponseMetadata { finish: asked.finish.clone(), ..ResponseMetadata::default() };
    Some(ModelResponse { parts: asked.answer.as_ref()?.to_vec(), calls: Vec::new(), metadata })
}
