//! The published rules of the Messages API, as far as a body shows them.
//!
//! Sources: Anthropic's documentation of the Messages API, tool use, server tools, extended thinking, prompt caching, vision, PDF
//! support and files, as of 2026-11.

use std::collections::HashSet;

use serde_json::Value;

use super::schema::{Complexity, anthropic_names};
use super::{is_of, require};

/// Checks a request.
///
/// # Errors
///
/// The rule that it breaks.
pub fn check(body: &Value) -> Result<(), String> {
    require(body["model"].is_string(), "model: field required")?;
    require(body["max_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "max_tokens: field required")?;
    let budget = body["thinking"]["budget_tokens"].as_u64();
    require(budget.is_none_or(|budget| budget >= 1024), "thinking.budget_tokens: at least 1024")?;
    require(
        budget.is_none_or(|budget| budget < body["max_tokens"].as_u64().unwrap_or(0)),
        "max_tokens must be greater than thinking.budget_tokens",
    )?;
    let forced = matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool"));
    let thinks = matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive"));
    require(!(forced && thinks), "Thinking may not be enabled when tool_choice forces tool use")?;
    require(marks(body) <= 4, "A maximum of 4 blocks with cache_control may be provided")?;
    let (mut names, mut complexity, mut strict) = (HashSet::new(), Complexity::default(), 0);
    for tool in body["tools"].as_array().into_iter().flatten() {
        let name = tool["name"].as_str().unwrap_or_default();
        require(is_name(name) && name.len() <= 128, "tools.name: must match ^[a-zA-Z0-9_-]{1,128}$")?;
        require(names.insert(name), "tools: Tool names must be unique")?;
        let is_own = matches!(tool["type"].as_str(), None | Some("custom"));
        require(is_own == tool["input_schema"].is_object(), "tools.input_schema: only and always of custom tools")?;
        require(!is_own || tool["input_schema"]["type"] == "object", "tools.input_schema.type: field required")?;
        anthropic_names(&tool["input_schema"])?;
        let top = ["oneOf", "allOf", "anyOf"].iter().any(|keyword| !tool["input_schema"][*keyword].is_null());
        require(!top, "input_schema does not support oneOf, allOf, or anyOf at the top level")?;
        if tool["strict"] == true {
            strict += 1;
            complexity.add(&tool["input_schema"])?;
        }
        let domains = ["allowed_domains", "blocked_domains"].map(|list| tool[list].is_array());
        require(domains != [true, true], "tools: allowed_domains and blocked_domains cannot be used together")?;
    }
    require(strict <= 20, "tools: at most 20 strict tools")?;
    let format = &body["output_config"]["format"]["schema"];
    if !format.is_null() {
        require(format["type"] == "object", "output_config.format.schema: an object")?;
        anthropic_names(format)?;
        complexity.add(format)?;
    }
    complexity.check()?;
    let cites = body["messages"].to_string().contains(r#""citations":{"enabled":true}"#);
    let rule = "citations cannot be used with output_config.format";
    require(!cites || body["output_config"]["format"].is_null(), rule)?;
    let all = body["messages"].as_array().ok_or("messages: field required")?;
    messages(all, body["model"].as_str().unwrap_or_default())?;
    require(body["thinking"]["type"] != "enabled" || turn_begins_with_thinking(all), THINKING_FIRST)
}

const THINKING_FIRST: &str = "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceding the lastmost set of \
     `tool_use` and `tool_result` blocks)";

/// Returns whether the turn to which the last results belong begins with thinking.
fn turn_begins_with_thinking(messages: &[Value]) -> bool {
    let has_results = |message: &Value| message["content"][0]["type"] == "tool_result";
    if !messages.last().is_some_and(has_results) {
        return true;
    }
    let begin = messages.iter().rposition(|message| message["role"] == "user" && !has_results(message));
    let first = begin.and_then(|begin| messages.get(begin + 1));
    first.is_some_and(|first| first["content"][0]["type"].as_str().is_some_and(is_thinking))
}

/// Returns whether an answer has work of the provider's own tools, within which it may have paused.
fn is_paused(message: &Value) -> bool {
    let is_own = |block: &Value| matches!(block["type"].as_str(), Some("server_tool_use" | "mcp_tool_use"));
    message["content"].as_array().into_iter().flatten().any(is_own)
}

fn is_thinking(kind: &str) -> bool {
    matches!(kind, "thinking" | "redacted_thinking")
}

fn messages(messages: &[Value], model: &str) -> Result<(), String> {
    require(messages.first().is_some_and(|first| first["role"] == "user"), "first message must use the user role")?;
    let ends = messages.last().is_some_and(|last| last["role"] == "user" || is_paused(last));
    require(
        ends,
        "This model does not support assistant message prefill. The conversation must end with a user message",
    )?;
    let (mut open, mut provided, mut known): (HashSet<&str>, HashSet<&str>, HashSet<&str>) = Default::default();
    for message in messages {
        let blocks = message["content"].as_array().ok_or("content: must be a list here")?;
        require(!blocks.is_empty(), "messages: all messages must have non-empty content")?;
        let mut after_results = false;
        for block in blocks {
            let kind = block["type"].as_str().unwrap_or_default();
            match (message["role"].as_str(), kind) {
                (_, "text") => {
                    let text = block["text"].as_str().unwrap_or_default();
                    require(!text.trim().is_empty(), "text content blocks must contain non-whitespace text")?;
                    after_results = true;
                }
                (Some("assistant"), "tool_use") => {
                    require(block["input"].is_object(), "tool_use.input: Input should be a valid dictionary")?;
                    let id = block["id"].as_str().unwrap_or_default();
                    require(is_name(id), "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")?;
                    require(open.insert(id) && known.insert(id), "tool_use ids must be unique")?;
                }
                (Some("assistant"), "thinking") => {
                    let signature = block["signature"].as_str().unwrap_or_default();
                    require(!signature.is_empty(), "thinking.signature: Field required")?;
                    require(is_of(signature, model), "Invalid `signature` in `thinking` block")?;
                    require(
                        block["cache_control"].is_null(),
                        "thinking.cache_control: Extra inputs are not permitted",
                    )?;
                }
                (Some("user"), "image" | "document") => {
                    file(block)?;
                    after_results = true;
                }
                (Some("user"), "tool_result") => {
                    require(!after_results, "tool_result blocks must come first in the content")?;
                    result_content(&block["content"])?;
                    let id = block["tool_use_id"].as_str().unwrap_or_default();
                    require(open.remove(id), "unexpected tool_use_id in tool_result blocks")?;
                }
                (Some("assistant"), "redacted_thinking") => {
                    let data = block["data"].as_str().unwrap_or_default();
                    require(!data.is_empty() && is_of(data, model), "Invalid `data` in `redacted_thinking` block")?;
                }
                (Some("assistant"), "server_tool_use" | "mcp_tool_use") => {
                    require(block["input"].is_object(), "server_tool_use.input: Input should be a valid dictionary")?;
                    provided.insert(block["id"].as_str().unwrap_or_default());
                }
                (Some("assistant"), kind) if kind.ends_with("_tool_result") => {
                    let id = block["tool_use_id"].as_str().unwrap_or_default();
                    require(provided.remove(id), "the result has no corresponding server_tool_use block before it")?;
                }
                (role, kind) => return Err(format!("{role:?} may not send `{kind}`")),
            }
        }
        let last = blocks.last().and_then(|block| block["type"].as_str()).unwrap_or_default();
        let rule = "The final block in an assistant message cannot be `thinking`";
        require(message["role"] != "assistant" || !is_thinking(last), rule)?;
        if message["role"] == "user" {
            require(open.is_empty(), "tool_use ids were found without tool_result blocks immediately after")?;
        }
    }
    require(open.is_empty(), "tool_use ids were found without tool_result blocks immediately after")
}

/// Checks the content of a result: a text, or blocks of texts, pictures and documents.
fn result_content(content: &Value) -> Result<(), String> {
    for block in content.as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some("text") => require(block["text"].is_string(), "tool_result.content.text: Field required")?,
            Some("image" | "document") => file(block)?,
            other => return Err(format!("tool_result.content: `{}` is not allowed", other.unwrap_or_default())),
        }
    }
    let is_content =
        content.is_null() || content.is_string() || content.as_array().is_some_and(|list| !list.is_empty());
    require(is_content, "tool_result.content: Input should be a valid string or list")
}

/// Checks a picture or a document.
fn file(block: &Value) -> Result<(), String> {
    let (source, is_image) = (&block["source"], block["type"] == "image");
    let holds = match source["type"].as_str() {
        Some("base64") => {
            let media_type = source["media_type"].as_str().unwrap_or_default();
            let is_valid = if is_image {
                matches!(media_type, "image/jpeg" | "image/png" | "image/gif" | "image/webp")
            } else {
                media_type == "application/pdf"
            };
            is_valid && source["data"].as_str().is_some_and(|data| !data.is_empty() && data.len() % 4 == 0)
        }
        Some("text") => !is_image && source["media_type"] == "text/plain" && source["data"].is_string(),
        Some("url") => source["url"].as_str().is_some_and(|url| url.starts_with("http")),
        Some("file") => source["file_id"].is_string(),
        _ => false,
    };
    require(holds, "source: Input does not match any of the expected kinds")
}

/// Counts the blocks, tools and system blocks with a mark.
fn marks(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(marks).sum(),
        Value::Object(fields) => {
            usize::from(fields.contains_key("cache_control")) + fields.values().map(marks).sum::<usize>()
        }
        _ => 0,
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-'))
}
