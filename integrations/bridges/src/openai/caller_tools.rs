//! The tools of a request: functions that the caller runs itself.

use positronic_core::record::CallerTool;
use positronic_server::Problem;
use serde_json::Value;

use super::error::{invalid, unsupported};

/// What a request says about tools.
pub(super) struct GivenTools<'a> {
    pub(super) tools: Option<&'a [Value]>,
    pub(super) choice: Option<&'a Value>,
    pub(super) parallel: Option<bool>,
}

/// Reads the tools of a request. `field` is the one of a tool with its name, if that is not in the tool itself.
pub(super) fn caller_tools(given: &GivenTools<'_>, field: Option<&str>) -> Result<Vec<CallerTool>, Problem> {
    let tools = match given.choice {
        None | Some(Value::Null) => given.tools.unwrap_or_default(),
        Some(Value::String(choice)) if choice == "auto" => given.tools.unwrap_or_default(),
        Some(Value::String(choice)) if choice == "none" => &[],
        Some(_) => {
            return Err(unsupported("tool_choice", "the brain decides which tools are called; send `auto` or `none`"));
        }
    };
    if tools.is_empty() {
        return Ok(Vec::new());
    }
    if given.parallel == Some(false) {
        return Err(unsupported("parallel_tool_calls", "an answer may have several calls"));
    }
    tools.iter().map(|tool| read(tool, field)).collect()
}

fn read(tool: &Value, field: Option<&str>) -> Result<CallerTool, Problem> {
    let kind = tool.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind != "function" {
        return Err(unsupported(
            "tools",
            &format!("a caller gives functions, and this is `{kind}`; the brain has its own tools"),
        ));
    }
    let function = field
        .map_or(Some(tool), |field| tool.get(field))
        .ok_or_else(|| invalid("tools", "a function has no `function`"))?;
    let text = |name: &str| function.get(name).and_then(Value::as_str).unwrap_or_default();
    let schema = function.get("parameters").filter(|schema| !schema.is_null()).cloned();
    let schema = schema.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    CallerTool::new(text("name"), text("description"), schema).map_err(|error| invalid("tools", &error.to_string()))
}
