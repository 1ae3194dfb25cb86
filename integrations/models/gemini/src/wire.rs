//! Encoder for requests.
//!
//! What stays the same comes first and the history last, so that a request begins with the bytes of the one before, which the
//! provider caches by itself. Messages of one role in a row become one: the API expects all results of an answer's calls in one.

use std::borrow::Cow;
use std::collections::HashSet;

use positronic_core::model::http::{RequestBody, Turns, sendable_object};
use positronic_core::model::schema::{SchemaRole, lenient_schema};
use positronic_core::record::{Assistant, Message, ModelRequest, OrderedJson, OutputFormat, ToolChoice, ToolDecl};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::config::GeminiConfig;

/// The field in which a part of the provider is stored.
pub(crate) const ITEM: &str = "gemini";

/// Marks a call of another model. Gemini 3 refuses a call without a signature; Google's documentation of thought signatures
/// names this value for histories of other models.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Encodes a request.
pub(crate) fn body(config: &GeminiConfig, request: &ModelRequest) -> String {
    let mut body = RequestBody::new(&request.settings);
    write_prompt(&mut body, config, request);
    body.end()
}

/// Encodes a request for the number of tokens of another one.
pub(crate) fn count_body(config: &GeminiConfig, request: &ModelRequest, model: &str) -> String {
    let mut counted = RequestBody::new(&request.settings);
    counted.field("model", model);
    write_prompt(&mut counted, config, request);
    format!(r#"{{"generateContentRequest":{}}}"#, counted.end())
}

fn write_prompt(body: &mut RequestBody<'_>, config: &GeminiConfig, request: &ModelRequest) {
    let settings = &*request.settings;
    // A cache contains them.
    if !settings.extra.contains_key("cachedContent") {
        if !request.system.trim().is_empty() {
            body.field("systemInstruction", &json!({ "parts": [{ "text": &*request.system }] }));
        }
        if !request.tools.tools().is_empty() {
            body.raw("tools", request.tools.wire("gemini", encode_tools).get());
            let mode = match settings.tool_choice {
                ToolChoice::Auto => None,
                ToolChoice::Required => Some("ANY"),
                ToolChoice::None => Some("NONE"),
            };
            body.some("toolConfig", mode.map(|mode| json!({ "functionCallingConfig": { "mode": mode } })));
        }
    }
    let safety =
        config.safety.iter().map(|(category, threshold)| json!({ "category": category, "threshold": threshold }));
    body.some("safetySettings", Some(safety.collect::<Vec<_>>()).filter(|settings| !settings.is_empty()));
    body.some("generationConfig", generation_config(config, request));
    body.raw("contents", &contents(config, request));
}

#[derive(Serialize, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<OrderedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig<'a>>,
}

#[derive(Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    include_thoughts: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'a str>,
}

fn generation_config<'a>(config: &'a GeminiConfig, request: &ModelRequest) -> Option<GenerationConfig<'a>> {
    let settings = &*request.settings;
    let schema = match &settings.output {
        OutputFormat::Text => None,
        OutputFormat::JsonSchema { schema, .. } => Some(OrderedJson::of_schema(schema)),
        // The server rejects text that is not a schema, with its reason.
        OutputFormat::JsonText { schema, .. } => {
            Some(serde_json::from_str(schema).unwrap_or_else(|_| OrderedJson::from(&**schema)))
        }
    };
    let (include_thoughts, thinking_budget) = (config.include_thoughts, config.thinking_budget);
    let thinking =
        ThinkingConfig { include_thoughts, thinking_budget, thinking_level: config.thinking_level.as_deref() };
    let is_set = include_thoughts.is_some() || thinking_budget.is_some() || config.thinking_level.is_some();
    let set = GenerationConfig {
        temperature: settings.temperature,
        max_output_tokens: config.output_limit(settings.max_output_tokens),
        response_mime_type: schema.is_some().then_some("application/json"),
        response_json_schema: schema.map(|schema| lenient_schema(&schema, SchemaRole::Answer)),
        thinking_config: is_set.then_some(thinking),
    };
    (set != GenerationConfig::default()).then_some(set)
}

/// Encodes the history and the context that follows it.
fn contents(config: &GeminiConfig, request: &ModelRequest) -> String {
    let model = request.settings.model.as_ref().unwrap_or(&config.model);
    let needs_signatures = !["gemini-1", "gemini-2"].iter().any(|old| model.contains(old));
    let history = request.messages.read();
    // The API knows only the ids that it gave itself.
    let mut ids = HashSet::new();
    let mut turns = Turns::new("parts");
    for entry in history.iter() {
        let (role, parts) = match &entry.message {
            Message::User { .. } => ("user", entry.wire("gemini", |message| encode_message(message, false))),
            Message::Tool { call, .. } => {
                let has_id = ids.contains(call.as_str());
                let dialect = if has_id { "gemini with ids" } else { "gemini" };
                ("user", entry.wire(dialect, |message| encode_message(message, has_id)))
            }
            Message::Assistant { parts } => {
                ids.extend(parts.iter().filter_map(given_id));
                let dialect = if needs_signatures { "gemini with signatures" } else { "gemini" };
                ("model", entry.wire(dialect, |message| encode_message(message, needs_signatures)))
            }
        };
        turns.add(role, parts.get());
    }
    if let Some(context) = request.context_text() {
        turns.add("user", to_raw_value(&[WirePart::text(&context)]).unwrap_or_default().get());
    }
    turns.end()
}

