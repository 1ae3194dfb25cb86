//! What clients of OpenAI's API send, as far as it is read. What would change what the brain does is refused.

use std::collections::BTreeMap;

use positronic_core::record::CallerTool;
use positronic_server::Problem;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::caller_tools::{GivenTools, caller_tools};
use super::error::{invalid, unsupported};
use super::newest::{Newest, SaidMessage, newest};

/// A request for a chat completion.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "OpenAiCompletionRequest")]
pub(super) struct CompletionRequest {
    /// The title of a brain.
    pub(super) model: String,
    /// The newest one goes to the run, or the results of the last calls do. Those before only find the conversation; system texts are not read.
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
    /// The caller's own tools, functions only: a brain whose loop takes them calls them, and the answer is their calls.
    #[serde(default)]
    tools: Option<Vec<Value>>,
    /// `auto` or `none`.
    #[serde(default)]
    tool_choice: Option<Value>,
    /// `true`: an answer may have several calls.
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    #[serde(flatten)]
    #[schemars(skip)]
    rest: BTreeMap<String, Value>,
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
    /// A text, or a list of items, of which the newest user's message goes to the run, or the outputs of the last calls do.
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
    /// The caller's own tools, functions only: a brain whose loop takes them calls them, and the answer is their calls.
    #[serde(default)]
    tools: Option<Vec<Value>>,
    /// `auto` or `none`.
    #[serde(default)]
    tool_choice: Option<Value>,
    /// `true`: an answer may have several calls.
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    #[serde(flatten)]
    #[schemars(skip)]
    rest: BTreeMap<String, Value>,
}

impl CompletionRequest {
    /// Refuses what the bridge does not do.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if let Some(n) = self.rest.get("n").filter(|n| !n.is_null() && n.as_u64() != Some(1)) {
            return Err(unsupported("n", &format!("a run has one answer, not {n}")));
        }
        if self.rest.get("modalities").is_some_and(|given| !given.is_null() && *given != json!(["text"])) {
            return Err(unsupported("modalities", "an answer is a text"));
        }
        check(&self.rest, "response_format")
    }

    /// Returns the newest input.
    pub(super) fn newest(&self) -> Result<Newest, Problem> {
        newest(&self.messages, "messages")
    }

    /// Returns the caller's tools.
    pub(super) fn caller_tools(&self) -> Result<Vec<CallerTool>, Problem> {
        let Self { tools, tool_choice, parallel_tool_calls, .. } = self;
        let given =
            GivenTools { tools: tools.as_deref(), choice: tool_choice.as_ref(), parallel: *parallel_tool_calls };
        caller_tools(&given, Some("function"))
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
        let included = self.rest.get("include").and_then(Value::as_array);
        if included.is_some_and(|included| included.contains(&json!("message.output_text.logprobs"))) {
            return Err(unsupported("include", NO_LOGPROBS));
        }
        check(&self.rest, "response_format")
    }

    /// Returns the caller's tools.
    pub(super) fn caller_tools(&self) -> Result<Vec<CallerTool>, Problem> {
        let Self { tools, tool_choice, parallel_tool_calls, .. } = self;
        let given =
            GivenTools { tools: tools.as_deref(), choice: tool_choice.as_ref(), parallel: *parallel_tool_calls };
        caller_tools(&given, None)
    }

    /// Returns the newest input.
    pub(super) fn newest(&self) -> Result<Newest, Problem> {
        if let Value::String(text) = &self.input {
            return newest(&[SaidMessage::of_user(text)], "input");
        }
        let items = Vec::<SaidMessage>::deserialize(&self.input);
        let items = items.map_err(|error| invalid("input", &format!("expected a text or messages: {error}")))?;
        newest(&items, "input")
    }
}

const NO_LOGPROBS: &str = "an answer has no probabilities of tokens";

