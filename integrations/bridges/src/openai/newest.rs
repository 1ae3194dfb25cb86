//! What a client says last: a user's message, or the results of calls of its own tools. The history before it only finds the conversation.

use positronic_core::record::sha256;
use positronic_server::Problem;
use positronic_server::extension::CallResult;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::invalid;

/// A message of a chat, or an item of the Responses API.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "OpenAiMessage")]
pub(super) struct SaidMessage {
    role: String,
    /// A text, or a list of parts with texts.
    content: Value,
    /// The calls of an assistant.
    tool_calls: Option<Vec<SaidCall>>,
    /// The call of which a message of the role `tool` is the result.
    tool_call_id: Option<String>,
    /// The kind of an item: a message by default, `function_call`, or `function_call_output`.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// The call of an item.
    call_id: Option<String>,
    /// The result of a call: a text, or a list of parts with texts.
    output: Value,
}

/// A call of a message.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "OpenAiSaidCall")]
struct SaidCall {
    id: String,
}

/// Who says an entry of a history.
const USER: &str = "user";
const ASSISTANT: &str = "assistant";
const CALL: &str = "call";
const RESULT: &str = "result";

/// An entry of a history: who says it, and a text, the id of a call, or that with its result.
pub(super) type HistoryEntry = (String, String);

/// The newest input, and the history before it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Newest {
    pub(super) said: NewestInput,
    pub(super) before: Vec<HistoryEntry>,
}

/// The newest input of a client.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NewestInput {
    /// A user's message.
    Message(String),
    /// The results of calls.
    Results(Vec<CallResult>),
}

impl SaidMessage {
    pub(super) fn of_user(text: &str) -> Self {
        Self { role: USER.to_owned(), content: text.into(), ..Self::default() }
    }

    /// Returns the result that it is, as a call and its text; `None` for the text if it has other parts.
    fn result(&self) -> Option<(&str, Option<String>)> {
        match (self.kind.as_deref(), self.role.as_str()) {
            (Some("function_call_output"), _) => {
                Some((self.call_id.as_deref().unwrap_or_default(), text_of(&self.output)))
            }
            (_, "tool") => Some((self.tool_call_id.as_deref().unwrap_or_default(), text_of(&self.content))),
            _ => None,
        }
    }

    fn add_to(&self, history: &mut Vec<HistoryEntry>) {
        if let Some((call, text)) = self.result() {
            history.push(result_entry(call, &text.unwrap_or_default()));
            return;
        }
        let text = || text_of(&self.content).unwrap_or_default();
        match (self.kind.as_deref(), self.role.as_str()) {
            (Some("function_call"), _) => history.push((CALL.to_owned(), self.call_id.clone().unwrap_or_default())),
            (_, USER) => history.push((USER.to_owned(), text().trim().to_owned())),
            (_, ASSISTANT) => {
                let calls = self.tool_calls.iter().flatten().map(|call| call.id.as_str());
                add_answer(history, &text(), calls);
            }
            _ => {}
        }
    }
}

fn result_entry(call: &str, text: &str) -> HistoryEntry {
    (RESULT.to_owned(), format!("{call}\n{text}"))
}

/// Adds an assistant's text and calls to a history. The texts of one answer may come as several messages.
fn add_answer<'a>(history: &mut Vec<HistoryEntry>, text: &str, calls: impl IntoIterator<Item = &'a str>) {
    let (text, calls) = (text.trim(), calls.into_iter().map(|id| (CALL.to_owned(), id.to_owned())).collect::<Vec<_>>());
    match history.last_mut() {
        Some((role, known)) if role == ASSISTANT => {
            let between = if known.is_empty() || text.is_empty() { "" } else { "\n\n" };
            known.push_str(between);
            known.push_str(text);
        }
        _ if text.is_empty() && !calls.is_empty() => {}
        _ => history.push((ASSISTANT.to_owned(), text.to_owned())),
    }
    history.extend(calls);
}

impl Newest {
    /// Returns the id of a message: the same one if a client sends the request again.
    pub(super) fn id(&self, conversation: &str, text: &str) -> String {
        let message = json!([conversation, self.before, text]);
        format!("openai-{}", sha256(message.to_string().as_bytes()))
    }

    /// Returns the input with the user's messages right before it, which nothing answers; `None` if there are none.
    pub(super) fn with_unanswered(&self) -> Option<Self> {
        let NewestInput::Message(newest) = &self.said else { return None };
        let answered = self.before.iter().rposition(|(role, _)| role != USER).map_or(0, |last| last + 1);
        let (before, unanswered) = self.before.split_at(answered);
        let texts = unanswered.iter().map(|(_, text)| text).filter(|text| !text.is_empty()).chain([newest]);
        let said = NewestInput::Message(texts.map(String::as_str).collect::<Vec<_>>().join("\n\n"));
        (!unanswered.is_empty()).then(|| Self { said, before: before.to_vec() })
    }

    /// Returns whether an assistant has answered before.
    pub(super) fn has_answers(&self) -> bool {
        self.before.iter().any(|(role, _)| role == ASSISTANT || role == CALL)
    }

    /// Returns the calls of the last answer, if nothing but the newest input follows it.
    pub(super) fn last_calls(&self) -> Vec<String> {
        let calls = self.before.iter().rev().take_while(|(role, _)| role == CALL);
        calls.map(|(_, id)| id.clone()).collect()
    }

