//! Encoder for Responses requests.
//!
//! The system prompt goes into `instructions`, the context after the last item. An answer is sent back as its original items
//! with their ids; if its reasoning cannot be sent back, or it is from another API, as messages and calls without ids.

use std::borrow::Cow;
use std::collections::BTreeMap;

use positronic_core::record::{
    Assistant, Attachment, Message, ModelError, ModelRequest, OrderedJson, Recipient, ToolChoice, ToolDecl, wire_text,
};
use positronic_model_http::schema::WireSchema;
use positronic_model_http::{RequestBody, extend_list, sendable_arguments};
use serde::Serialize;
use serde_json::{Value, json};

use super::config::OpenAiConfig;
use super::context::{Tail, tail};
use super::formats::{WireFormat, wire_format, wire_parameters};
use super::responses_files::{InputPart, content, echo};
use super::responses_item::{CALL_FIELDS, MESSAGE_MARK, is_sendable_thought};
use super::responses_tools::{declaration, includes};

const DIALECT: &str = "openai-responses";

/// Encodes a request to a model.
pub(super) fn body(config: &OpenAiConfig, to: Recipient<'_>, request: &ModelRequest) -> String {
    let settings = &*request.settings;
    let mut body = RequestBody::of(request);
    body.field("model", to.model);
    body.some("instructions", Some(&*request.system).filter(|system| !system.is_empty()));
    body.list("input", |item| {
        let mut add = |items: &str| {
            let items = items.strip_prefix('[').and_then(|items| items.strip_suffix(']')).unwrap_or_default();
            if !items.is_empty() {
                item(items);
            }
        };
        let (tail, history) = (tail(config, request), request.messages.read());
        let is_own = request.messages.made_by(to);
        let kept = history.len() - usize::from(matches!(tail, Some(Tail::Instead(_))));
        for entry in history.iter().take(kept) {
            if is_own(&entry.message) {
                add(&entry.wire(DIALECT, encode_message));
            } else if let Some(other) = entry.for_others("openai-responses of others", encode_message) {
                add(&other);
            }
        }
        if let Some(Tail::Instead(last) | Tail::Behind(last)) = &tail {
            add(&encode_message(last));
        }
    });
    if !request.tools.tools().is_empty() || !settings.provider_tools.is_empty() {
        let strict = config.is_strict();
        let dialect = if strict { "openai-responses strict" } else { DIALECT };
        let own = request.tools.wire(dialect, |tools| encode_tools(tools, strict));
        let provided = settings.provider_tools.iter().filter_map(|tool| Some(declaration(tool).ok()?.to_string()));
        body.raw("tools", &extend_list(&own, provided));
        match settings.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => body.field("tool_choice", "required"),
            ToolChoice::None => body.field("tool_choice", "none"),
        }
        body.some("parallel_tool_calls", settings.parallel_tool_calls);
    }
    if let Some(format) = wire_format(config, &settings.output) {
        body.field("text", &WireTextSettings { format: WireTextFormat::JsonSchema(format) });
    }
    body.some("temperature", settings.temperature);
    body.some("max_output_tokens", config.output_limit(settings.max_output_tokens));
    body.some("reasoning", config.reasoning_effort.as_ref().map(|effort| json!({ "effort": effort })));
    let reasons = config.encrypted_reasoning.is_asked(to.model, settings);
    let include: Vec<_> = reasons
        .then_some("reasoning.encrypted_content")
        .into_iter()
        .chain(includes(&settings.provider_tools))
        .collect();
    if !include.is_empty() {
        body.field("include", &include);
    }
    body.field("store", &false);
    body.field("stream", &config.stream);
    body.end()
}

/// Refuses tools of the provider that this API does not have.
///
/// # Errors
///
/// [`Unsupported`](positronic_core::record::ModelErrorKind::Unsupported).
pub(super) fn check(request: &ModelRequest) -> Result<(), ModelError> {
    request.settings.provider_tools.iter().try_for_each(|tool| declaration(tool).map(|_| ()))
}

/// Encodes a message as the list of its items.
fn encode_message(message: &Message) -> Box<str> {
    match message {
        Message::User { text, files } => {
            wire_text(&[WireItemPrompt { role: "user", content: WireTexts::new(files, text) }])
        }
        Message::Tool { call, text, files, .. } => {
            wire_text(&[WireItem::FunctionCallOutput { call_id: call, output: WireTexts::new(files, text) }])
        }
        Message::Assistant { parts, .. } => wire_text(&assistant(parts)),
    }
}

#[derive(Serialize)]
struct WireItemPrompt<'a> {
    role: &'static str,
    content: WireTexts<'a>,
}

