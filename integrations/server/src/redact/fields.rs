//! Redaction of the values of fields, by their names.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::mark::REDACTED;
use super::text::{is_path_of, redacted_inside};

/// The fields of the API, and of bridges to other protocols, with JSON schemas, which only declare fields.
const SCHEMAS: &[&str] = &["arguments_schema", "options_schema", "parameters", "responseSchema", "schema"];
/// The fields of the API with values of models, tools and people. Such a value may look like a schema.
const DATA: &[&str] = &[
    "arguments",
    "data",
    "default_options",
    "edited",
    "input",
    "options",
    "otherwise",
    "output",
    "payload",
    "replaced",
    "reply",
    "result",
    "state",
    "update",
    "value",
];

/// How deep texts with JSON may be in each other: each may nest 128 values again, and the stack is limited.
const MAX_TEXTS: usize = 4;

/// What a field of the API has: fields of its own, a schema that declares fields, or a value of a model, a tool or a person.
#[derive(Clone, Copy, PartialEq)]
enum FieldKind {
    Answer,
    Schema,
    Data,
}

impl FieldKind {
    /// Returns the kind of a field within one of this kind.
    fn field(self, name: &str) -> Self {
        match self {
            Self::Answer if SCHEMAS.contains(&name) => Self::Schema,
            Self::Answer if DATA.contains(&name) => Self::Data,
            kind => kind,
        }
    }
}

/// Returns a function for [`OptionsBuilder::redact`](crate::OptionsBuilder::redact) that replaces the values of fields with
/// these names, at any depth, by [`REDACTED`], also in JSON that is a part of a text. Fields that a schema of the API declares
/// stay.
pub fn redact_fields(
    names: impl IntoIterator<Item = impl Into<String>>,
) -> impl Fn(&mut Value) + Clone + Send + Sync + 'static {
    let names: Arc<[String]> = names.into_iter().map(Into::into).collect();
    move |value| redact(&names, value, FieldKind::Answer, MAX_TEXTS)
}

fn redact(names: &[String], value: &mut Value, kind: FieldKind, texts: usize) {
    match value {
        Value::Object(fields) => {
            let is_schema =
                kind == FieldKind::Schema && fields.get("type").is_some_and(|declared| declared == "object");
            if is_change_of(names, fields)
                && let Some(value) = fields.get_mut("value")
            {
                *value = REDACTED.into();
            }
            for (name, value) in fields {
                match value {
                    Value::Object(declared) if is_schema && name == "properties" => {
                        for (name, value) in declared {
                            redact_field(names, if value.is_object() { "" } else { name }, value, kind, texts);
                        }
                    }
                    value => redact_field(names, name, value, kind.field(name), texts),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(names, item, kind, texts)),
        Value::String(text) => {
            // A text is of a model or a person; what it says about schemas does not count.
            let inside = |value: &mut Value| redact(names, value, FieldKind::Data, texts.saturating_sub(1));
            let is_too_deep = texts == 0 && text.contains('{');
            let redacted = if is_too_deep { Some(REDACTED.to_owned()) } else { redacted_inside(names, text, inside) };
            if let Some(redacted) = redacted {
                *text = redacted;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns whether an operation of a JSON Patch (RFC 6902) sets one of the fields, or a part of it: its path has the name.
fn is_change_of(names: &[String], fields: &Map<String, Value>) -> bool {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let (Some("add" | "replace" | "test"), Some(path)) = (text("op"), text("path")) else { return false };
    is_path_of(names, path)
}

fn redact_field(names: &[String], name: &str, value: &mut Value, kind: FieldKind, texts: usize) {
    if names.iter().any(|known| known == name) {
        *value = REDACTED.into();
    } else {
        redact(names, value, kind, texts);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn declared_fields_of_a_schema_stay_and_a_value_that_looks_like_one_does_not() {
        let redact = redact_fields(["iban"]);
        let schema = json!({ "type": "object", "properties": { "iban": { "type": "string" } } });
        let mut value = json!({ "arguments_schema": schema, "arguments": schema });
        redact(&mut value);
        assert_eq!(value["arguments_schema"], schema);
        assert_eq!(value["arguments"]["properties"]["iban"], REDACTED);
    }

    #[test]
    fn changes_of_a_redacted_field_are_redacted() {
        let redact = redact_fields(["iban", "a/b"]);
        let patch = |first: &str, second: &str| {
            json!([
                { "op": "add", "path": "/to/iban", "value": first },
                { "op": "replace", "path": "/a~1b/0", "value": second },
                { "op": "replace", "path": "/to/ibans", "value": "plain" },
                { "op": "remove", "path": "/to/iban" },
            ])
        };
        let mut value = json!({ "changes": patch("DE02", "DE03") });
        redact(&mut value);
        assert_eq!(value, json!({ "changes": patch(REDACTED, REDACTED) }));
    }
}
