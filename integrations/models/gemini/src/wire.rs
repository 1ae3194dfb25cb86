//! Encoder for requests.
//!
//! What stays the same comes first and the history last, so that a request begins with the bytes of the one before, which the
//! provider caches by itself. Messages of one role in a row become one: the API expects all results of an answer's calls in one.

use std::borrow::Cow;
use std::collections::HashSet;

use positronic_core::record::{
    Assistant, Message, ModelRequest, OrderedJson, OutputFormat, Recipient, Settings, ToolChoice, ToolDecl, WireText,
    wire_text,
};
use positronic_model_http::schema::{FormatCache, SchemaRole, gemini_schema};
use positronic_model_http::{RequestBody, Turns, sendable_object};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::config::GeminiConfig;
use crate::files::{encode_file, encode_line};
use crate::provider_tools;

/// The field in which a part of the provider is stored.
pub(crate) const ITEM: &str = "gemini";

/// Marks a call of another model. Gemini 3 refuses a call without a signature; Google's documentation of thought signatures
/// names this value for histories of other models.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The schemas of answers, as the API takes them.
pub(crate) type Formats = FormatCache<Option<OrderedJson>>;

/// Encodes a request to a model.
pub(crate) fn body(config: &GeminiConfig, to: Recipient<'_>, formats: &Formats, request: &ModelRequest) -> String {
    let mut body = RequestBody::of(request);
    write_prompt(&mut body, config, to, formats, request);
    body.end()
}

/// Encodes a request for the number of tokens of another one.
pub(crate) fn count_body(
    config: &GeminiConfig,
    to: Recipient<'_>,
    formats: &Formats,
    request: &ModelRequest,
    model: &str,
) -> String {
    let mut counted = RequestBody::new(&request.settings);
    counted.field("model", model);
    write_prompt(&mut counted, config, to, formats, request);
    format!(r#"{{"generateContentRequest":{}}}"#, counted.end())
}

fn write_prompt(
    body: &mut RequestBody<'_>,
    config: &GeminiConfig,
    to: Recipient<'_>,
    formats: &Formats,
    request: &ModelRequest,
) {
    let settings = &*request.settings;
    // A cache contains them.
    if !settings.extra.contains_key("cachedContent") {
        if !request.system.trim().is_empty() {
            body.field("systemInstruction", &json!({ "parts": [{ "text": &*request.system }] }));
        }
        write_tools(body, to, request);
    }
    let safety =
        config.safety.iter().map(|(category, threshold)| json!({ "category": category, "threshold": threshold }));
    body.some("safetySettings", Some(safety.collect::<Vec<_>>()).filter(|settings| !settings.is_empty()));
    let format = formats.get(&settings.output, format);
    body.some("generationConfig", generation_config(config, settings, (*format).as_ref()));
    body.raw("contents", &contents(to, request));
}

/// Writes the brain's tools, those of the provider, and which of them the model may call.
fn write_tools(body: &mut RequestBody<'_>, to: Recipient<'_>, request: &ModelRequest) {
    let settings = &*request.settings;
    let has_own = !request.tools.tools().is_empty();
    let provided = provider_tools::encode(&settings.provider_tools, settings.tool_choice);
    if !has_own && provided.is_empty() {
        return;
    }
    body.list("tools", |push| {
        if has_own {
            push(&request.tools.wire("gemini", encode_tools));
        }
        provided.iter().for_each(|tool| push(tool));
    });
    let mode = match settings.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::Required => Some("ANY"),
        ToolChoice::None => Some("NONE"),
    };
    let mut tool_config = Map::new();
    if let Some(mode) = mode.filter(|_| has_own) {
        tool_config.insert("functionCallingConfig".to_owned(), json!({ "mode": mode }));
    }
    // Gemini 3 takes both kinds of tools in a request, and then sends what its own did as parts that go back.
    if has_own && !provided.is_empty() && needs_signatures(to.model) {
        tool_config.insert("includeServerSideToolInvocations".to_owned(), true.into());
    }
    body.some("toolConfig", Some(tool_config).filter(|config| !config.is_empty()));
}

