//! Useless answers: which are retried, and when they end their loop.
//!
//! A refusal, a filtered answer and a cut-off one would recur, so each ends the loop. An empty one
//! and cut-off calls may improve: `answer_retries` of the limits says how often in a row they are retried.

use crate::machine::frames::{LoopFrame, LoopPhase};
use crate::record::{AnswerFault, CODE, EventKind, NewEvent, Part, ResponseMetadata};

impl LoopFrame {
    /// Records the fault of an answer, if it has one.
    pub(in crate::machine) fn record_fault(&mut self, parts: &[Part], metadata: &ResponseMetadata) {
        let limit = self.prepared.settings.max_output_tokens;
        self.fault = match metadata.provider == CODE {
            // Code without a call has no fault of a model.
            true => None,
            false => AnswerFault::of(parts, &metadata.finish, limit),
        };
        self.faults = if self.fault.is_some() { self.faults.saturating_add(1) } else { 0 };
    }

    /// Resets the count after a successful call.
    pub(in crate::machine) fn progressed(&mut self) {
        if matches!(self.fault, Some(AnswerFault::Length { .. })) {
            (self.fault, self.faults) = (None, 0);
        }
    }

    /// Returns whether the model is asked again after an empty answer.
    pub(in crate::machine) fn asks_again(&self) -> bool {
        matches!((&self.phase, &self.fault), (LoopPhase::Answered, Some(AnswerFault::Empty { .. })))
            && !self.is_stopped()
    }

    fn is_stopped(&self) -> bool {
        let again = self.faults <= self.limits.answer_retries;
        match (&self.phase, &self.fault) {
            (LoopPhase::Answered | LoopPhase::Prepare, Some(AnswerFault::Refused | AnswerFault::Filtered)) => true,
            (LoopPhase::Answered, Some(AnswerFault::Length { .. })) => true,
            (LoopPhase::Answered, Some(AnswerFault::Empty { .. })) => !again,
            (LoopPhase::Prepare, Some(AnswerFault::Length { .. })) => !again,
            _ => false,
        }
    }

    /// Returns the event that ends the loop because of its last answer, if it does.
    pub(in crate::machine) fn stopped(&self) -> Option<NewEvent> {
        let cause = self.fault.clone().filter(|_| self.is_stopped())?;
        let mut message = cause.sentence(&format!("the model of the loop `{}`", self.path));
        if matches!(self.phase, LoopPhase::Prepare) || matches!(cause, AnswerFault::Empty { .. }) {
            let times = self.faults;
            message = if times > 1 { format!("{message}, {times} times in a row") } else { message };
        }
        Some(NewEvent::new(self.path.clone(), EventKind::LoopStopped { cause, message }))
    }
}

/// The message to a model whose answer was empty.
pub(in crate::machine) const EMPTY: &str = "Your last answer was empty. Answer, or call a tool.";