/// The content of a message or the output of a call: a text, or a list with files.
#[derive(Serialize)]
#[serde(untagged)]
enum WireTexts<'a> {
    Text(&'a str),
    Parts(Vec<InputPart<'a>>),
}

impl<'a> WireTexts<'a> {
    fn new(files: &'a [Attachment], text: &'a str) -> Self {
        if files.is_empty() { Self::Text(text) } else { Self::Parts(content(files, text)) }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireItem<'a> {
    /// An answer in input form: from another API, or without its reasoning.
    Message {
        role: &'static str,
        content: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a Value>,
    },
    /// An answer in its original form.
    #[serde(rename = "message")]
    Output {
        id: &'a Value,
        role: &'static str,
        status: &'a str,
        content: [WireContent<'a>; 1],
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a Value>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: Cow<'a, str>,
        #[serde(flatten)]
        more: BTreeMap<&'static str, &'a Value>,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: WireTexts<'a>,
    },
    #[serde(untagged)]
    AsItCame(Cow<'a, Value>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireContent<'a> {
    OutputText { text: &'a str, annotations: [(); 0], logprobs: [(); 0] },
    Refusal { refusal: &'a str },
}

/// Returns the parts of an answer without reasoning at its end: a server refuses reasoning "without its required following item".
fn without_last_thoughts(parts: &[Assistant]) -> &[Assistant] {
    let end = parts.iter().rposition(|part| !matches!(part, Assistant::Reasoning { .. }));
    parts.get(..end.map_or(0, |last| last + 1)).unwrap_or_default()
}

/// Returns the items of an answer. They keep their ids if all of them are sent back. A server that finds the id of a message
/// or a call requires the reasoning before it, so an answer without its reasoning is sent back without ids.
fn assistant(parts: &[Assistant]) -> Vec<WireItem<'_>> {
    let parts = without_last_thoughts(parts);
    let is_left = |part: &Assistant| match part {
        Assistant::Reasoning { data, .. } => !data.as_ref().is_some_and(is_sendable_thought),
        _ => false,
    };
    let is_whole = !parts.iter().any(is_left);
    let mut items = Vec::with_capacity(parts.len());
    let mut mark = None;
    for part in parts {
        match part {
            Assistant::Text { text } => items.push(message(text, mark.take(), is_whole)),
            Assistant::Reasoning { data: Some(data), .. } if is_whole => {
                items.push(WireItem::AsItCame(Cow::Borrowed(data)));
            }
            Assistant::Reasoning { .. } => {}
            Assistant::Call { call, name, arguments, data } => {
                let goes_back = |name: &&str| is_whole || !matches!(*name, "id" | "status");
                let field = |name| Some((name, data.as_ref()?.get(name)?));
                let more = CALL_FIELDS.into_iter().filter(goes_back).filter_map(field).collect();
                let arguments = sendable_arguments(arguments);
                items.push(WireItem::FunctionCall { call_id: call, name, arguments, more });
            }
            Assistant::File { file, data } => items.push(WireItem::AsItCame(Cow::Owned(echo(file, data.as_ref())))),
            Assistant::Opaque { data } if is_item(data) => items.push(WireItem::AsItCame(Cow::Borrowed(data))),
            // Other data is the mark of a message, or from another API.
            Assistant::Opaque { data } => mark = data.get(MESSAGE_MARK),
        }
    }
    items
}

/// Returns whether data is an item of this API: each has a type and an id.
fn is_item(data: &Value) -> bool {
    ["type", "id"].iter().all(|name| data.get(*name).is_some())
}

/// Writes a message; one that goes back as it came has an id.
fn message<'a>(text: &'a str, mark: Option<&'a Value>, as_it_came: bool) -> WireItem<'a> {
    let (role, phase) = ("assistant", mark.and_then(|mark| mark.get("phase")));
    let Some((mark, id)) = mark.filter(|_| as_it_came).and_then(|mark| Some((mark, mark.get("id")?))) else {
        return WireItem::Message { role, content: text, phase };
    };
    let content = match mark.get("refuses") {
        Some(Value::Bool(true)) => WireContent::Refusal { refusal: text },
        _ => WireContent::OutputText { text, annotations: [], logprobs: [] },
    };
    let status = mark.get("status").and_then(Value::as_str).unwrap_or("completed");
    WireItem::Output { id, role, status, content: [content], phase }
}

#[derive(Serialize)]
struct WireTextSettings<'a> {
    format: WireTextFormat<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireTextFormat<'a> {
    JsonSchema(WireFormat<'a>),
}

fn encode_tools(tools: &[ToolDecl], strict: bool) -> Box<str> {
    #[derive(Serialize)]
    struct WireTool<'a> {
        r#type: &'static str,
        name: Cow<'a, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: &'a str,
        parameters: OrderedJson,
        // This API defaults to strict schemas.
        strict: bool,
    }
    let encoded = tools.iter().map(|tool| {
        let WireSchema { json, strict } = wire_parameters(tool, strict);
        let (name, description) = (tool.id.wire_name(), tool.description.as_str());
        WireTool { r#type: "function", name, description, parameters: json, strict }
    });
    wire_text(&encoded.collect::<Vec<_>>())
}
