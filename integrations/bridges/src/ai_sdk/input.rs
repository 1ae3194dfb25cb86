//! What a client of the AI SDK posts, as far as it is read.

use std::collections::BTreeMap;

use positronic_server::{FieldError, Problem, ProblemType};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::thread::EMPTY_MESSAGE;

/// The body of `DefaultChatTransport`, with what a page adds to it (`body` of its options). Of the messages only the last one is read,
/// with those of the user right before it.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AiSdkChatRequest")]
pub(super) struct ChatRequest {
    /// The chat: a conversation, or a run that began elsewhere.
    #[schemars(length(min = 1))]
    pub(super) id: String,
    pub(super) messages: Vec<UiMessage>,
    /// `submit-message` or `regenerate-message`, of which the second is refused: fork the run instead.
    #[serde(default)]
    pub(super) trigger: Option<String>,
    /// The options of the brain, for a new run.
    #[serde(default)]
    pub(super) options: Option<Value>,
    /// The answers to questions that are not approvals, by the ids of their `data-wait` parts.
    #[serde(default)]
    pub(super) answers: BTreeMap<String, Value>,
    /// The edited arguments of approved calls, by the ids of their approvals.
    #[serde(default, rename = "editedArguments")]
    pub(super) edited_arguments: BTreeMap<String, Value>,
}

/// A message.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AiSdkMessage")]
pub(super) struct UiMessage {
    pub(super) id: String,
    pub(super) role: String,
    #[serde(default)]
    pub(super) parts: Vec<UiPart>,
}

/// A part of a message.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AiSdkPart")]
pub(super) struct UiPart {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) text: Option<String>,
    /// The state of a call.
    #[serde(default)]
    pub(super) state: Option<String>,
    #[serde(default)]
    pub(super) approval: Option<UiApproval>,
}

impl UiMessage {
    /// Returns its text, or where and why it has none.
    fn text(&self) -> Result<String, (String, &'static str)> {
        let texts =
            self.parts.iter().enumerate().map(|(index, UiPart { kind, text, .. })| match (kind.as_str(), text) {
                ("text", Some(text)) => Ok(text.as_str()),
                _ => Err((format!("/{index}"), "a bridge takes messages of text only")),
            });
        let text = texts.collect::<Result<Vec<_>, _>>()?.join("\n");
        if text.trim().is_empty() { Err((String::new(), EMPTY_MESSAGE)) } else { Ok(text) }
    }
}

impl UiPart {
    fn has_ended(&self) -> bool {
        self.state.as_deref().is_some_and(|state| state.starts_with("output-"))
    }
}

/// The approval of a call.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AiSdkApproval")]
pub(super) struct UiApproval {
    pub(super) id: String,
    /// The decision; absent while the call waits for it.
    #[serde(default)]
    pub(super) approved: Option<bool>,
    #[serde(default)]
    pub(super) reason: Option<String>,
}

impl ChatRequest {
    /// Returns the messages of the user at the end of the list, each with its id. Of those before the last one, what was refused is
    /// left out.
    ///
    /// # Errors
    ///
    /// `Unprocessable` if the last one has other parts than text, or is empty.
    pub(super) fn said(&self) -> Result<Vec<(&str, String)>, Problem> {
        let mut said = Vec::new();
        let since = self.messages.iter().enumerate().rev();
        for (index, message) in since.take_while(|(_, message)| message.role == "user") {
            match message.text() {
                Ok(text) => said.push((message.id.as_str(), text)),
                Err((place, detail)) if index + 1 == self.messages.len() => {
                    let errors = vec![FieldError::new(format!("/messages/{index}/parts{place}"), detail)];
                    return Err(Problem::new(ProblemType::Unprocessable).detail(detail).errors(errors));
                }
                Err(_) => {}
            }
        }
        said.reverse();
        Ok(said)
    }

    /// Returns the approvals of the last message that the user has decided, if it is one of the assistant. A call that has ended was
    /// decided before.
    pub(super) fn decided(&self) -> impl Iterator<Item = (&UiApproval, bool)> {
        let last = self.messages.last().filter(|last| last.role == "assistant");
        let approvals = last
            .into_iter()
            .flat_map(|last| &last.parts)
            .filter(|part| !part.has_ended())
            .filter_map(|part| part.approval.as_ref());
        approvals.filter_map(|approval| Some((approval, approval.approved?)))
    }
}
