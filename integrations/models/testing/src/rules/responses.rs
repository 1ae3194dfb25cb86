//! The published rules of the Responses API, as far as a body shows them.
//!
//! Source: OpenAI's reference of the Responses API, as of 2026-11.

use std::collections::HashSet;

use serde_json::Value;

use super::{is_of, require};

/// Checks a request.
///
/// # Errors
///
/// The rule that it breaks.
pub fn check(body: &Value) -> Result<(), String> {
    require(body["model"].is_string(), "Missing required parameter: 'model'")?;
    let model = body["model"].as_str().unwrap_or_default();
    let (mut open, mut known): (Vec<&str>, HashSet<&str>) = Default::default();
    let mut after_thought = false;
    for item in body["input"].as_array().ok_or("Missing required parameter: 'input'")? {
        let follows = item["type"] == "function_call" || item["role"] == "assistant" || item["type"] == "reasoning";
        require(!after_thought || follows, "'reasoning' was provided without its required following item")?;
        after_thought = item["type"] == "reasoning";
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str() {
            Some("function_call") => {
                require(!id.is_empty() && id.len() <= 64, "invalid `call_id`")?;
                require(known.insert(id), "a `call_id` is repeated")?;
                open.push(id);
            }
            Some("function_call_output") => {
                let index = open.iter().position(|known| *known == id);
                open.remove(index.ok_or("No tool call found for function call output")?);
            }
            None | Some("message") => {
                require(open.is_empty(), "No tool output found for function call")?;
                content(item)?;
            }
            Some("reasoning") => {
                let is_known = item["id"].is_string() || item["encrypted_content"].is_string();
                require(is_known, "reasoning: an id or encrypted content is required")?;
                let encrypted = item["encrypted_content"].as_str().unwrap_or_default();
                require(
                    is_of(encrypted, model),
                    "invalid_encrypted_content: the encrypted content could not be verified",
                )?;
            }
            Some(other) => return Err(format!("Invalid value: '{other}'")),
        }
    }
    require(!after_thought, "'reasoning' was provided without its required following item")?;
    require(open.is_empty(), "No tool output found for function call")
}

/// Checks a message: only users send pictures and files.
fn content(message: &Value) -> Result<(), String> {
    let is_answer = message["role"] == "assistant";
    for part in message["content"].as_array().into_iter().flatten() {
        let kind = part["type"].as_str().unwrap_or_default();
        let allowed: &[&str] =
            if is_answer { &["output_text", "refusal"] } else { &["input_text", "input_image", "input_file"] };
        require(allowed.contains(&kind), "invalid type of a content part")?;
        let has_source = ["image_url", "file_id"].iter().any(|source| part[*source].is_string());
        require(kind != "input_image" || has_source, "input_image: image_url or file_id is required")?;
    }
    Ok(())
}
