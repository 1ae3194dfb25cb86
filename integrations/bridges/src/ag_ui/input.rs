//! What a client of AG-UI posts, as far as it is read.

use positronic_server::{FieldError, Problem, ProblemType};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The input of a leg. Of the messages only the newest one is read; the state, the tools and the context are not.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgUiRunAgentInput")]
pub(super) struct RunAgentInput {
    /// The thread: a conversation, or a run that began elsewhere.
    pub(super) thread_id: String,
    /// The client's id of this leg.
    pub(super) run_id: String,
    #[serde(default)]
    pub(super) messages: Vec<InputMessage>,
    /// The answers to the interrupts of the leg before.
    #[serde(default)]
    pub(super) resume: Option<Vec<ResumeEntry>>,
    /// `options`: the options of the brain, for a new run.
    #[serde(default)]
    pub(super) forwarded_props: Value,
}

/// A message.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AgUiMessage")]
pub(super) struct InputMessage {
    pub(super) id: String,
    pub(super) role: String,
    /// A text, or a list of parts.
    #[serde(default)]
    pub(super) content: Value,
}

/// The answer to an interrupt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgUiResumeEntry")]
pub(super) struct ResumeEntry {
    pub(super) interrupt_id: String,
    pub(super) status: ResumeStatus,
    /// The answer. Without one, a `resolved` question stays open, and the client waits for what others decide.
    #[serde(default)]
    pub(super) payload: Value,
}

/// Whether a person has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "AgUiResumeStatus")]
pub(super) enum ResumeStatus {
    Resolved,
    /// The person has closed the question without an answer: it stays open.
    Cancelled,
}

impl ResumeEntry {
    /// Returns the answer; `None` if there is none.
    pub(super) fn answer(&self) -> Option<&Value> {
        (self.status == ResumeStatus::Resolved && !self.payload.is_null()).then_some(&self.payload)
    }
}

impl RunAgentInput {
    /// Returns the newest message if the user has sent it: its id and its text.
    ///
    /// # Errors
    ///
    /// `Unprocessable` if it has other parts than text.
    pub(super) fn newest(&self) -> Result<Option<(&str, String)>, Problem> {
        let Some((index, last)) = self.messages.iter().enumerate().next_back() else { return Ok(None) };
        if last.role != "user" {
            return Ok(None);
        }
        match text_of(&last.content) {
            Some(text) => Ok(Some((&last.id, text))),
            None => {
                let detail = "a bridge takes messages of text only";
                let errors = vec![FieldError::new(format!("/messages/{index}/content"), detail)];
                Err(Problem::new(ProblemType::Unprocessable).detail(detail).errors(errors))
            }
        }
    }
}

/// Returns the text of a message's content; `None` if it has other parts.
fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| match part.get("type").and_then(Value::as_str) {
                Some("text") => part.get("text").and_then(Value::as_str),
                _ => None,
            });
            Some(texts.collect::<Option<Vec<_>>>()?.join("\n"))
        }
        _ => None,
    }
}