    /// Returns the history up to an answer to it, which may have calls.
    pub(super) fn answered<'a>(&self, text: &str, calls: impl IntoIterator<Item = &'a str>) -> Vec<HistoryEntry> {
        let mut history = self.unanswered();
        add_answer(&mut history, text, calls);
        history
    }

    /// Returns the history with the newest input.
    pub(super) fn unanswered(&self) -> Vec<HistoryEntry> {
        let mut history = self.before.clone();
        match &self.said {
            NewestInput::Message(text) => history.push((USER.to_owned(), text.trim().to_owned())),
            NewestInput::Results(results) => {
                history.extend(
                    results.iter().map(|result| result_entry(&result.call, result.result.as_str().unwrap_or_default())),
                );
            }
        }
        history
    }
}

/// Reads the newest input in a list of messages.
pub(super) fn newest(messages: &[SaidMessage], param: &str) -> Result<Newest, Problem> {
    let results = messages.iter().rev().take_while(|message| message.result().is_some()).count();
    let (before, last) = messages.split_at(messages.len() - results.max(usize::from(!messages.is_empty())));
    let mut history = Vec::new();
    for message in before {
        message.add_to(&mut history);
    }
    let said = if results > 0 {
        NewestInput::Results(results_of(last, param)?)
    } else {
        NewestInput::Message(message_of(last, param)?)
    };
    Ok(Newest { said, before: history })
}

fn message_of(last: &[SaidMessage], param: &str) -> Result<String, Problem> {
    let Some(last) = last.first().filter(|last| last.role == USER) else {
        return Err(invalid(param, "the last message has to be one of the user, or the result of a call"));
    };
    let text = text_of(&last.content).ok_or_else(|| invalid(param, "a bridge takes messages of text only"))?;
    if text.trim().is_empty() {
        return Err(invalid(param, "the message of the user is empty"));
    }
    Ok(text)
}

fn results_of(last: &[SaidMessage], param: &str) -> Result<Vec<CallResult>, Problem> {
    let mut results: Vec<CallResult> = Vec::new();
    for (call, text) in last.iter().filter_map(SaidMessage::result) {
        let text = text.ok_or_else(|| invalid(param, &format!("the result of the call `{call}` is not a text")))?;
        if results.iter().any(|known| known.call == call) {
            return Err(invalid(param, &format!("the call `{call}` has two results")));
        }
        results.push(CallResult { call: call.to_owned(), result: Value::String(text) });
    }
    Ok(results)
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

#[cfg(test)]
mod tests {
    use positronic_server::ProblemType;

    use super::*;

    fn read(messages: Value) -> Result<Newest, Problem> {
        newest(&serde_json::from_value::<Vec<SaidMessage>>(messages).unwrap(), "messages")
    }

    fn entry(role: &str, text: &str) -> HistoryEntry {
        (role.to_owned(), text.to_owned())
    }

    #[test]
    fn newest_message_has_the_texts_before_it_without_system_texts() {
        let parts = json!([{ "type": "text", "text": "and" }, { "type": "text", "text": "you?" }]);
        let newest = read(json!([
            { "role": "system", "content": "Obey." },
            { "role": "user", "content": "hello" },
            { "role": "assistant", "content": "Hi. " },
            { "role": "user", "content": parts },
        ]));

        let newest = newest.unwrap();
        assert_eq!(newest.said, NewestInput::Message("and\nyou?".to_owned()));
        assert_eq!(newest.before, [entry(USER, "hello"), entry(ASSISTANT, "Hi.")]);
        let image = json!([{ "role": "user", "content": [{ "type": "image_url" }] }]);
        assert_eq!(read(image).unwrap_err().kind(), ProblemType::InvalidBody);
        assert_eq!(read(json!([])).unwrap_err().kind(), ProblemType::InvalidBody);
    }

    #[test]
    fn history_of_both_apis_is_that_of_the_answer() {
        let chat = read(json!([
            { "role": "user", "content": "hello" },
            { "role": "assistant", "content": null, "tool_calls": [{ "id": "a" }, { "id": "b" }] },
            { "role": "tool", "tool_call_id": "a", "content": "1" },
            { "role": "tool", "tool_call_id": "b", "content": [{ "type": "text", "text": "2" }] },
        ]));
        let items = read(json!([
            { "role": "user", "content": "hello" },
            { "type": "reasoning" },
            { "type": "function_call", "call_id": "a", "name": "x", "arguments": "{}" },
            { "type": "function_call", "call_id": "b", "name": "x", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "a", "output": "1" },
            { "type": "function_call_output", "call_id": "b", "output": "2" },
        ]));
        let first = read(json!([{ "role": "user", "content": "hello" }])).unwrap();

        let chat = chat.unwrap();
        assert_eq!(chat, items.unwrap());
        assert_eq!(chat.before, first.answered("", ["a", "b"]));
        assert_eq!(chat.last_calls(), ["b", "a"]);
        let next = read(json!([
            { "role": "user", "content": "hello" },
            { "role": "assistant", "tool_calls": [{ "id": "a" }, { "id": "b" }] },
            { "role": "tool", "tool_call_id": "a", "content": "1" },
            { "role": "tool", "tool_call_id": "b", "content": "2" },
            { "role": "assistant", "content": "One" },
            { "role": "assistant", "content": "and two." },
            { "role": "user", "content": "thanks" },
        ]));
        assert_eq!(next.unwrap().before, chat.answered("One\n\nand two.", []));
    }

    #[test]
    fn call_has_one_result_of_text() {
        let twice = json!([{ "role": "tool", "tool_call_id": "a", "content": "1" }, { "role": "tool", "tool_call_id": "a", "content": "1" }]);
        let image = json!([{ "role": "tool", "tool_call_id": "a", "content": [{ "type": "image_url" }] }]);

        assert_eq!(read(twice).unwrap_err().kind(), ProblemType::InvalidBody);
        assert_eq!(read(image).unwrap_err().kind(), ProblemType::InvalidBody);
    }
}
