//! Encoder for chat completions requests.
//!
//! The body begins with the model and the messages: the system prompt, then the history. The parts that change between
//! requests are last: the context, the tools, the settings.

use std::borrow::Cow;

use positronic_core::record::{
    Assistant, Attachment, Message, ModelError, ModelErrorKind, ModelRequest, OrderedJson, ProviderTool, Recipient,
    ToolChoice, ToolDecl, wire_text,
};
use positronic_model_http::{RequestBody, extend_list, sendable_arguments};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::chat_files::{ChatPart, content};
use super::config::{OpenAiConfig, ReasoningBack};
use super::context::{Tail, tail};
use super::formats::{wire_format, wire_parameters};

/// Encodes a request to a model.
pub(super) fn body(config: &OpenAiConfig, to: Recipient<'_>, request: &ModelRequest) -> String {
    let settings = &*request.settings;
    let back = config.reasoning_back;
    let mut body = RequestBody::of(request);
    body.field("model", to.model);
    body.list("messages", |message| {
        if !request.system.is_empty() {
            let prompt = WirePrompt { role: "system", content: &request.system };
            message(&wire_text(&prompt));
        }
        let (tail, history) = (tail(config, request), request.messages.read());
        let is_own = request.messages.made_by(to);
        let kept = history.len() - usize::from(matches!(tail, Some(Tail::Instead(_))));
        // The files of results, which are in a message of the user after them.
        let mut files: Vec<Attachment> = Vec::new();
        for entry in history.iter().take(kept) {
            match &entry.message {
                Message::Tool { files: more, .. } => files.extend_from_slice(more),
                _ if files.is_empty() => {}
                _ => message(&user("", &std::mem::take(&mut files))),
            }
            if is_own(&entry.message) {
                message(&entry.wire(dialect(back), |entry| encode_message(back, entry)));
            } else if let Some(other) = entry.for_others("openai-chat of others", |entry| encode_message(back, entry)) {
                message(&other);
            }
        }
        match &tail {
            Some(Tail::Behind(Message::User { text, .. })) => message(&user(text, &files)),
            Some(Tail::Instead(last) | Tail::Behind(last)) => {
                match last {
                    Message::Tool { files: more, .. } => files.extend_from_slice(more),
                    _ if files.is_empty() => {}
                    _ => message(&user("", &std::mem::take(&mut files))),
                }
                message(&encode_message(back, last));
                if !files.is_empty() {
                    message(&user("", &files));
                }
            }
            None if files.is_empty() => {}
            None => message(&user("", &files)),
        }
    });
    if !request.tools.tools().is_empty() || !settings.provider_tools.is_empty() {
        let strict = config.is_strict();
        let dialect = if strict { "openai-chat strict" } else { "openai-chat" };
        let own = request.tools.wire(dialect, |tools| encode_tools(tools, strict));
        let provided = settings.provider_tools.iter().filter_map(|tool| match tool {
            ProviderTool::Raw { tool } => Some(tool.to_string()),
            _ => None,
        });
        body.raw("tools", &extend_list(&own, provided));
        match settings.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => body.field("tool_choice", "required"),
            ToolChoice::None => body.field("tool_choice", "none"),
        }
        body.some("parallel_tool_calls", settings.parallel_tool_calls);
    }
    if let Some(format) = wire_format(config, &settings.output) {
        #[derive(Serialize)]
        struct WireResponseFormat<F> {
            r#type: &'static str,
            json_schema: F,
        }
        body.field("response_format", &WireResponseFormat { r#type: "json_schema", json_schema: format });
    }
    body.some("temperature", settings.temperature);
    let max_output_tokens = config.output_limit(settings.max_output_tokens);
    body.some(if config.max_tokens { "max_tokens" } else { "max_completion_tokens" }, max_output_tokens);
    body.some("reasoning_effort", config.reasoning_effort.as_ref());
    body.field("stream", &config.stream);
    if config.stream {
        body.field("stream_options", &json!({ "include_usage": true }));
    }
    body.end()
}

/// Refuses tools of the provider that this API does not have.
///
/// # Errors
///
/// [`Unsupported`](ModelErrorKind::Unsupported).
pub(super) fn check(request: &ModelRequest) -> Result<(), ModelError> {
    let is_unknown = |tool: &&ProviderTool| !matches!(tool, ProviderTool::Raw { .. });
    match request.settings.provider_tools.iter().find(is_unknown) {
        None => Ok(()),
        Some(tool) => Err(ModelError::new(
            ModelErrorKind::Unsupported,
            format!(
                "chat completions have no tool `{}` of the provider; use the Responses API or the provider's own, or declare the tool \
                 in the provider's words with `ProviderTool::raw`",
                tool.name()
            ),
        )),
    }
}

const fn dialect(back: ReasoningBack) -> &'static str {
    match back {
        ReasoningBack::WithCalls => "openai-chat",
        ReasoningBack::Always => "openai-chat with thoughts",
        ReasoningBack::Never => "openai-chat without thoughts",
    }
}

