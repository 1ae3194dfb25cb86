//! Requests to models, rebuilt from the log.

use crate::machine::{IllegalEvent, LoopFrame, RejectedAnswer, RunState};
use crate::record::{
    Assistant, Event, EventKind, Message, Misfit, ModelRequest, Output, Part, Path, PausedAnswer, Question, Seq,
    Transcript,
};

use super::earlier_turns::History;
use super::messages::said;
use super::prompts::Prompts;
use super::structured_actions::structured_request;

/// The reason why a request cannot be rebuilt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The event sends no request.
    #[error("event {seq} sends no request; a request is sent by a LOOP_MODEL_CALL")]
    NoRequest {
        /// The event.
        seq: Seq,
    },
    /// The log does not follow the engine's rules.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
}

/// Rebuilds the request of the `LOOP_MODEL_CALL` with this number.
///
/// # Errors
///
/// [`RequestError::NoRequest`] if the event is another one, [`RequestError::Illegal`] if the log is damaged.
pub fn request_at<'a>(events: impl IntoIterator<Item = &'a Event>, seq: Seq) -> Result<ModelRequest, RequestError> {
    request_for(events, seq, Vec::new(), |_| None)
}

/// Rebuilds a request as [`request_at`] does, for a run with a conversation's `history`
/// ([`Client::history`](crate::runner::Client::history)) or for a model with a projection of its own, `project`.
///
/// # Errors
///
/// As [`request_at`].
pub fn request_for<'a>(
    events: impl IntoIterator<Item = &'a Event>,
    seq: Seq,
    history: impl Into<History>,
    project: impl FnMut(&[Output]) -> Option<Vec<Message>>,
) -> Result<ModelRequest, RequestError> {
    let mut state = RunState::default();
    let mut prompts = Prompts::after(history);
    for event in events {
        if event.seq == seq {
            let EventKind::LoopModelCall { attempt, question, .. } = &event.kind else { break };
            let path = event.path.clone();
            if let Some(question) = question {
                return Ok(question_request(path, *attempt, question));
            }
            let Some(frame) = state.loop_at(&path) else { break };
            let messages = prompts.transcript_by(&frame.path, project);
            return Ok(iteration_request(frame, path, *attempt, messages));
        }
        state.fold(event)?;
        prompts.apply(event);
    }
    Err(RequestError::NoRequest { seq })
}

/// Creates the request of a loop's current iteration.
pub(crate) fn iteration_request(frame: &LoopFrame, path: Path, attempt: u32, messages: Transcript) -> ModelRequest {
    let prepared = frame.prepared.request(path, attempt, messages);
    match &frame.prepared.settings.structured_actions {
        Some(actions) => structured_request(prepared, actions, &frame.refused),
        None if frame.refused.is_empty() => prepared,
        None => with_refusals(prepared, &frame.refused),
    }
}

/// Adds the answer that a guard has refused last. Later iterations do not get it.
fn with_refusals(request: ModelRequest, refused: &[RejectedAnswer]) -> ModelRequest {
    let mut messages: Vec<_> = request.messages.read().iter().map(|entry| entry.message.clone()).collect();
    // Each is sent to the next try only.
    if let Some(RejectedAnswer { parts, message, .. }) = refused.last() {
        let text = |part: &Part| match part {
            Part::Text { text } if !text.trim().is_empty() => Some(Assistant::Text { text: text.clone() }),
            _ => None,
        };
        let said: Vec<_> = parts.iter().filter_map(text).collect();
        let said = if said.is_empty() { vec![Assistant::Text { text: "(calls only)".to_owned() }] } else { said };
        messages.push(Message::assistant(said));
        let called = parts.iter().any(|part| matches!(part, Part::Call { .. }));
        let calls = if called { "None of its calls ran. " } else { "" };
        let refusal = format!("Your last answer was refused: {message}\n{calls}Answer again.");
        messages.push(Message::user(refusal));
    }
    ModelRequest { messages: Transcript::new(messages), ..request }
}

/// Creates the request of a question.
pub(crate) fn question_request(path: Path, attempt: u32, question: &Question) -> ModelRequest {
    let prepared = crate::machine::Prepared {
        system: question.system.as_str().into(),
        settings: std::sync::Arc::new(question.settings.clone()),
        ..crate::machine::Prepared::default()
    };
    let mut messages = vec![said(&question.text, &question.files)];
    for Misfit { answer, message } in &question.misfits {
        let is_silent = answer.trim().is_empty();
        let text = if is_silent { "(no answer)".to_owned() } else { answer.clone() };
        messages.push(Message::assistant(vec![Assistant::Text { text }]));
        messages.push(Message::user(format!(
            "That answer does not match the schema: {message}. Answer again with JSON that matches it and nothing else."
        )));
    }
    messages.extend(question.so_far.iter().map(|PausedAnswer { parts, by }| Message::Assistant {
        parts: parts.iter().filter_map(Part::sent_back).collect(),
        by: by.clone(),
    }));
    prepared.request(path, attempt, Transcript::new(messages))
}
