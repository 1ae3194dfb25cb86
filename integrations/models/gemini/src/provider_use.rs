//! Reader for what the provider's own tools did.
//!
//! A program and its output are two parts in a row, and so are a call and its response where a request has both kinds of tools.
//! They become one entry, whose data has both parts.

use positronic_core::record::{Part, ProviderToolUse};
use positronic_model_http::lenient::{list, object, text};
use serde_json::{Map, Value, json};

use crate::wire::ITEM;

/// The fields of a part with a call, each with that of the part with its result.
const FIELDS: [(&str, &str); 2] = [("executableCode", "codeExecutionResult"), ("toolCall", "toolResponse")];

/// Adds a part that tells what a tool of the provider did, and returns whether it is such a part.
pub(crate) fn add(parts: &mut Vec<Part>, part: &Map<String, Value>) -> bool {
    for (call, result) in FIELDS {
        if let Some(call) = part.get(call).filter(|call| call.is_object()) {
            parts.push(entry(part, read_call(call)));
            return true;
        }
        if let Some(value) = part.get(result).filter(|result| result.is_object()) {
            let open = parts.last_mut().and_then(|last| open_call(last, call, value));
            if let Some(used) = open {
                read_result(used, value);
                if let Some(item) = used.data.as_mut().and_then(|data| data.get_mut(ITEM)) {
                    *item = json!([item.take(), part]);
                }
            } else {
                let mut used = ProviderToolUse::new(tool_name(value));
                read_result(&mut used, value);
                parts.push(entry(part, used));
            }
            return true;
        }
    }
    false
}

/// Returns the entry of a call if this is its result.
fn open_call<'a>(last: &'a mut Part, call: &str, result: &Value) -> Option<&'a mut ProviderToolUse> {
    let Part::ProviderTool(used) = last else { return None };
    let call = used.data.as_ref()?.get(ITEM)?.get(call)?;
    (call.get("id") == result.get("id")).then_some(used)
}

/// Returns an entry with its part, whose kind is at the top as for parts that only the provider understands.
fn entry(part: &Map<String, Value>, used: ProviderToolUse) -> Part {
    let kind = part.keys().find(|name| !name.starts_with("thought"));
    let mut used = used;
    used.data = Some(json!({ "type": kind, ITEM: part }));
    Part::ProviderTool(Box::new(used))
}

fn read_call(call: &Value) -> ProviderToolUse {
    let mut used = ProviderToolUse::new(tool_name(call));
    let words = |args: &Value| {
        let list = ["queries", "urls"].into_iter().find_map(|name| list(args, name));
        let list = list.map(|list| list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; "));
        list.filter(|words| !words.is_empty()).unwrap_or_else(|| args.to_string())
    };
    used.input = text(call, "code").map(str::to_owned).or_else(|| object(call, "args").map(words));
    used
}

fn tool_name(value: &Value) -> String {
    match text(value, "toolType") {
        None | Some("CODE_EXECUTION") => "code_execution".to_owned(),
        Some(kind) if kind.starts_with("GOOGLE_SEARCH") => "web_search".to_owned(),
        Some("URL_CONTEXT") => "web_fetch".to_owned(),
        Some(other) => other.to_ascii_lowercase(),
    }
}

fn read_result(used: &mut ProviderToolUse, result: &Value) {
    let output = text(result, "output").map(|output| output.trim_end().to_owned());
    match text(result, "outcome") {
        None | Some("OUTCOME_OK") => used.output = output,
        Some(outcome) => used.error = Some(output.unwrap_or_else(|| outcome.to_owned())),
    }
}
