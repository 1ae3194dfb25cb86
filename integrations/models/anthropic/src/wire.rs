//! Encoder for requests.
//!
//! What stays the same comes first and the history last, so that a request begins with the bytes of the one before. Messages of
//! one role in a row become one message with several blocks: the API expects all results of an answer's calls in one.

use std::borrow::Cow;

use positronic_core::model::http::{RequestBody, Turns, sendable_object};
use positronic_core::model::schema::{SchemaRole, WireSchema, strict_schema};
use positronic_core::record::{
    Assistant, Message, ModelRequest, OrderedJson, OutputFormat, Settings, ToolChoice, ToolDecl,
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::block::CITATIONS;
use crate::cache;
use crate::config::AnthropicConfig;
use crate::files::encode_file;
use crate::provider_tools;

/// The field in which an item of the provider, or what only it understands of a call, is stored.
pub(crate) const ITEM: &str = "anthropic";

/// Encodes a request.
pub(crate) fn body(config: &AnthropicConfig, request: &ModelRequest) -> String {
    let settings = &*request.settings;
    let mut body = RequestBody::new(settings);
    body.field("model", settings.model.as_ref().unwrap_or(&config.model));
    body.field("max_tokens", &config.output_limit(settings.max_output_tokens));
    body.field("stream", &config.stream);
    body.some("temperature", settings.temperature);
    write_prompt(&mut body, config, request);
    body.end()
}

/// Encodes a request for the number of tokens of another one.
pub(crate) fn count_body(config: &AnthropicConfig, request: &ModelRequest) -> String {
    let settings = &*request.settings;
    let mut body = RequestBody::new(settings);
    body.field("model", settings.model.as_ref().unwrap_or(&config.model));
    write_prompt(&mut body, config, request);
    body.end()
}

/// Writes everything that counts as tokens.
fn write_prompt(body: &mut RequestBody<'_>, config: &AnthropicConfig, request: &ModelRequest) {
    let settings = &*request.settings;
    let format = format(&settings.output);
    body.some("thinking", config.thinking(settings.tool_choice));
    write_output_config(body, config, format.as_ref().ok());
    if !request.tools.tools().is_empty() || !settings.provider_tools.is_empty() {
        let (streams, strict) = (config.streams_arguments(), config.strict_tools);
        let dialect = match (streams, strict) {
            (false, false) => "anthropic",
            (false, true) => "anthropic strict",
            (true, false) => "anthropic streamed",
            (true, true) => "anthropic streamed strict",
        };
        let tools = request.tools.wire(dialect, |tools| encode_tools(tools, streams, strict));
        body.raw("tools", &config.cache.mark(&provider_tools::append(tools.get(), &settings.provider_tools)));
        write_tool_choice(body, settings);
    }
    if !request.system.trim().is_empty() {
        let system = to_raw_value(&[Block::Text { text: &request.system, citations: None }]).unwrap_or_default();
        body.raw("system", &config.cache.mark(system.get()));
    }
    // The API refuses citations together with a schema that it enforces.
    let cites = config.cite_documents && format.is_err();
    let wanted =
        format.err().flatten().map(|schema| format!("Answer only with JSON that matches this schema:\n{schema}"));
    let tail: Vec<_> = [request.context_text(), wanted].into_iter().flatten().collect();
    body.raw("messages", &messages(config, request, cites, &tail));
}

fn write_output_config(body: &mut RequestBody<'_>, config: &AnthropicConfig, schema: Option<&OrderedJson>) {
    #[derive(Serialize)]
    struct OutputConfig<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        effort: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        format: Option<Format<'a>>,
    }
    #[derive(Serialize)]
    struct Format<'a> {
        r#type: &'static str,
        schema: &'a OrderedJson,
    }
    let format = schema.map(|schema| Format { r#type: "json_schema", schema });
    let effort = config.effort.as_deref();
    if effort.is_some() || format.is_some() {
        body.field("output_config", &OutputConfig { effort, format });
    }
}

/// Returns the schema that the provider enforces, or else the one that the model is asked to follow, if any.
fn format(output: &OutputFormat) -> Result<OrderedJson, Option<String>> {
    let schema = match output {
        OutputFormat::Text => return Err(None),
        OutputFormat::JsonSchema { schema, .. } => OrderedJson::of_schema(schema),
        OutputFormat::JsonText { schema, .. } => {
            serde_json::from_str(schema).map_err(|_| Some(schema.as_ref().to_owned()))?
        }
    };
    strict_schema(&schema, SchemaRole::Answer).map_err(|_| serde_json::to_string(&schema).ok())
}

fn write_tool_choice(body: &mut RequestBody<'_>, settings: &Settings) {
    let kind = match settings.tool_choice {
        ToolChoice::Auto => "auto",
        ToolChoice::Required => "any",
        ToolChoice::None => "none",
    };
    match settings.parallel_tool_calls {
        Some(parallel) if settings.tool_choice != ToolChoice::None => {
            body.field("tool_choice", &json!({ "type": kind, "disable_parallel_tool_use": !parallel }));
        }
        _ if settings.tool_choice == ToolChoice::Auto => {}
        _ => body.field("tool_choice", &json!({ "type": kind })),
    }
}

/// Encodes the history, with marks for the cache, and the texts that follow it.
fn messages(config: &AnthropicConfig, request: &ModelRequest, cites: bool, tail: &[String]) -> String {
    let dialect = if cites { "anthropic citing" } else { "anthropic" };
    let history = request.messages.read();
    let marked = cache::marked(&history);
    let mut turns = Turns::new("content");
    for (index, entry) in history.iter().enumerate() {
        let blocks = entry.wire(dialect, |message| encode_message(message, cites));
        let role = match entry.message {
            Message::Assistant { .. } => "assistant",
            Message::User { .. } | Message::Tool { .. } => "user",
        };
        if marked.contains(&Some(index)) {
            turns.add(role, &config.cache.mark(blocks.get()));
        } else {
            turns.add(role, blocks.get());
        }
    }
    for text in tail {
        turns.add("user", to_raw_value(&[Block::Text { text, citations: None }]).unwrap_or_default().get());
    }
    turns.end()
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        citations: Option<&'a Value>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Box<RawValue>,
        #[serde(flatten)]
        more: Option<&'a Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Box<RawValue>>,
    },
}

