//! Fields for entering a value of a schema one by one, if possible.

use serde_json::{Map, Value};

use super::schema::{Kind, Shape, bare};

/// One value to enter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OptionEntry {
    /// The field of an object; `None` for a single value.
    pub(crate) name: Option<String>,
    pub(crate) required: bool,
    pub(crate) expected: String,
    /// Whether it is a boolean.
    pub(crate) flag: bool,
    /// The options of a choice.
    pub(crate) choices: Vec<String>,
    schema: Value,
}

/// Maximum number of fields that are asked one by one.
const FIELDS: usize = 8;

/// Lists the fields to ask for; `None` if only JSON can express the value.
pub(crate) fn entries(schema: &Value) -> Option<Vec<OptionEntry>> {
    let shape = Shape::of(schema, schema);
    if is_simple(&shape) {
        return Some(vec![entry(None, &shape, true)]);
    }
    let properties = shape.properties();
    let simple = shape.is_object() && (1..=FIELDS).contains(&properties.len());
    if !simple || !properties.iter().all(|(_, inner, _)| is_simple(inner)) {
        return None;
    }
    Some(properties.iter().map(|(name, inner, required)| entry(Some((*name).to_owned()), inner, *required)).collect())
}

/// Parses an entered value; the error states the expected format.
pub(crate) fn read_entry(entry: &OptionEntry, text: &str) -> Result<Value, String> {
    Shape::of(&entry.schema, &entry.schema).read(text)
}

/// Creates an example value of a schema.
pub(crate) fn sample(schema: &Value) -> Value {
    value_of(&Shape::of(schema, schema))
}

fn value_of(shape: &Shape<'_>) -> Value {
    if !shape.is_object() {
        return shape.read(&shape.sample()).unwrap_or_default();
    }
    let required = shape.properties().into_iter().filter(|(_, _, required)| *required);
    Value::Object(required.map(|(name, inner, _)| (name.to_owned(), value_of(&inner))).collect::<Map<_, _>>())
}

const fn is_simple(shape: &Shape<'_>) -> bool {
    matches!(shape.kind, Kind::Text | Kind::Choice(_) | Kind::Integer | Kind::Number | Kind::Flag)
}

fn entry(name: Option<String>, shape: &Shape<'_>, required: bool) -> OptionEntry {
    let choices = match &shape.kind {
        Kind::Choice(choices) => choices.iter().map(|choice| bare(choice)).collect(),
        _ => Vec::new(),
    };
    let flag = matches!(shape.kind, Kind::Flag);
    OptionEntry { name, required, expected: shape.expected(), flag, choices, schema: shape.own() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flat_object_is_asked_field_by_field() {
        let schema = json!({
            "type": "object",
            "properties": {"text": {"type": "string"}, "stars": {"$ref": "#/$defs/Stars"}},
            "required": ["text"],
            "$defs": {"Stars": {"type": "integer", "minimum": 1}}
        });

        let entries = entries(&schema).unwrap();

        let asked: Vec<_> = entries.iter().map(|entry| (entry.name.clone().unwrap(), entry.required)).collect();
        assert_eq!(asked, [("text".to_owned(), true), ("stars".to_owned(), false)]);
        assert_eq!(read_entry(&entries[1], "5"), Ok(json!(5)));
        assert_eq!(read_entry(&entries[1], "x"), Err("a whole number, at least 1".to_owned()));
        assert_eq!(sample(&schema), json!({"text": "text"}));
    }

    #[test]
    fn nested_values_are_asked_as_json() {
        let nested = json!({"type": "object", "properties": {"a": {"type": "array"}}});

        assert_eq!(entries(&nested), None);
        assert_eq!(entries(&json!(true)), None);
        assert_eq!(entries(&json!({"type": "string"})).unwrap().len(), 1);
    }
}
