//! The content of messages and calls as attributes, in the JSON of the semantic conventions.
//!
//! The messages of a loop's request are not among them: they would be repeated in each iteration, and follow from the log
//! (`positronic requests`).

use opentelemetry::KeyValue;
use positronic_core::record::{Part, ToolResult};
use serde_json::{Value, json};

use super::names;
use crate::spans::{Chat, Operation, Span};

/// Adds the content of a span to its attributes.
pub(super) fn add(span: &Span, attributes: &mut Vec<KeyValue>) {
    match &span.operation {
        Operation::Chat(chat) => chat_content(chat, attributes),
        Operation::Tool(tool) => {
            attributes.push(KeyValue::new(names::TOOL_ARGUMENTS, tool.arguments.to_string()));
            let result = match &tool.result {
                Some(ToolResult::Success { output, .. }) => output.to_string(),
                Some(ToolResult::Error { message }) => message.clone(),
                _ => return,
            };
            attributes.push(KeyValue::new(names::TOOL_RESULT, result));
        }
        Operation::Wait(wait) => {
            attributes.extend(wait.reason.clone().map(|reason| KeyValue::new(names::WAIT_REASON, reason)));
        }
        _ => {}
    }
}

fn chat_content(chat: &Chat, attributes: &mut Vec<KeyValue>) {
    let text = |text: &str| json!({"type": "text", "content": text});
    if let Some(system) = &chat.system {
        attributes.push(KeyValue::new(names::SYSTEM_INSTRUCTIONS, json!([text(system)]).to_string()));
    }
    if let Some(question) = &chat.question {
        let input = json!([{"role": "user", "parts": [text(question)]}]);
        attributes.push(KeyValue::new(names::INPUT_MESSAGES, input.to_string()));
    }
    let Some(parts) = &chat.parts else { return };
    let parts: Vec<Value> = parts.iter().filter_map(part).collect();
    let output = json!([{"role": "assistant", "parts": parts}]);
    attributes.push(KeyValue::new(names::OUTPUT_MESSAGES, output.to_string()));
}

fn part(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text { text } | Part::Refusal { text } => json!({"type": "text", "content": text}),
        Part::Reasoning { text, .. } if !text.is_empty() => json!({"type": "reasoning", "content": text}),
        // Calls have spans of their own.
        _ => return None,
    })
}
