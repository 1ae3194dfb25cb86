//! What stands in the chunks of a chat answer in more than one form. A whole answer has the same fields, with a
//! `message` in the place of the `delta`.

use std::borrow::Cow;

use serde_json::Value;

use super::lenient::{count, object};
use crate::record::Usage;

/// Returns the pieces of text in a delta's `content`, each with whether it is a thought: a text, or a list of typed
/// parts.
pub(super) fn content(delta: &Value) -> Vec<(bool, Cow<'_, str>)> {
    match delta.get("content") {
        Some(Value::String(text)) => vec![(false, text.into())],
        Some(Value::Array(parts)) => parts.iter().map(content_part).collect(),
        _ => Vec::new(),
    }
}

fn content_part(part: &Value) -> (bool, Cow<'_, str>) {
    let thinking = part.get("thinking");
    let text = match thinking.or_else(|| part.get("text")) {
        Some(Value::String(text)) => text.into(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => "".into(),
    };
    (thinking.is_some(), text)
}

/// Returns the piece of a call's arguments; some servers send them as an object, all at once.
pub(super) fn arguments(function: &Value) -> Cow<'_, str> {
    match function.get("arguments") {
        None | Some(Value::Null) => "".into(),
        Some(Value::String(text)) => text.into(),
        Some(document) => document.to_string().into(),
    }
}

/// Returns the tokens that a chunk counts; Groq puts them under a name of its own.
pub(super) fn usage(chunk: &Value) -> Option<Usage> {
    let usage = object(chunk, "usage").or_else(|| object(object(chunk, "x_groq")?, "usage"))?;
    let number = |name| count(usage, name);
    let detail = |details, name| object(usage, details).and_then(|details| count(details, name));
    let input = number("prompt_tokens").unwrap_or(0);
    let output = number("completion_tokens").unwrap_or(0);
    let reasoning = detail("completion_tokens_details", "reasoning_tokens").unwrap_or(0);
    let cached = detail("prompt_tokens_details", "cached_tokens").or_else(|| number("prompt_cache_hit_tokens"));
    // xAI does not count thoughts as part of the answer; the total tells.
    let apart = number("total_tokens") == Some(input + output + reasoning);
    Some(Usage {
        input,
        output: if apart { output + reasoning } else { output },
        cached: cached.unwrap_or(0),
        reasoning,
    })
}
