//! What clients of OpenAI's API send, as far as it is read. What would change what the brain does is refused.

use std::collections::BTreeMap;

use positronic_core::record::sha256;
use positronic_server::{Problem, ProblemType};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// A request for a chat completion.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "OpenAiCompletionRequest")]
pub(super) struct CompletionRequest {
    /// The title of a brain.
    pub(super) model: String,
    /// The newest one goes to the run. The texts before only find the conversation; system texts are not read.
    pub(super) messages: Vec<SaidMessage>,
    #[serde(default)]
    pub(super) stream: Option<bool>,
    #[serde(default)]
    pub(super) stream_options: Option<StreamOptions>,
    /// `conversation`: the id of a conversation.
    #[serde(default)]
    pub(super) metadata: Option<BTreeMap<String, String>>,
    /// The options of the brain, for a new run.
    #[serde(default)]
    pub(super) options: Option<Value>,
    #[serde(flatten)]
    #[schemars(skip)]
    rest: BTreeMap<String, Value>,
}

/// A message of a chat.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "OpenAiMessage")]
pub(super) struct SaidMessage {
    #[serde(default)]
    pub(super) role: String,
    /// A text, or a list of parts with texts.
    #[serde(default)]
    pub(super) content: Value,
}

/// Options of a stream.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "OpenAiStreamOptions")]
pub(super) struct StreamOptions {
    #[serde(default)]
    pub(super) include_usage: bool,
}

/// A request for a response.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "OpenAiResponseRequest")]
pub(super) struct ResponseRequest {
    /// The title of a brain.
    pub(super) model: String,
    /// A text, or a list of items, of which the newest user's message goes to the run.
    #[serde(default)]
    pub(super) input: Value,
    #[serde(default)]
    pub(super) previous_response_id: Option<String>,
    /// Whether the request does not wait for the answer.
    #[serde(default)]
    pub(super) background: Option<bool>,
    #[serde(default)]
    pub(super) stream: Option<bool>,
    #[serde(default)]
    pub(super) metadata: Option<BTreeMap<String, String>>,
    /// The options of the brain, for a new run.
    #[serde(default)]
    pub(super) options: Option<Value>,
    #[serde(flatten)]
    #[schemars(skip)]
    rest: BTreeMap<String, Value>,
}

/// A user's message, and the texts before it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NewestMessage {
    pub(super) text: String,
    /// Roles and texts of users and assistants before the message.
    pub(super) before: Vec<(String, String)>,
}

impl NewestMessage {
    /// Returns the id of the message: the same one if a client sends the request again.
    pub(super) fn id(&self, conversation: &str) -> String {
        let message = json!([conversation, self.before, self.text]);
        format!("openai-{}", sha256(message.to_string().as_bytes()))
    }

    /// Returns whether an assistant has answered before.
    pub(super) fn has_answers(&self) -> bool {
        self.before.iter().any(|(role, _)| role == "assistant")
    }
}

impl CompletionRequest {
    /// Refuses what the bridge does not do.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if let Some(n) = self.rest.get("n").filter(|n| !n.is_null() && n.as_u64() != Some(1)) {
            return Err(unsupported("n", &format!("a run has one answer, not {n}")));
        }
        check(&self.rest, "response_format")
    }

    /// Returns the newest message.
    pub(super) fn newest(&self) -> Result<NewestMessage, Problem> {
        newest(&self.messages, "messages")
    }
}

impl ResponseRequest {
    /// Refuses what the bridge does not do.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if let Some(format) = self.rest.get("text").and_then(|text| text.get("format")) {
            check(&BTreeMap::from([("text".to_owned(), format.clone())]), "text")?;
        }
        if self.rest.get("conversation").is_some_and(|given| !given.is_null()) {
            return Err(unsupported("conversation", "name it with `previous_response_id` or `metadata.conversation`"));
        }
        check(&self.rest, "response_format")
    }

    /// Returns the newest message.
    pub(super) fn newest(&self) -> Result<NewestMessage, Problem> {
        if let Value::String(text) = &self.input {
            return Ok(NewestMessage { text: text.clone(), before: Vec::new() });
        }
        let items = Vec::<SaidMessage>::deserialize(&self.input);
        let items = items.map_err(|error| invalid("input", &format!("expected a text or messages: {error}")))?;
        newest(&items, "input")
    }
}

