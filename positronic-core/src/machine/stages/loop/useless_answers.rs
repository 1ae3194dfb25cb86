//! Useless answers: which are retried, and when they end their loop.
//!
//! A refusal, a filtered answer and a cut-off one would recur, so each ends the loop. An empty one
//! and cut-off calls may improve: `answer_retries` of the limits says how often in a row they are retried.

use crate::machine::frames::{LoopFrame, LoopPhase};
use crate::record::{AnswerFault, CODE, EventKind, NewEvent, Part, ResponseMetadata};

/// Records the fault of an answer, if it has one.
pub(super) fn record_fault(frame: &mut LoopFrame, parts: &[Part], metadata: &ResponseMetadata) {
    let limit = frame.prepared.settings.max_output_tokens;
    frame.fault = match metadata.provider == CODE {
        // Code without a call has no fault of a model.
        true => None,
        false => AnswerFault::of(parts, &metadata.finish, limit),
    };
    frame.faults = if frame.fault.is_some() { frame.faults.saturating_add(1) } else { 0 };
}

/// Resets the count after a successful call.
pub(super) fn progressed(frame: &mut LoopFrame) {
    if matches!(frame.fault, Some(AnswerFault::Length { .. })) {
        (frame.fault, frame.faults) = (None, 0);
    }
}

/// Returns whether the model is asked again after an empty answer.
pub(super) fn asks_again(frame: &LoopFrame) -> bool {
    matches!((&frame.phase, &frame.fault), (LoopPhase::Answered, Some(AnswerFault::Empty { .. }))) && !is_stopped(frame)
}

fn is_stopped(frame: &LoopFrame) -> bool {
    let again = frame.faults <= frame.limits.answer_retries;
    match (&frame.phase, &frame.fault) {
        (LoopPhase::Answered | LoopPhase::Prepare, Some(AnswerFault::Refused | AnswerFault::Filtered)) => true,
        (LoopPhase::Answered, Some(AnswerFault::Length { .. })) => true,
        (LoopPhase::Answered, Some(AnswerFault::Empty { .. })) => !again,
        (LoopPhase::Prepare, Some(AnswerFault::Length { .. })) => !again,
        _ => false,
    }
}

/// Returns the event that ends the loop because of its last answer, if it does.
pub(super) fn stopped(frame: &LoopFrame) -> Option<NewEvent> {
    let cause = frame.fault.clone().filter(|_| is_stopped(frame))?;
    let mut message = cause.sentence(&format!("the model of the loop `{}`", frame.path));
    if matches!(frame.phase, LoopPhase::Prepare) || matches!(cause, AnswerFault::Empty { .. }) {
        let times = frame.faults;
        message = if times > 1 { format!("{message}, {times} times in a row") } else { message };
    }
    Some(NewEvent::new(frame.path.clone(), EventKind::LoopStopped { cause, message }))
}
