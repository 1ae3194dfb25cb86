//! Encodes requests in the Responses dialect.
//!
//! The system prompt, joined with the context items, goes into `instructions`. Messages become items without ids,
//! since nothing is stored on the server; thoughts go back as the items they came as.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::body::{Body, is_strict, sendable_arguments, system_prompt, text_format};
use super::config::OpenAiConfig;
use super::responses_item::{PHASE_MARK, is_sendable_thought};
use crate::record::{Assistant, Message, ModelRequest, OutputFormat, ToolChoice, ToolDecl};

const DIALECT: &str = "openai-responses";

/// Encodes a request.
pub(super) fn body(config: &OpenAiConfig, request: &ModelRequest) -> String {
    let settings = &*request.settings;
    let mut body = Body::begin(settings, &config.model);
    let system = system_prompt(request);
    body.some("instructions", Some(system).filter(|system| !system.is_empty()));
    body.list("input", |item| {
        for entry in request.messages.read().iter() {
            let items = entry.wire(DIALECT, encode_message);
            let items = items.get().trim_start_matches('[').trim_end_matches(']');
            if items.starts_with('{') {
                item(items);
            }
        }
    });
    if !request.tools.tools().is_empty() {
        body.raw("tools", request.tools.wire(DIALECT, encode_tools).get());
        match settings.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => body.field("tool_choice", "required"),
            ToolChoice::None => body.field("tool_choice", "none"),
        }
        body.some("parallel_tool_calls", settings.parallel_tool_calls);
    }
    match &settings.output {
        OutputFormat::Text => {}
        OutputFormat::JsonSchema { name, schema } => {
            let format = json!({ "type": "json_schema", "name": name, "schema": schema, "strict": is_strict(schema) });
            body.field("text", &json!({ "format": format }));
        }
        OutputFormat::JsonText { name, schema } => {
            let format = text_format(name, schema, "\"type\":\"json_schema\",");
            body.raw("text", &format!("{{\"format\":{format}}}"));
        }
    }
    body.some("temperature", settings.temperature);
    body.some("max_output_tokens", config.most_tokens(settings.max_output_tokens));
    body.some("reasoning", config.reasoning_effort.as_ref().map(|effort| json!({ "effort": effort })));
    if config.encrypted_reasoning {
        body.field("include", &["reasoning.encrypted_content"]);
    }
    body.field("store", &false);
    body.field("stream", &config.stream);
    body.end()
}

/// Encodes a message as the list of its items.
fn encode_message(message: &Message) -> Box<RawValue> {
    let items = match message {
        Message::User { text } => to_raw_value(&[WirePrompt { role: "user", content: text }]),
        Message::Tool { call, text, .. } => {
            to_raw_value(&[WireItem::FunctionCallOutput { call_id: call, output: text }])
        }
        Message::Assistant { parts } => to_raw_value(&assistant(parts)),
    };
    items.unwrap_or_default()
}

#[derive(Serialize)]
struct WirePrompt<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireItem<'a> {
    Message {
        role: &'static str,
        content: [WireText<'a>; 1],
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a Value>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: Cow<'a, str>,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: &'a str,
    },
    #[serde(untagged)]
    AsItCame(&'a Value),
}

#[derive(Serialize)]
struct WireText<'a> {
    r#type: &'static str,
    text: &'a str,
}

fn assistant(parts: &[Assistant]) -> Vec<WireItem<'_>> {
    let mut items = Vec::with_capacity(parts.len());
    let mut phase = None;
    for part in parts {
        match part {
            Assistant::Text { text } => {
                let content = [WireText { r#type: "output_text", text }];
                items.push(WireItem::Message { role: "assistant", content, phase: phase.take() });
            }
            Assistant::Reasoning { data: Some(data), .. } if is_sendable_thought(data) => {
                items.push(WireItem::AsItCame(data));
            }
            Assistant::Reasoning { .. } => {}
            Assistant::Call { call, name, arguments, .. } => {
                items.push(WireItem::FunctionCall { call_id: call, name, arguments: sendable_arguments(arguments) });
            }
            Assistant::Opaque { data } if data.get("type").is_some() => items.push(WireItem::AsItCame(data)),
            // What has no type is the mark of a phase, or comes from another dialect.
            Assistant::Opaque { data } => phase = data.get(PHASE_MARK),
        }
    }
    items
}

fn encode_tools(tools: &[ToolDecl]) -> Box<RawValue> {
    #[derive(Serialize)]
    struct WireTool<'a> {
        r#type: &'static str,
        name: Cow<'a, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: &'a str,
        parameters: &'a Value,
        // This API takes schemas for strict ones unless told otherwise.
        strict: bool,
    }
    let encoded: Vec<_> = tools
        .iter()
        .map(|tool| WireTool {
            r#type: "function",
            name: tool.id.wire_name(),
            description: &tool.description,
            parameters: &tool.parameters,
            strict: false,
        })
        .collect();
    to_raw_value(&encoded).unwrap_or_default()
}