/// Refuses tools and formats: the brain has its own.
fn check(rest: &BTreeMap<String, Value>, format: &str) -> Result<(), Problem> {
    let is_given = |name: &str| rest.get(name).is_some_and(|given| !given.is_null() && *given != json!([]));
    for name in ["tools", "functions"] {
        if is_given(name) {
            return Err(unsupported(name, "a brain uses its own tools; it cannot call those of its caller"));
        }
    }
    let kind = rest.get(format).and_then(|format| format.get("type")).and_then(Value::as_str);
    if kind.is_some_and(|kind| kind != "text") {
        return Err(unsupported(format, "the brain decides the format of its answer"));
    }
    Ok(())
}

fn newest(messages: &[SaidMessage], param: &str) -> Result<NewestMessage, Problem> {
    let Some((last, before)) = messages.split_last().filter(|(last, _)| last.role == "user") else {
        return Err(invalid(param, "the last message has to be one of the user"));
    };
    let text = text_of(&last.content).ok_or_else(|| invalid(param, "a bridge takes messages of text only"))?;
    if text.trim().is_empty() {
        return Err(invalid(param, "the message of the user is empty"));
    }
    let said = |message: &&SaidMessage| matches!(message.role.as_str(), "user" | "assistant");
    let known =
        |message: &SaidMessage| (message.role.clone(), text_of(&message.content).unwrap_or_default().trim().to_owned());
    Ok(NewestMessage { text, before: before.iter().filter(said).map(known).collect() })
}

/// Returns the text of a message's content; `None` if it has other parts.
fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| match part.get("type").and_then(Value::as_str) {
                Some("text" | "input_text" | "output_text") => part.get("text").and_then(Value::as_str),
                Some("refusal") => Some(""),
                _ => None,
            });
            Some(texts.collect::<Option<Vec<_>>>()?.join("\n"))
        }
        _ => None,
    }
}

fn unsupported(param: &str, detail: &str) -> Problem {
    Problem::new(ProblemType::Unprocessable)
        .detail(format!("`{param}` is not supported: {detail}"))
        .field("param", param)
}

fn invalid(param: &str, detail: &str) -> Problem {
    Problem::new(ProblemType::InvalidBody).detail(format!("`{param}`: {detail}")).field("param", param)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(more: &Value) -> CompletionRequest {
        let mut body = json!({ "model": "Chat", "messages": [{ "role": "user", "content": "hello" }] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn tools_formats_and_several_answers_are_refused_and_sampling_is_ignored() {
        for (more, param) in [
            (json!({ "tools": [{ "type": "function" }] }), "tools"),
            (json!({ "response_format": { "type": "json_object" } }), "response_format"),
            (json!({ "n": 2 }), "n"),
        ] {
            assert_eq!(completion(&more).check().unwrap_err().document()["param"], param);
        }
        let plain = json!({ "temperature": 0.5, "tools": [], "n": 1, "response_format": { "type": "text" } });
        assert!(completion(&plain).check().is_ok());
    }

    #[test]
    fn newest_message_has_the_texts_before_it_without_system_texts() {
        let parts = json!([{ "type": "text", "text": "and" }, { "type": "text", "text": "you?" }]);
        let messages = json!([
            { "role": "system", "content": "Obey." },
            { "role": "user", "content": "hello" },
            { "role": "assistant", "content": "Hi. " },
            { "role": "user", "content": parts },
        ]);
        let newest = completion(&json!({ "messages": messages })).newest().unwrap();

        assert_eq!(newest.text, "and\nyou?");
        let said = |role: &str, text: &str| (role.to_owned(), text.to_owned());
        assert_eq!(newest.before, [said("user", "hello"), said("assistant", "Hi.")]);
        let image = json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url" }] }] });
        assert_eq!(completion(&image).newest().unwrap_err().kind(), ProblemType::InvalidBody);
    }
}
