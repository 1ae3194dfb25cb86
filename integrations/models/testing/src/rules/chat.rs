//! The published rules of chat completions, as far as a body shows them.
//!
//! Source: OpenAI's reference of the chat completions API, as of 2026-11.

use std::collections::HashSet;

use serde_json::Value;

const MESSAGE_FIELDS: [&str; 6] = ["role", "content", "name", "tool_calls", "tool_call_id", "refusal"];
const CALL_FIELDS: [&str; 3] = ["id", "type", "function"];

/// Checks a request.
///
/// # Errors
///
/// The rule that it breaks.
pub fn check(body: &Value) -> Result<(), String> {
    let (mut open, mut known): (Vec<&str>, HashSet<&str>) = Default::default();
    for message in body["messages"].as_array().ok_or("messages: field required")? {
        known_fields(message, &MESSAGE_FIELDS)?;
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let index = open.iter().position(|known| *known == id).ok_or("a result has no call")?;
            open.remove(index);
            continue;
        }
        if !open.is_empty() {
            return Err("an assistant message with tool_calls must be followed by their results".to_owned());
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            known_fields(call, &CALL_FIELDS)?;
            let id = call["id"].as_str().unwrap_or_default();
            if id.is_empty() || id.len() > 40 {
                return Err(format!("invalid id of a call: {id}"));
            }
            if !known.insert(id) {
                return Err(format!("the id of a call is repeated: {id}"));
            }
            open.push(id);
        }
    }
    Ok(())
}

fn known_fields(object: &Value, known: &[&str]) -> Result<(), String> {
    let fields = object.as_object().ok_or("an object is required")?;
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("unknown field `{name}`")),
        None => Ok(()),
    }
}