/// Parameters that would change the answer in a way that a run has no counterpart for.
const UNSUPPORTED: [(&str, &str); 6] = [
    ("functions", "give the tools in `tools`"),
    ("logprobs", NO_LOGPROBS),
    ("prompt", "the brain's author wrote its prompts"),
    ("stop", "the brain decides where its answer ends"),
    ("top_logprobs", NO_LOGPROBS),
    ("web_search_options", "the brain has its own tools"),
];

/// Refuses what the bridge does not do in both APIs.
fn check(rest: &BTreeMap<String, Value>, format: &str) -> Result<(), Problem> {
    let asks_for_nothing =
        |given: &Value| given.is_null() || [json!(false), json!(0), json!(""), json!([])].contains(given);
    for (param, why) in UNSUPPORTED {
        if rest.get(param).is_some_and(|given| !asks_for_nothing(given)) {
            return Err(unsupported(param, why));
        }
    }
    let kind = rest.get(format).and_then(|format| format.get("type")).and_then(Value::as_str);
    if kind.is_some_and(|kind| kind != "text") {
        return Err(unsupported(format, "the brain decides the format of its answer"));
    }
    Ok(())
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
    fn formats_and_several_answers_are_refused_and_sampling_is_ignored() {
        for (more, param) in [
            (json!({ "functions": [{ "name": "x" }] }), "functions"),
            (json!({ "response_format": { "type": "json_object" } }), "response_format"),
            (json!({ "n": 2 }), "n"),
            (json!({ "stop": ["."] }), "stop"),
            (json!({ "logprobs": true }), "logprobs"),
            (json!({ "modalities": ["text", "audio"] }), "modalities"),
            (json!({ "web_search_options": {} }), "web_search_options"),
        ] {
            assert_eq!(completion(&more).check().unwrap_err().document()["param"], param);
        }
        let plain = json!({
            "temperature": 0.5, "max_tokens": 7, "tools": [], "n": 1, "response_format": { "type": "text" }, "stop": null,
            "logprobs": false, "modalities": ["text"], "store": false,
        });
        assert!(completion(&plain).check().is_ok());
        for (more, param) in [
            (json!({ "prompt": { "id": "a" } }), "prompt"),
            (json!({ "include": ["message.output_text.logprobs"] }), "include"),
            (json!({ "text": { "format": { "type": "json_object" } } }), "text"),
        ] {
            let mut body = json!({ "model": "Chat", "input": "hello" });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let request: ResponseRequest = serde_json::from_value(body).unwrap();
            assert_eq!(request.check().unwrap_err().document()["param"], param);
        }
    }

    #[test]
    fn tools_are_functions_that_the_model_may_call() {
        let function = json!({ "name": "look", "description": "Looks", "parameters": { "properties": {} } });
        let tool = || json!([{ "type": "function", "function": function }]);
        let tools = |more: Value| completion(&more).caller_tools();

        let given = tools(json!({ "tools": tool(), "tool_choice": "auto" })).unwrap();
        assert_eq!((given[0].id().as_str(), given[0].description()), ("look", "Looks"));
        assert!(tools(json!({ "tools": tool(), "tool_choice": "none" })).unwrap().is_empty());
        for (more, param) in [
            (json!({ "tools": [{ "type": "web_search" }] }), "tools"),
            (json!({ "tools": [{ "type": "function", "function": { "name": "no spaces" } }] }), "tools"),
            (json!({ "tools": tool(), "tool_choice": "required" }), "tool_choice"),
            (json!({ "tool_choice": "required" }), "tool_choice"),
            (json!({ "tools": tool(), "parallel_tool_calls": false }), "parallel_tool_calls"),
        ] {
            assert_eq!(tools(more).unwrap_err().document()["param"], param);
        }
        let flat = json!({ "model": "Chat", "input": "hello", "tools": [{ "type": "function", "name": "look" }] });
        let flat: ResponseRequest = serde_json::from_value(flat).unwrap();
        assert_eq!(flat.caller_tools().unwrap()[0].id().as_str(), "look");
    }
}