/// Returns whether a model refuses calls without the signature of their thoughts, as those since Gemini 3.
fn needs_signatures(model: &str) -> bool {
    !["gemini-1", "gemini-2"].iter().any(|old| model.contains(old))
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
    response_json_schema: Option<&'a OrderedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    response_modalities: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    image_config: Option<&'a Value>,
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

/// Returns the schema of the answer, if it has one.
fn format(output: &OutputFormat) -> Option<OrderedJson> {
    let schema = match output {
        OutputFormat::Text => return None,
        OutputFormat::JsonSchema { schema, .. } => OrderedJson::of_schema(schema),
    };
    Some(gemini_schema(&schema, SchemaRole::Answer))
}

fn generation_config<'a>(
    config: &'a GeminiConfig,
    settings: &Settings,
    schema: Option<&'a OrderedJson>,
) -> Option<GenerationConfig<'a>> {
    let (include_thoughts, thinking_budget) = (config.include_thoughts, config.thinking_budget);
    let thinking =
        ThinkingConfig { include_thoughts, thinking_budget, thinking_level: config.thinking_level.as_deref() };
    let is_set = include_thoughts.is_some() || thinking_budget.is_some() || config.thinking_level.is_some();
    let set = GenerationConfig {
        temperature: settings.temperature,
        max_output_tokens: config.output_limit(settings.max_output_tokens),
        response_mime_type: schema.is_some().then_some("application/json"),
        response_json_schema: schema,
        thinking_config: is_set.then_some(thinking),
        response_modalities: &config.response_modalities,
        image_config: config.image_config.as_ref(),
    };
    (set != GenerationConfig::default()).then_some(set)
}

/// Encodes the history and the context that follows it.
fn contents(to: Recipient<'_>, request: &ModelRequest) -> String {
    let signed = needs_signatures(to.model);
    let (history, is_own) = (request.messages.read(), request.messages.made_by(to));
    // The API knows only the ids that it gave itself.
    let mut ids = HashSet::new();
    let mut turns = Turns::new("parts");
    // The files of results follow all results of an answer's calls.
    let mut files: Vec<WireText<'_>> = Vec::new();
    for entry in history.iter() {
        if !matches!(entry.message, Message::Tool { .. }) {
            files.drain(..).for_each(|parts| turns.add("user", &parts));
        }
        match &entry.message {
            Message::User { .. } => {
                turns.add("user", &entry.wire("gemini", |message| encode_message(message, false)));
            }
            Message::Tool { call, files: attached, .. } => {
                let has_id = ids.contains(call.as_str());
                let dialect = if has_id { "gemini with ids" } else { "gemini" };
                if attached.is_empty() {
                    turns.add("user", &entry.wire(dialect, |message| encode_message(message, has_id)));
                } else {
                    turns.add("user", &encode_message(&entry.message, has_id));
                    files.push(entry.wire("gemini files", encode_files));
                }
            }
            Message::Assistant { parts, .. } => {
                let encode = |message: &Message| encode_message(message, signed);
                if is_own(&entry.message) {
                    ids.extend(parts.iter().filter_map(given_id));
                    let dialect = if signed { "gemini with signatures" } else { "gemini" };
                    turns.add("model", &entry.wire(dialect, encode));
                } else {
                    let dialect = if signed { "gemini of others with signatures" } else { "gemini of others" };
                    if let Some(parts) = entry.for_others(dialect, encode) {
                        turns.add("model", &parts);
                    }
                }
            }
        }
    }
    files.drain(..).for_each(|parts| turns.add("user", &parts));
    if let Some(context) = request.context_text() {
        turns.add("user", &wire_text(&[WirePart::text(&context)]));
    }
    turns.end()
}

/// Returns the id of a call that has one from this provider. It is sent as the dialogue names it.
fn given_id(part: &Assistant) -> Option<&str> {
    match part {
        Assistant::Call { call, data, .. } => {
            data.as_ref()?.get(ITEM)?.get("call")?.get("id")?.as_str().map(|_| call.as_str())
        }
        _ => None,
    }
}

