//! What a client of the AI SDK posts, as far as it is read.

use std::collections::BTreeMap;

use positronic_server::{FieldError, Problem, ProblemType};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The body of `DefaultChatTransport`, with what a page adds to it (`body` of its options). Of the messages only the last one is read.
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
    /// Returns the last message if the user has sent it: its id and its text.
    ///
    /// # Errors
    ///
    /// `Unprocessable` if it has other parts than text.
    pub(super) fn newest(&self) -> Result<Option<(&str, String)>, Problem> {
        let Some((index, last)) = self.messages.iter().enumerate().next_back() else { return Ok(None) };
        if last.role != "user" {
            return Ok(None);
        }
        let mut texts = Vec::new();
        for (part, UiPart { kind, text, .. }) in last.parts.iter().enumerate() {
            match (kind.as_str(), text) {
                ("text", Some(text)) => texts.push(text.as_str()),
                _ => {
                    let detail = "a bridge takes messages of text only";
                    let errors = vec![FieldError::new(format!("/messages/{index}/parts/{part}"), detail)];
                    return Err(Problem::new(ProblemType::Unprocessable).detail(detail).errors(errors));
                }
            }
        }
        Ok(Some((&last.id, texts.join("\n"))))
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
