//! Schemas and tools that come from other programs: servers of tools, and callers of runs. They are bounded, and people see what models read.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::schema::Schema;
use crate::record::{CallerTool, ToolId, ToolIdError, check_depth, is_invisible};

/// The maximum characters of the description of another program's tool: some 2,000 tokens, many times the usual size.
const DESCRIPTION: usize = 8 << 10;

/// The maximum number of tools that a caller gives; OpenAI's API allows as many.
const MAX_TOOLS: usize = 128;

/// The maximum bytes of all tools that a caller gives: half a MiB, 4 KiB for each of the maximum number.
const MAX_BYTES: usize = 512 << 10;

/// Makes the schema of another program's tool describe an object, as providers require, removes invisible characters from its annotations,
/// and compiles it.
///
/// # Errors
///
/// A message why the schema is invalid, or why the work of validation cannot be bounded.
pub fn foreign_schema(mut schema: Value) -> Result<Arc<Schema>, String> {
    check_depth(&schema)?;
    show_annotations(&mut schema);
    let Some(fields) = schema.as_object_mut() else { return Err("it is not an object".to_owned()) };
    match fields.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        Some(other) => return Err(format!("its type is {other}, but arguments must be an object")),
        None => _ = fields.insert("type".to_owned(), json!("object")),
    }
    schema.sort_all_objects();
    let schema = Schema::new(schema);
    schema.compile()?;
    Ok(Arc::new(schema))
}

/// Returns the description of another program's tool as far as models read it: its first 8,192 characters, without invisible ones.
#[must_use]
pub fn foreign_description(description: &str) -> String {
    // A model reads invisible characters that people do not see, so no program must hide instructions in them.
    description.chars().filter(|char| !is_invisible(*char)).take(DESCRIPTION).collect()
}

/// The keywords whose texts a model reads and no check does.
const ANNOTATIONS: [&str; 3] = ["description", "title", "$comment"];

/// Removes invisible characters from the annotations of a schema and of all within it.
fn show_annotations(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if ANNOTATIONS.contains(&name.as_str()) => {
                        text.retain(|letter| !is_invisible(letter));
                    }
                    _ if matches!(name.as_str(), "enum" | "const") => {}
                    value => show_annotations(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(show_annotations),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The reason why tools of a caller are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallerToolError {
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] ToolIdError),
    /// The schema cannot be used.
    #[error("the schema of the tool `{tool}` cannot be used: {reason}")]
    Schema {
        /// The tool.
        tool: String,
        /// The reason.
        reason: String,
    },
    /// There are too many tools.
    #[error("{count} tools are too many: a caller may give {MAX_TOOLS}")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// The tools are too large.
    #[error("the tools have more than {MAX_BYTES} bytes together; shorten their descriptions or schemas")]
    TooLarge,
    /// Two tools have names that a provider cannot tell apart.
    #[error("the tools `{0}` and `{1}` would have the same name for a provider; rename one of them")]
    SameName(ToolId, ToolId),
}

impl CallerTool {
    /// Creates a tool from its name, its description, and the JSON schema of its arguments. Invisible characters are removed from texts that
    /// the model reads, and a description is cut to 8,192 characters.
    ///
    /// ```
    /// use positronic_core::record::CallerTool;
    /// use serde_json::json;
    ///
    /// let schema = json!({ "properties": { "city": { "type": "string" } }, "required": ["city"] });
    /// let tool = CallerTool::new("get_weather", "Reads the weather", schema)?;
    /// assert_eq!(tool.parameters()["type"], "object");
    /// # Ok::<(), positronic_core::tools::CallerToolError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CallerToolError::Name`] if the name is no [`ToolId`]; [`CallerToolError::Schema`] if the schema is invalid, does not describe an
    /// object, or the work of checking arguments against it cannot be bounded.
    pub fn new(name: &str, description: &str, schema: Value) -> Result<Self, CallerToolError> {
        let id = ToolId::new(name)?;
        let schema =
            foreign_schema(schema).map_err(|reason| CallerToolError::Schema { tool: name.to_owned(), reason })?;
        let (description, parameters) = (foreign_description(description), Arc::clone(schema.json()));
        Ok(Self { id, description, parameters })
    }
}

/// Checks the tools of a caller together: their number, their size and their names.
pub(crate) fn check_caller_tools(tools: &[CallerTool]) -> Result<(), CallerToolError> {
    if tools.len() > MAX_TOOLS {
        return Err(CallerToolError::TooMany { count: tools.len() });
    }
    let size = |tool: &CallerTool| tool.id.as_str().len() + tool.description.len() + tool.parameters.to_string().len();
    if tools.iter().map(size).sum::<usize>() > MAX_BYTES {
        return Err(CallerToolError::TooLarge);
    }
    let mut seen = HashMap::new();
    match tools.iter().find_map(|tool| seen.insert(tool.id.wire_name(), &tool.id).map(|known| (known, &tool.id))) {
        Some((one, other)) => Err(CallerToolError::SameName(one.clone(), other.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> CallerTool {
        CallerTool::new(name, "", json!({})).unwrap()
    }

    #[test]
    fn schema_of_a_callers_tool_is_bounded_and_describes_an_object() {
        let refused = |schema| CallerTool::new("look", "", schema).unwrap_err().to_string();

        assert!(refused(json!({ "type": "array" })).contains("must be an object"));
        assert!(refused(json!([])).contains("it is not an object"));
        assert!(refused(json!({ "properties": { "a": { "type": 7 } } })).contains("invalid schema"));
        assert!(
            refused(json!({ "properties": { "a": { "pattern": "(a{999}){999}{999}" } } })).contains("cannot be used")
        );
        let deep = (0..200).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }));
        assert!(refused(deep).contains("cannot be used"));
        assert!(CallerTool::new("no spaces", "", json!({})).is_err());
    }

    #[test]
    fn texts_for_the_model_have_no_invisible_characters() {
        let schema = json!({ "properties": { "a": { "description": "x\u{200b}y", "enum": ["p\u{200b}"] } } });
        let made = CallerTool::new("look", &format!("L\u{202e}ook{}", "!".repeat(9000)), schema).unwrap();

        assert!(made.description.starts_with("Look!") && made.description.len() == DESCRIPTION);
        assert_eq!(made.parameters["properties"]["a"], json!({ "description": "xy", "enum": ["p\u{200b}"] }));
    }

    #[test]
    fn tools_of_a_caller_are_bounded_in_number_size_and_names() {
        let many: Vec<_> = (0..=MAX_TOOLS).map(|n| tool(&format!("t{n}"))).collect();
        let large: Vec<_> =
            (0..100).map(|n| CallerTool::new(&format!("t{n}"), &"x".repeat(DESCRIPTION), json!({})).unwrap()).collect();

        assert_eq!(check_caller_tools(&many), Err(CallerToolError::TooMany { count: 129 }));
        assert_eq!(check_caller_tools(&many[1..]), Ok(()));
        assert_eq!(check_caller_tools(&large), Err(CallerToolError::TooLarge));
        let same = check_caller_tools(&[tool("a.b"), tool("c"), tool("a_b")]).unwrap_err();
        assert!(same.to_string().starts_with("the tools `a.b` and `a_b`"), "{same}");
    }
}
