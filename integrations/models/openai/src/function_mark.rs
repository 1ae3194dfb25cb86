//! Parser for the calls that Qwen3-Coder writes into its text.
//!
//! ```text
//! <tool_call>
//! <function=look>
//! <parameter=city>
//! Oslo
//! </parameter>
//! </function>
//! </tool_call>
//! ```
//!
//! A value has no quotes, so the schema of the tool says what it is: where a string is allowed, the value is that text; otherwise it is JSON.

use positronic_core::record::{ProposedCall, ToolSet};
use serde::de::IgnoredAny;
use serde_json::Value;

const FUNCTION: &str = "<function=";
const FUNCTION_END: &str = "</function>";
const PARAMETER: &str = "<parameter=";
const PARAMETER_END: &str = "</parameter>";
/// The maximum depth of the search for types in a schema, whose references may be cyclic.
const MAX_DEPTH: usize = 8;

/// Reads the content of a `<tool_call>`; `None` if it has another form.
pub(super) fn call(inner: &str, tools: &ToolSet) -> Option<ProposedCall> {
    let (name, mut rest) = inner.trim().strip_prefix(FUNCTION)?.split_once('>')?;
    let name = name.trim();
    let schema = tools.find(name).map_or(&Value::Null, |tool| &*tool.parameters);
    let mut arguments: Vec<String> = Vec::new();
    while let Some((key, begun)) = rest.trim_start().strip_prefix(PARAMETER).and_then(|rest| rest.split_once('>')) {
        let (value, after) = split_value(begun);
        rest = after;
        let key = key.trim();
        let property = schema.get("properties").and_then(|properties| properties.get(key));
        arguments.push(format!("{}:{}", Value::from(key), as_json(value, property, schema)));
    }
    // The end may be the token that ends the answer.
    let is_whole = matches!(rest.trim(), "" | FUNCTION_END);
    let arguments = format!("{{{}}}", arguments.join(","));
    is_whole.then(|| ProposedCall { provider_id: None, name: name.to_owned(), arguments, data: None })
}

/// Splits a value, without the line breaks around it, from what follows. A model may forget the end of a value.
fn split_value(begun: &str) -> (&str, &str) {
    let (value, after) = begun.split_once(PARAMETER_END).unwrap_or_else(|| {
        let next = [PARAMETER, FUNCTION_END].iter().filter_map(|mark| begun.find(mark)).min();
        begun.split_at_checked(next.unwrap_or(begun.len())).unwrap_or((begun, ""))
    });
    let value = value.strip_prefix('\n').unwrap_or(value);
    (value.strip_suffix('\n').unwrap_or(value), after)
}

/// Returns the JSON of a value. One that its schema does not allow becomes a string, which the validation of the arguments refuses.
fn as_json(text: &str, property: Option<&Value>, root: &Value) -> String {
    let mut types = Vec::new();
    add_types(property.unwrap_or(&Value::Null), root, 0, &mut types);
    let (trimmed, allows) = (text.trim(), |kind| types.contains(&kind));
    if allows("boolean") && ["true", "false"].iter().any(|word| trimmed.eq_ignore_ascii_case(word)) {
        return trimmed.to_ascii_lowercase();
    }
    let is_json = match allows("string") {
        true => trimmed == "null" && allows("null"),
        // The text of a number stays as it is, since a value would round it.
        false => serde_json::from_str::<IgnoredAny>(trimmed).is_ok(),
    };
    if is_json { trimmed.to_owned() } else { Value::from(text).to_string() }
}

/// Adds the types that a schema allows; none if it does not say.
fn add_types<'s>(schema: &'s Value, root: &'s Value, depth: usize, types: &mut Vec<&'s str>) {
    let Some(fields) = schema.as_object().filter(|_| depth < MAX_DEPTH) else { return };
    let list = |name: &str| fields.get(name).and_then(Value::as_array).into_iter().flatten();
    types.extend(fields.get("type").and_then(Value::as_str));
    types.extend(list("type").filter_map(Value::as_str));
    types.extend(list("enum").chain(fields.get("const")).map(|value| -> &'s str { type_of(value) }));
    let target = fields.get("$ref").and_then(Value::as_str).and_then(|target| root.pointer(target.strip_prefix('#')?));
    for part in ["anyOf", "oneOf", "allOf"].into_iter().flat_map(list).chain(target) {
        add_types(part, root, depth + 1, types);
    }
}

const fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use positronic_core::record::{CallFlags, ToolDecl, ToolId};

    fn tools() -> ToolSet {
        let parameters = json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "note": {"type": ["string", "null"]},
                "unit": {"$ref": "#/$defs/Unit"},
                "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "exact": {"type": "boolean"},
                "places": {"type": "array", "items": {"type": "string"}},
                "any": true,
            },
            "$defs": {"Unit": {"enum": ["C", "F"]}},
        });
        ToolSet::new(vec![ToolDecl {
            id: ToolId::new("look.up").unwrap(),
            title: None,
            description: String::new(),
            parameters: Arc::new(parameters),
            flags: CallFlags::default(),
        }])
    }

    fn arguments(parameters: &str) -> String {
        let call = call(&format!("\n<function=look_up>\n{parameters}\n</function>\n"), &tools()).unwrap();
        assert_eq!(call.name, "look_up");
        call.arguments
    }

    #[test]
    fn values_have_the_types_of_the_schema() {
        for (key, value, read) in [
            ("city", "Oslo", r#""Oslo""#),
            ("city", "5", r#""5""#),
            ("city", "{\"a\": 1}", r#""{\"a\": 1}""#),
            ("city", "null", r#""null""#),
            ("city", "  fn main() {\n  }\n", r#""  fn main() {\n  }\n""#),
            ("note", "null", "null"),
            ("note", "7", r#""7""#),
            ("unit", "C", r#""C""#),
            ("days", "3", "3"),
            ("days", "12345678901234567890123", "12345678901234567890123"),
            ("days", "null", "null"),
            ("days", "three", r#""three""#),
            ("exact", "True", "true"),
            ("places", "[\"Oslo\", \"Rome\"]", r#"["Oslo", "Rome"]"#),
            ("any", "{\"a\": 1}", r#"{"a": 1}"#),
            ("any", "words", r#""words""#),
            ("unknown", "", r#""""#),
        ] {
            let written = format!("<parameter={key}>\n{value}\n</parameter>");
            assert_eq!(arguments(&written), format!("{{\"{key}\":{read}}}"), "{key}: {value}");
        }
    }

    #[test]
    fn parameters_need_no_line_breaks_and_no_end() {
        let both = r#"{"city":"Oslo","days":3}"#;
        assert_eq!(arguments("<parameter=city>Oslo</parameter><parameter=days>3</parameter>"), both);
        assert_eq!(arguments("<parameter=city>\nOslo\n<parameter=days>\n3"), both);
        assert_eq!(arguments(""), "{}");
        let cut = call("<function=look_up>\n<parameter=city>\nOslo\n</parameter>", &tools()).unwrap();
        assert_eq!(cut.arguments, r#"{"city":"Oslo"}"#);
    }

    #[test]
    fn other_content_is_no_call() {
        for inner in
            ["<function=look_up", "<function=look_up>words</function>", "<parameter=city>Oslo</parameter>", "{}"]
        {
            assert!(call(inner, &tools()).is_none(), "{inner}");
        }
    }
}
