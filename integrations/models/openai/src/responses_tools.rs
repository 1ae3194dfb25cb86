//! Tools of the provider in the Responses API: their declarations, and what they did.

use indexmap::IndexSet;
use positronic_core::record::{Citation, ModelError, ModelErrorKind, ProviderTool, ProviderToolUse, WebSearchOptions};
use positronic_model_http::MAX_ITEMS;
use positronic_model_http::lenient::{Json, object, objects, text};
use serde_json::{Value, json};

/// Encodes a tool of the provider.
///
/// # Errors
///
/// [`Unsupported`](ModelErrorKind::Unsupported) for a tool or an option that the API does not have.
pub(super) fn declaration(tool: &ProviderTool) -> Result<Value, ModelError> {
    let refuse = |sentence: &str| Err(ModelError::new(ModelErrorKind::Unsupported, sentence));
    match tool {
        ProviderTool::WebSearch(WebSearchOptions { max_uses: Some(_), .. }) => refuse(
            "the Responses API has no `max_uses` for `web_search`; leave it out, or set `max_tool_calls` in `extra`",
        ),
        ProviderTool::WebSearch(WebSearchOptions { blocked_domains, .. }) if !blocked_domains.is_empty() => {
            refuse("the Responses API has no `blocked_domains` for `web_search`; use `allowed_domains`")
        }
        ProviderTool::WebSearch(WebSearchOptions { allowed_domains, .. }) if !allowed_domains.is_empty() => {
            Ok(json!({ "type": "web_search", "filters": { "allowed_domains": allowed_domains } }))
        }
        ProviderTool::WebSearch(_) => Ok(json!({ "type": "web_search" })),
        ProviderTool::WebFetch => {
            refuse("the Responses API has no tool `web_fetch`; its `web_search` opens pages, too")
        }
        ProviderTool::CodeExecution => Ok(json!({ "type": "code_interpreter", "container": { "type": "auto" } })),
        ProviderTool::ImageGeneration => Ok(json!({ "type": "image_generation" })),
        ProviderTool::Raw { tool } => Ok(tool.clone()),
        other => refuse(&format!(
            "the adapter of the Responses API does not know the tool {other:?}; use `ProviderTool::Raw`"
        )),
    }
}

/// Returns what the answer has to include so that people see what the tools did.
pub(super) fn includes(tools: &[ProviderTool]) -> impl Iterator<Item = &'static str> {
    tools.iter().filter_map(|tool| match tool {
        ProviderTool::WebSearch(_) => Some("web_search_call.action.sources"),
        ProviderTool::CodeExecution => Some("code_interpreter_call.outputs"),
        _ => None,
    })
}

/// Reads what a tool of the provider did; `None` for an item of another type.
pub(super) fn tool_use(item: &Value) -> Option<ProviderToolUse> {
    let owned = |value: &Value, name: &str| text(value, name).map(str::to_owned);
    let mut used = match text(item, "type")? {
        "web_search_call" => {
            let action = item.get("action").unwrap_or(&Value::Null);
            let mut used = ProviderToolUse::new("web_search");
            let queries = || {
                let several = action.get("queries").and_then(Value::as_array).into_iter().flatten();
                let several: Vec<_> = several.filter_map(Value::as_str).collect();
                Some(several.join("; ")).filter(|queries| !queries.is_empty())
            };
            used.input = match (owned(action, "pattern"), owned(action, "url")) {
                (Some(pattern), Some(url)) => Some(format!("{pattern} in {url}")),
                (pattern, url) => owned(action, "query").or_else(queries).or(url).or(pattern),
            };
            let source = |source: &Value| Citation::new(owned(source, "url"), None, None);
            used.sources = objects(action, "sources").iter().map(source).collect();
            used
        }
        "code_interpreter_call" => {
            let mut used = ProviderToolUse::new("code_execution");
            used.input = owned(item, "code");
            let outputs: Vec<_> = objects(item, "outputs")
                .iter()
                .filter_map(|out| text(out, "logs").or_else(|| text(out, "url")))
                .collect();
            used.output = Some(outputs.join("\n")).filter(|output| !output.is_empty());
            used
        }
        "file_search_call" => {
            let mut used = ProviderToolUse::new("file_search");
            let queries = item.get("queries").and_then(Value::as_array).into_iter().flatten();
            let queries: Vec<_> = queries.filter_map(Value::as_str).collect();
            used.input = Some(queries.join("; ")).filter(|queries| !queries.is_empty());
            let source = |found: &Value| Citation::new(None, owned(found, "filename"), owned(found, "text"));
            used.sources = objects(item, "results").iter().map(source).collect();
            used
        }
        "mcp_call" => {
            let mut used = ProviderToolUse::new(owned(item, "name").unwrap_or_else(|| "mcp".to_owned()));
            (used.input, used.output) = (owned(item, "arguments"), owned(item, "output"));
            used.error = item.get("error").filter(|error| !error.is_null()).map(Value::to_string);
            used
        }
        _ => return None,
    };
    if text(item, "status") == Some("failed") {
        used.error.get_or_insert_with(|| "it failed".to_owned());
    }
    used.data = Some(item.clone());
    Some(used)
}

/// Reads the sources of a text: of a message's content in this API, or of a message in chat completions.
pub(super) fn citations<J: Json>(content: &J) -> Vec<Citation> {
    let found: IndexSet<Citation> =
        objects(content, "annotations").iter().filter_map(citation).take(MAX_ITEMS).collect();
    found.into_iter().collect()
}

/// Returns whether a text has a source.
pub(super) fn is_cited<J: Json>(content: &J) -> bool {
    objects(content, "annotations").iter().any(|annotation| citation(annotation).is_some())
}

fn citation<J: Json>(annotation: &J) -> Option<Citation> {
    let kind = text(annotation, "type")?;
    let fields = object(annotation, kind).unwrap_or(annotation);
    let field = |name: &str| text(fields, name).map(str::to_owned);
    let url = field("url");
    let title = field("title").or_else(|| field("filename"));
    (url.is_some() || title.is_some()).then(|| Citation::new(url, title, field("content")))
}
