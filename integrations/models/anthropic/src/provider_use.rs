//! Reader for what the provider's own tools did, and for the sources of a text.

use positronic_core::record::{Citation, ProviderToolUse};
use positronic_model_http::lenient::{any, list, object, objects, text};
use serde_json::Value;

/// The end of the type of a result's block.
pub(crate) const RESULT: &str = "_tool_result";

/// Returns whether a block of this type is a call of the provider's own tools.
pub(crate) fn is_use(kind: &str) -> bool {
    matches!(kind, "server_tool_use" | "mcp_tool_use")
}

/// Reads a call of a provider's tool and its result, either of which may be in another answer.
pub(crate) fn read(call: Option<&Value>, result: Option<&Value>) -> ProviderToolUse {
    let kind = result.and_then(|result| text(result, "type")).unwrap_or_default();
    let name = call.and_then(|call| text(call, "name")).or(kind.strip_suffix(RESULT)).unwrap_or(kind);
    let mut used = ProviderToolUse::new(match (name, call.and_then(|call| text(call, "server_name"))) {
        ("bash_code_execution" | "text_editor_code_execution", None) => "code_execution".to_owned(),
        (name, None) => name.to_owned(),
        (name, Some(server)) => format!("{server}.{name}"),
    });
    used.input = call.and_then(|call| object(call, "input")).and_then(input_line);
    if let Some(result) = result {
        read_result(&mut used, result);
    }
    used
}

/// Returns what people read of a call's input.
fn input_line(input: &Value) -> Option<String> {
    let command = text(input, "command");
    let line = match (text(input, "path"), command) {
        (Some(path), Some(command)) => Some(format!("{command} {path}")),
        _ => ["query", "url", "code", "pattern"]
            .into_iter()
            .find_map(|field| text(input, field))
            .or(command)
            .map(str::to_owned),
    };
    line.or_else(|| input.as_object().filter(|fields| !fields.is_empty()).map(|_| input.to_string()))
}

fn read_result(used: &mut ProviderToolUse, result: &Value) {
    let Some(content) = any(result, "content") else { return };
    if let Some(code) = text(content, "error_code") {
        used.error = Some(code.to_owned());
        return;
    }
    let items = content.as_array().map(Vec::as_slice).unwrap_or_default();
    used.sources = match text(content, "type") {
        Some("web_fetch_result") => {
            vec![page(content, object(content, "content").and_then(|page| text(page, "title")))]
        }
        _ => {
            items.iter().filter(|item| item.get("url").is_some()).map(|item| page(item, text(item, "title"))).collect()
        }
    };
    let output = output_of(content, items);
    if result.get("is_error").and_then(Value::as_bool).unwrap_or_default() {
        used.error = Some(output.unwrap_or_else(|| "the tool failed".to_owned()));
        return;
    }
    used.output = output;
    used.error = content.get("return_code").and_then(Value::as_i64).filter(|code| *code != 0).map(|code| {
        let reason = text(content, "stderr").map(|stderr| format!(": {}", stderr.trim_end()));
        format!("exit code {code}{}", reason.unwrap_or_default())
    });
}

/// Returns a result as text: what a program wrote, a text, the ids of files.
fn output_of(content: &Value, items: &[Value]) -> Option<String> {
    let texts = items.iter().filter_map(|item| text(item, "text"));
    let lines = list(content, "lines").unwrap_or_default().iter().filter_map(Value::as_str);
    let tools = objects(content, "tool_references").iter().filter_map(|tool| text(tool, "tool_name"));
    let whole = content.as_str().or_else(|| text(content, "content")).into_iter();
    let written = ["stdout", "stderr"].into_iter().filter_map(|name| text(content, name));
    let files = objects(content, "content").iter().filter_map(|file| text(file, "file_id"));
    let lines: Vec<_> = whole
        .chain(texts)
        .chain(written)
        .chain(lines)
        .chain(tools)
        .map(|line| line.trim_end_matches('\n').to_owned())
        .chain(files.map(|id| format!("[file {id}]")))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn page(value: &Value, title: Option<&str>) -> Citation {
    let mut page = Citation::default();
    page.url = text(value, "url").map(str::to_owned);
    page.title = title.map(str::to_owned);
    page
}

/// Reads the citations of a text: of pages, of search results, and of documents.
pub(crate) fn citations(citations: &[Value]) -> Vec<Citation> {
    let read = |citation: &Value| {
        let title = text(citation, "title").or_else(|| text(citation, "document_title"));
        let mut source = page(citation, title);
        source.url = source.url.or_else(|| text(citation, "source").map(str::to_owned));
        source.quote = text(citation, "cited_text").map(str::to_owned);
        source
    };
    citations.iter().map(read).collect()
}