/// Returns the id of a call that this provider gave.
fn given_id(part: &Assistant) -> Option<&str> {
    match part {
        Assistant::Call { data, .. } => data.as_ref()?.get(ITEM)?.get("call")?.get("id")?.as_str(),
        _ => None,
    }
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<WireResponse<'a>>,
    #[serde(flatten)]
    more: Option<Cow<'a, Map<String, Value>>>,
}

impl<'a> WirePart<'a> {
    fn text(text: &'a str) -> Self {
        Self { text: Some(text), ..Self::default() }
    }
}

#[derive(Serialize)]
struct WireCall<'a> {
    name: &'a str,
    args: Box<RawValue>,
    #[serde(flatten)]
    more: Option<&'a Map<String, Value>>,
}

#[derive(Serialize)]
struct WireResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: Output<'a>,
}

#[derive(Serialize)]
struct Output<'a> {
    output: &'a str,
}

/// Encodes the parts of a message. `marked` says whether a result has the id of its call, or whether calls of other models
/// get a signature.
fn encode_message(message: &Message, marked: bool) -> Box<RawValue> {
    let parts: Vec<Box<RawValue>> = match message {
        Message::User { text, .. } if text.is_empty() => Vec::new(),
        Message::User { text, .. } => vec![to_raw_value(&WirePart::text(text)).unwrap_or_default()],
        Message::Tool { call, name, text, .. } => {
            let response = WireResponse { id: marked.then_some(call), name, response: Output { output: text } };
            let part = WirePart { function_response: Some(response), ..WirePart::default() };
            vec![to_raw_value(&part).unwrap_or_default()]
        }
        Message::Assistant { parts } => {
            let is_call = |part: &Assistant| matches!(part, Assistant::Call { .. });
            let is_own =
                |part: &Assistant| matches!(part, Assistant::Call { data: Some(data), .. } if data.get(ITEM).is_some());
            // The first of several parallel calls has the signature.
            let unsigned = if marked && !parts.iter().any(is_own) { parts.iter().position(is_call) } else { None };
            let encode = |(index, part)| encode_part(part, unsigned == Some(index));
            parts.iter().enumerate().filter_map(encode).collect()
        }
    };
    to_raw_value(&parts).unwrap_or_default()
}

/// Encodes a part of an answer.
fn encode_part(part: &Assistant, needs_signature: bool) -> Option<Box<RawValue>> {
    match part {
        Assistant::Text { text } => (!text.is_empty()).then(|| to_raw_value(&WirePart::text(text)).ok())?,
        // A summary of thoughts is only sent back with its signature.
        Assistant::Reasoning { text, data } => {
            let more = data.as_ref()?.get(ITEM)?.as_object()?;
            to_raw_value(&WirePart { thought: true, more: Some(Cow::Borrowed(more)), ..WirePart::text(text) }).ok()
        }
        Assistant::Call { name, arguments, data, .. } => {
            let data = data.as_ref().and_then(|data| data.get(ITEM));
            let fields = |name: &str| data.and_then(|data| data.get(name)).and_then(Value::as_object);
            let args = RawValue::from_string(sendable_object(arguments).into_owned()).ok()?;
            let more = match fields("part") {
                Some(fields) => Some(Cow::Borrowed(fields)),
                None if needs_signature => {
                    let signature = ("thoughtSignature".to_owned(), NO_SIGNATURE.into());
                    Some(Cow::Owned([signature].into_iter().collect()))
                }
                None => None,
            };
            let call = WireCall { name, args, more: fields("call") };
            to_raw_value(&WirePart { function_call: Some(call), more, ..WirePart::default() }).ok()
        }
        Assistant::File { .. } => None,
        Assistant::Opaque { data } => to_raw_value(data.get(ITEM)?).ok(),
    }
}

fn encode_tools(tools: &[ToolDecl]) -> Box<RawValue> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Declaration<'a> {
        name: Cow<'a, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        parameters_json_schema: Option<OrderedJson>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Tools<'a> {
        function_declarations: Vec<Declaration<'a>>,
    }
    let schema = |tool: &ToolDecl| {
        let properties = tool.parameters.get("properties").and_then(Value::as_object);
        let is_closed = tool.parameters.get("additionalProperties").is_none_or(|more| more == false);
        // The API refuses an object without properties.
        let takes_none = properties.is_none_or(Map::is_empty) && is_closed;
        (!takes_none).then(|| lenient_schema(&OrderedJson::of_schema(&tool.parameters), SchemaRole::Arguments))
    };
    let declared = tools.iter().map(|tool| Declaration {
        name: tool.id.wire_name(),
        description: &tool.description,
        parameters_json_schema: schema(tool),
    });
    to_raw_value(&[Tools { function_declarations: declared.collect() }]).unwrap_or_default()
}
