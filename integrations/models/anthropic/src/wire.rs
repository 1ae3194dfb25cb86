//! Encoder for requests.
//!
//! What stays the same comes first and the history last, so that a request begins with the bytes of the one before. Messages of
//! one role in a row become one message with several blocks: the API expects all results of an answer's calls in one.

use std::borrow::Cow;
use std::fmt::Write as _;

use positronic_core::record::{
    Assistant, Message, ModelRequest, OrderedJson, OutputFormat, Recipient, Settings, ToolChoice, ToolDecl, wire_text,
};
use positronic_model_http::schema::{
    FormatCache, Parameters, SchemaDialect, SchemaRole, lenient_schema, strict_schema,
};
use positronic_model_http::{RequestBody, Turns, sendable_object};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::block::CITATIONS;
use crate::cache;
use crate::config::AnthropicConfig;
use crate::files::encode_file;
use crate::names::FieldNames;
use crate::provider_tools;
use crate::thinking::{encode_thinking, thinking};

/// The field in which an item of the provider, or what only it understands of a call, is stored.
pub(crate) const ITEM: &str = "anthropic";

/// The output formats of requests: the schema that the provider enforces, or the one that the model is asked to follow, if any.
pub(crate) type Formats = FormatCache<Result<OrderedJson, Option<String>>>;

/// Encodes a request to a model.
pub(crate) fn body(config: &AnthropicConfig, to: Recipient<'_>, formats: &Formats, request: &ModelRequest) -> String {
    let settings = &*request.settings;
    let mut body = RequestBody::of(request);
    body.field("model", to.model);
    body.field("max_tokens", &config.output_limit(settings.max_output_tokens));
    body.field("stream", &config.stream);
    body.some("temperature", settings.temperature);
    write_prompt(&mut body, config, to, formats, request);
    body.end()
}

/// Encodes a request for the number of tokens of another one.
pub(crate) fn count_body(
    config: &AnthropicConfig,
    to: Recipient<'_>,
    formats: &Formats,
    request: &ModelRequest,
) -> String {
    let mut body = RequestBody::new(&request.settings);
    body.field("model", to.model);
    write_prompt(&mut body, config, to, formats, request);
    body.end()
}