fn encode_message(back: ReasoningBack, message: &Message) -> Box<str> {
    match message {
        Message::User { text, files } => user(text, files),
        Message::Tool { call, text, .. } => wire_text(&WireResult { role: "tool", tool_call_id: call, content: text }),
        Message::Assistant { parts, .. } => wire_text(&assistant(back, parts)),
    }
}

/// Encodes a message of the user.
fn user(text: &str, files: &[Attachment]) -> Box<str> {
    #[derive(Serialize)]
    struct WireParts<'a> {
        role: &'static str,
        content: Vec<ChatPart<'a>>,
    }
    if files.is_empty() {
        wire_text(&WirePrompt { role: "user", content: text })
    } else {
        wire_text(&WireParts { role: "user", content: content(files, text) })
    }
}

#[derive(Serialize)]
struct WirePrompt<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct WireResult<'a> {
    role: &'static str,
    tool_call_id: &'a str,
    content: &'a str,
}

#[derive(Serialize)]
struct WireAssistant<'a> {
    role: &'static str,
    content: Option<String>,
    #[serde(flatten)]
    thoughts: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

/// Merges parts into one message of this API.
fn assistant(back: ReasoningBack, parts: &[Assistant]) -> WireAssistant<'_> {
    let mut content = String::new();
    let mut tool_calls = Vec::new();
    let mut thoughts = Map::new();
    let mut extra_content = None;
    let mut after_file = false;
    for part in parts {
        match part {
            Assistant::Text { text } => {
                if std::mem::take(&mut after_file) {
                    content.push('\n');
                }
                content.push_str(text);
            }
            Assistant::Reasoning { text, data } => add_thought(&mut thoughts, text, data.as_ref()),
            Assistant::Call { call, name, arguments, data } => tool_calls.push(WireCall {
                id: call,
                r#type: "function",
                function: WireFunction { name, arguments: sendable_arguments(arguments) },
                extra_content: data.as_ref().and_then(|data| data.get("extra_content")),
            }),
            // The API takes no pictures of an assistant.
            Assistant::File { file, .. } => {
                if !content.is_empty() {
                    content.push('\n');
                }
                content.push_str(&file.file().line());
                after_file = true;
            }
            Assistant::Opaque { data } => extra_content = data.get("extra_content").or(extra_content),
        }
    }
    let wanted = match back {
        ReasoningBack::WithCalls => !tool_calls.is_empty(),
        ReasoningBack::Always => true,
        ReasoningBack::Never => false,
    };
    let silent = content.is_empty() && !tool_calls.is_empty();
    WireAssistant {
        role: "assistant",
        content: (!silent).then_some(content),
        thoughts: wanted.then_some(thoughts),
        tool_calls,
        extra_content,
    }
}

/// Puts reasoning into the field in which it was received; reasoning of other APIs has none and is dropped.
fn add_thought(thoughts: &mut Map<String, Value>, text: &str, data: Option<&Value>) {
    let Some(field) = data.and_then(|data| data.get("field")).and_then(Value::as_str) else { return };
    if let Some(details) = data.and_then(|data| data.get("details")) {
        thoughts.insert("reasoning_details".to_owned(), details.clone());
    }
    if !matches!(field, "reasoning" | "reasoning_content") || text.is_empty() {
        return;
    }
    match thoughts.get_mut(field) {
        Some(Value::String(known)) => known.push_str(text),
        _ => {
            thoughts.insert(field.to_owned(), text.into());
        }
    }
}

fn encode_tools(tools: &[ToolDecl], strict: bool) -> Box<str> {
    #[derive(Serialize)]
    struct WireTool<'a> {
        r#type: &'static str,
        function: Function<'a>,
    }
    #[derive(Serialize)]
    struct Function<'a> {
        name: Cow<'a, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: &'a str,
        parameters: OrderedJson,
        // Servers without enforcement may not know the field.
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    }
    let encoded = tools.iter().map(|tool| {
        let schema = wire_parameters(tool, strict);
        let (name, description) = (tool.id.wire_name(), tool.description.as_str());
        let strict = strict.then_some(schema.strict);
        WireTool { r#type: "function", function: Function { name, description, parameters: schema.json, strict } }
    });
    wire_text(&encoded.collect::<Vec<_>>())
}
