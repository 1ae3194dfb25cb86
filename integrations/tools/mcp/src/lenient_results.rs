//! Results of servers that deviate from the protocol: what can be read is kept.

use rmcp::model::{CallToolResult, ContentBlock, ServerResult, Tool};
use serde_json::{Map, Value, json};

/// A page of a server's tools.
#[derive(Debug, Default)]
pub(super) struct ToolPage {
    pub(super) tools: Vec<Tool>,
    /// The tools that cannot be read, each with the reason.
    pub(super) skipped: Vec<(String, String)>,
    pub(super) cursor: Option<String>,
}

impl ToolPage {
    /// Reads a page of tools, without those that cannot be read; `None` for another result.
    pub(super) fn read(result: ServerResult) -> Option<Self> {
        if let ServerResult::ListToolsResult(page) = result {
            return Some(Self { tools: page.tools, skipped: Vec::new(), cursor: page.next_cursor });
        }
        let mut fields = fields(&result)?;
        let Some(Value::Array(tools)) = fields.remove("tools") else { return None };
        let mut page =
            Self { cursor: fields.get("nextCursor").and_then(Value::as_str).map(str::to_owned), ..Self::default() };
        for tool in tools {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or("without a name").to_owned();
            match serde_json::from_value(tool) {
                Ok(tool) => page.tools.push(tool),
                Err(error) => page.skipped.push((name, format!("its declaration cannot be read: {error}"))),
            }
        }
        Some(page)
    }
}

/// Reads the result of a call whose content deviates: each block that cannot be read becomes a text with its JSON. The tool has acted,
/// so the model must read what it can.
pub(super) fn call_result(result: &ServerResult) -> Option<CallToolResult> {
    let mut fields = fields(result)?;
    let content = match fields.remove("content") {
        Some(Value::Array(blocks)) => blocks,
        Some(Value::Null) | None if fields.contains_key("structuredContent") => Vec::new(),
        Some(Value::Null) | None => return None,
        Some(other) => vec![other],
    };
    let readable: Vec<_> = content.iter().map(readable).collect();
    let is_error = fields.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let structured = fields.remove("structuredContent").filter(|structured| !structured.is_null());
    let mut kept = json!({ "content": readable, "isError": is_error });
    if let (Some(structured), Some(kept)) = (structured, kept.as_object_mut()) {
        kept.insert("structuredContent".to_owned(), structured);
    }
    serde_json::from_value(kept).ok()
}

fn readable(block: &Value) -> Value {
    let text = match block {
        Value::String(text) => text.clone(),
        block if serde_json::from_value::<ContentBlock>(block.clone()).is_ok() => return block.clone(),
        // A block with a text is one, whatever its type.
        block => match block.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => format!("[content of an unknown kind: {block}]"),
        },
    };
    json!({ "type": "text", "text": text })
}

fn fields(result: &ServerResult) -> Option<Map<String, Value>> {
    match serde_json::to_value(result) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}