/// Writes everything that counts as tokens.
fn write_prompt(
    body: &mut RequestBody<'_>,
    config: &AnthropicConfig,
    to: Recipient<'_>,
    formats: &Formats,
    request: &ModelRequest,
) {
    let settings = &*request.settings;
    let format = formats.get(&settings.output, format);
    let format = (*format).as_ref();
    body.some("thinking", thinking(config, to, request));
    write_output_config(body, config, format.ok());
    if !request.tools.tools().is_empty() || !settings.provider_tools.is_empty() {
        // The limits of strict schemas are those of tools and answer together.
        let is_alone = format.map_or(true, |schema| Parameters::of(schema) == Parameters::default());
        let (streams, strict) = (config.streams_arguments(), config.strict_tools && is_alone);
        let dialect = match (streams, strict) {
            (false, false) => "anthropic",
            (false, true) => "anthropic strict",
            (true, false) => "anthropic streamed",
            (true, true) => "anthropic streamed strict",
        };
        let encode = |tools: &[ToolDecl]| encode_tools(tools, &request.tools.memo(FieldNames::of), streams, strict);
        let tools = request.tools.wire(dialect, encode);
        body.raw("tools", &config.cache.mark(&provider_tools::append(&tools, &settings.provider_tools)));
        write_tool_choice(body, settings);
    }
    if !request.system.trim().is_empty() {
        let system = wire_text(&[Block::Text { text: &request.system, citations: None }]);
        body.raw("system", &config.cache.mark(&system));
    }
    // The API refuses citations together with a schema that it enforces.
    let cites = config.cite_documents && format.is_err();
    let wanted = format
        .err()
        .and_then(Option::as_ref)
        .map(|schema| format!("Answer only with JSON that matches this schema:\n{schema}"));
    let tail: Vec<_> = [request.context_text(), wanted].into_iter().flatten().collect();
    body.raw("messages", &messages(config, to, request, cites, &tail));
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
    };
    strict_schema(&schema, SchemaRole::Answer, SchemaDialect::Anthropic)
        .map_err(|_| serde_json::to_string(&schema).ok())
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
fn messages(
    config: &AnthropicConfig,
    to: Recipient<'_>,
    request: &ModelRequest,
    cites: bool,
    tail: &[String],
) -> String {
    let (dialect, of_others) =
        if cites { ("anthropic citing", "anthropic citing of others") } else { ("anthropic", "anthropic of others") };
    let history = request.messages.read();
    let (marked, is_own) = (cache::marked(&history), request.messages.made_by(to));
    let mut turns = Turns::new("content");
    for (index, entry) in history.iter().enumerate() {
        let encode = |message: &Message| encode_message(message, cites);
        let blocks = if is_own(&entry.message) {
            entry.wire(dialect, encode)
        } else {
            let Some(blocks) = entry.for_others(of_others, encode) else { continue };
            blocks
        };
        let role = match entry.message {
            Message::Assistant { .. } => "assistant",
            Message::User { .. } | Message::Tool { .. } => "user",
        };
        if marked.contains(&Some(index)) {
            turns.add(role, &config.cache.mark(&blocks));
        } else {
            turns.add(role, &blocks);
        }
    }
    for text in tail {
        turns.add("user", &wire_text(&[Block::Text { text, citations: None }]));
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
fn encode_message(message: &Message, cites: bool) -> Box<str> {
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
        Message::Assistant { parts, .. } => {
            let next = parts.iter().skip(1).map(Some).chain([None]);
            let mut end = 0;
            for (part, next) in parts.iter().zip(next) {
                let before = blocks.len();
                encode_part(part, next, &mut blocks);
                if blocks.len() > before && !matches!(part, Assistant::Reasoning { .. }) {
                    end = blocks.len();
                }
            }
            // "The final block in an assistant message cannot be `thinking`."
            blocks.truncate(end);
        }
    }
    wire_text(&blocks)
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

/// Returns an id of a call that the API accepts ("String should match pattern '^[a-zA-Z0-9_-]+$'"); those of other providers may
/// contain other characters, which are written as their numbers, so that different ids stay different.
fn sendable_id(id: &str) -> Cow<'_, str> {
    let is_valid = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if !id.is_empty() && id.chars().all(is_valid) {
        return id.into();
    }
    let mut sent = "call_".to_owned();
    for char in id.chars() {
        if is_valid(char) {
            sent.push(char);
        } else {
            // Writing to a string cannot fail.
            _ = write!(sent, "_{:x}", u32::from(char));
        }
    }
    sent.into()
}

/// The number of strict tools that a request may have, in Anthropic's "Schema complexity limits".
const STRICT_TOOLS: usize = 20;

fn encode_tools(tools: &[ToolDecl], names: &FieldNames, streams: bool, strict: bool) -> Box<str> {
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
    let (mut enforced, mut parameters) = (0, Parameters::default());
    let encoded = tools.iter().map(|tool| {
        let (name, schema) = (tool.id.wire_name(), OrderedJson::of_schema(&tool.parameters));
        let sent =
            strict.then(|| strict_schema(&schema, SchemaRole::Arguments, SchemaDialect::Anthropic).ok()).flatten();
        let sent = sent.filter(|sent| {
            let all = parameters.and(Parameters::of(sent));
            let fits = enforced < STRICT_TOOLS && all.fit();
            if fits {
                (enforced, parameters) = (enforced + 1, all);
            }
            fits
        });
        let strict = sent.is_some();
        let input_schema = names.apply(&name, sent.unwrap_or_else(|| lenient_schema(&schema, SchemaRole::Arguments)));
        WireTool {
            name,
            description: &tool.description,
            input_schema,
            strict,
            eager_input_streaming: streams && !strict,
        }
    });
    wire_text(&encoded.collect::<Vec<_>>())
}
