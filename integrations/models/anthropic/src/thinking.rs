//! Extended thinking: whether a request has it, and how that of earlier answers is sent back.

use positronic_core::record::{Assistant, Message, ModelRequest, Recipient, ToolChoice};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::config::{AnthropicConfig, Thinking};

/// Returns the thinking of a request. With a budget of tokens, a turn with calls must begin with thinking ("When `thinking` is enabled,
/// a final `assistant` message must start with a thinking block"), so the rest of a turn that does not begin so has
/// none: another model began it, or a call was required.
pub(crate) fn thinking(config: &AnthropicConfig, to: Recipient<'_>, request: &ModelRequest) -> Option<Thinking> {
    let set = unless_forced(config.thinking, request.settings.tool_choice)?;
    if !matches!(set, Thinking::Enabled { .. }) {
        return Some(set);
    }
    let history = request.messages.read();
    let after_user =
        history.iter().rposition(|entry| matches!(entry.message, Message::User { .. })).map_or(0, |at| at + 1);
    let has_results = history.last().is_some_and(|entry| matches!(entry.message, Message::Tool { .. }));
    let begins_with_thinking = history.get(after_user).is_none_or(|entry| match &entry.message {
        Message::Assistant { parts, .. } => to.made(&entry.message) && parts.first().is_some_and(is_sendable_thinking),
        Message::User { .. } | Message::Tool { .. } => false,
    });
    Some(if has_results && !begins_with_thinking { Thinking::Disabled } else { set })
}

/// Returns the thinking of a request with this choice of tools. The API refuses thinking together with a forced call, so a request
/// that requires one goes without.
fn unless_forced(set: Thinking, choice: ToolChoice) -> Option<Thinking> {
    match set {
        Thinking::Unset => None,
        _ if choice == ToolChoice::Required => Some(Thinking::Disabled),
        set => Some(set),
    }
}

/// Encodes thinking as it came; that of other providers has no signature and is left out.
pub(crate) fn encode_thinking(text: &str, data: &Value) -> Option<Box<RawValue>> {
    match sendable_kind(data)? {
        "thinking" => {
            let mut block = data.as_object()?.clone();
            block.insert("thinking".to_owned(), text.into());
            to_raw_value(&block).ok()
        }
        _ => to_raw_value(data).ok(),
    }
}

/// Returns the type of a block of thinking that the API accepts: one that is signed, or encrypted.
fn sendable_kind(data: &Value) -> Option<&str> {
    let kind = data.get("type").and_then(Value::as_str)?;
    let proof = match kind {
        "thinking" => "signature",
        "redacted_thinking" => "data",
        _ => return None,
    };
    data.get(proof).and_then(Value::as_str).filter(|proof| !proof.is_empty()).map(|_| kind)
}

fn is_sendable_thinking(part: &Assistant) -> bool {
    matches!(part, Assistant::Reasoning { data: Some(data), .. } if sendable_kind(data).is_some())
}