/// Encodes the blocks of a message.
fn encode_message(message: &Message, cites: bool) -> Box<RawValue> {
    let encode_file = |file| encode_file(file, cites);
    let mut blocks = Vec::new();
    match message {
        Message::User { text, files } => {
            blocks.extend(files.iter().map(encode_file));
            blocks.extend(text_block(text, None));
        }
        Message::Tool { call, text, files, .. } => {
            let content = match files.as_slice() {
                [] if text.is_empty() => None,
                [] => to_raw_value(text).ok(),
                files => {
                    let content = text_block(text, None).into_iter().chain(files.iter().map(encode_file));
                    to_raw_value(&content.collect::<Vec<_>>()).ok()
                }
            };
            blocks.extend(to_raw_value(&Block::ToolResult { tool_use_id: sendable_id(call), content }).ok());
        }
        Message::Assistant { parts } => {
            let next = parts.iter().skip(1).map(Some).chain([None]);
            parts.iter().zip(next).for_each(|(part, next)| encode_part(part, next, &mut blocks));
        }
    }
    to_raw_value(&blocks).unwrap_or_default()
}

/// Encodes a text block. The API refuses one without a visible character.
fn text_block(text: &str, citations: Option<&Value>) -> Option<Box<RawValue>> {
    (!text.trim().is_empty()).then(|| to_raw_value(&Block::Text { text, citations }).ok())?
}

/// Encodes a part of an answer, which may have several blocks. `next` is the part after it, which stores the citations of a
/// text.
fn encode_part(part: &Assistant, next: Option<&Assistant>, blocks: &mut Vec<Box<RawValue>>) {
    match part {
        Assistant::Text { text } => {
            let citations = match next {
                Some(Assistant::Opaque { data }) => data.get(CITATIONS),
                _ => None,
            };
            blocks.extend(text_block(text, citations));
        }
        Assistant::Reasoning { text, data } => {
            blocks.extend(data.as_ref().and_then(|data| encode_thinking(text, data)));
        }
        Assistant::Call { call, name, arguments, data } => {
            let Ok(input) = RawValue::from_string(sendable_object(arguments).into_owned()) else { return };
            let more = data.as_ref().and_then(|data| data.get(ITEM)).filter(|data| data.is_object());
            blocks.extend(to_raw_value(&Block::ToolUse { id: sendable_id(call), name, input, more }).ok());
        }
        // The API takes no pictures of the model itself.
        Assistant::File { file, .. } => blocks.extend(text_block(&file.file().line(), None)),
        Assistant::Opaque { data } => match data.get(ITEM) {
            Some(Value::Array(items)) => blocks.extend(items.iter().filter_map(|item| to_raw_value(item).ok())),
            Some(item) => blocks.extend(to_raw_value(item).ok()),
            None => {}
        },
    }
}

/// Encodes thinking as it came; that of other providers has no signature and is left out.
fn encode_thinking(text: &str, data: &Value) -> Option<Box<RawValue>> {
    let has = |name: &str| data.get(name).is_some_and(Value::is_string);
    match data.get("type").and_then(Value::as_str)? {
        "thinking" if has("signature") => {
            let mut block = data.as_object()?.clone();
            block.insert("thinking".to_owned(), text.into());
            to_raw_value(&block).ok()
        }
        "redacted_thinking" if has("data") => to_raw_value(data).ok(),
        _ => None,
    }
}

/// Returns an id of a call that the API accepts; those of other providers may contain other characters.
fn sendable_id(id: &str) -> Cow<'_, str> {
    let is_valid = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if !id.is_empty() && id.chars().all(is_valid) {
        return id.into();
    }
    let valid: String = id.chars().map(|char| if is_valid(char) { char } else { '_' }).collect();
    format!("call_{valid}").into()
}

fn encode_tools(tools: &[ToolDecl], streams: bool, strict: bool) -> Box<RawValue> {
    #[derive(Serialize)]
    struct WireTool<'a> {
        name: Cow<'a, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: &'a str,
        input_schema: OrderedJson,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        strict: bool,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        eager_input_streaming: bool,
    }
    let encoded = tools.iter().map(|tool| {
        let schema = WireSchema::new(&OrderedJson::of_schema(&tool.parameters), SchemaRole::Arguments, strict);
        WireTool {
            name: tool.id.wire_name(),
            description: &tool.description,
            input_schema: schema.json,
            strict: schema.strict,
            eager_input_streaming: streams && !schema.strict,
        }
    });
    to_raw_value(&encoded.collect::<Vec<_>>()).unwrap_or_default()
}