/// Returns the fields of a part with a signature that is not empty, or without one.
fn signed_fields(fields: &Map<String, Value>) -> Option<&Map<String, Value>> {
    fields.get("thoughtSignature").is_none_or(|signature| signature != "").then_some(fields)
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
    more: Option<Cow<'a, Map<String, Value>>>,
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

/// Encodes the files of a message.
fn encode_files(message: &Message) -> Box<str> {
    wire_text(&message.files().map(|file| encode_file(file, None)).collect::<Vec<_>>())
}

/// Encodes the parts of a message, but not the files of a result. `marked` says whether a result has the id of its call, or
/// whether calls of other models get a signature.
fn encode_message(message: &Message, marked: bool) -> Box<str> {
    let parts: Vec<Box<RawValue>> = match message {
        Message::User { text, files } => {
            let text = Some(text).filter(|text| !text.is_empty());
            let text = text.map(|text| to_raw_value(&WirePart::text(text)).unwrap_or_default());
            files.iter().map(|file| encode_file(file, None)).chain(text).collect()
        }
        Message::Tool { call, name, text, .. } => {
            let response = WireResponse { id: marked.then_some(call), name, response: Output { output: text } };
            let part = WirePart { function_response: Some(response), ..WirePart::default() };
            vec![to_raw_value(&part).unwrap_or_default()]
        }
        Message::Assistant { parts, .. } => {
            let is_call = |part: &Assistant| matches!(part, Assistant::Call { .. });
            let is_signed =
                |data: &Value| data.pointer("/gemini/part/thoughtSignature").is_none_or(|signature| signature != "");
            let is_own = |part: &Assistant| matches!(part, Assistant::Call { data: Some(data), .. } if data.get(ITEM).is_some() && is_signed(data));
            // The first of several parallel calls has the signature.
            let unsigned = if marked && !parts.iter().any(is_own) { parts.iter().position(is_call) } else { None };
            let encode = |(index, part)| encode_part(part, marked, unsigned == Some(index));
            parts.iter().enumerate().flat_map(encode).collect()
        }
    };
    wire_text(&parts)
}

/// Encodes a part of an answer. What a tool of the provider did can have two parts.
fn encode_part(part: &Assistant, is_signed: bool, needs_signature: bool) -> Vec<Box<RawValue>> {
    match part {
        Assistant::Opaque { data } => {
            let items = match data.get(ITEM) {
                Some(Value::Array(items)) => items.as_slice(),
                Some(item) => std::slice::from_ref(item),
                None => &[],
            };
            items.iter().filter_map(|item| to_raw_value(item).ok()).collect()
        }
        Assistant::File { file, data } => {
            let own = data.as_ref().and_then(|data| data.get(ITEM)).and_then(Value::as_object);
            // A file of another model has no signature.
            vec![if is_signed && own.is_none() { encode_line(file) } else { encode_file(file, own) }]
        }
        _ => encode_words(part, needs_signature).into_iter().collect(),
    }
}

/// Encodes a text, a thought or a call.
fn encode_words(part: &Assistant, needs_signature: bool) -> Option<Box<RawValue>> {
    match part {
        Assistant::Text { text } => (!text.is_empty()).then(|| to_raw_value(&WirePart::text(text)).ok())?,
        // A summary of thoughts is only sent back with its signature.
        Assistant::Reasoning { text, data } => {
            let more = signed_fields(data.as_ref()?.get(ITEM)?.as_object()?)?;
            to_raw_value(&WirePart { thought: true, more: Some(Cow::Borrowed(more)), ..WirePart::text(text) }).ok()
        }
        Assistant::Call { call, name, arguments, data } => {
            let data = data.as_ref().and_then(|data| data.get(ITEM));
            let fields = |name: &str| data.and_then(|data| data.get(name)).and_then(Value::as_object);
            let args = RawValue::from_string(sendable_object(arguments).into_owned()).ok()?;
            let more = match fields("part").and_then(signed_fields) {
                Some(fields) => Some(Cow::Borrowed(fields)),
                None if needs_signature => {
                    let signature = ("thoughtSignature".to_owned(), NO_SIGNATURE.into());
                    Some(Cow::Owned([signature].into_iter().collect()))
                }
                None => None,
            };
            let own = fields("call").map(|own| match own.get("id") {
                Some(id) if id != call.as_str() => {
                    let id = ("id".to_owned(), call.as_str().into());
                    Cow::Owned(own.clone().into_iter().chain([id]).collect())
                }
                _ => Cow::Borrowed(own),
            });
            let call = WireCall { name, args, more: own };
            to_raw_value(&WirePart { function_call: Some(call), more, ..WirePart::default() }).ok()
        }
        Assistant::File { .. } | Assistant::Opaque { .. } => None,
    }
}

fn encode_tools(tools: &[ToolDecl]) -> Box<str> {
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
        (!takes_none).then(|| gemini_schema(&OrderedJson::of_schema(&tool.parameters), SchemaRole::Arguments))
    };
    let declared = tools.iter().map(|tool| Declaration {
        name: tool.id.wire_name(),
        description: &tool.description,
        parameters_json_schema: schema(tool),
    });
    wire_text(&Tools { function_declarations: declared.collect() })
}
