//! Bounds of integer formats, such as `uint32`, which `schemars` writes and validators ignore.

use serde_json::{Map, Value};

/// Returns a schema in which each integer format has its bounds, unless the schema sets them itself.
#[must_use]
pub fn with_integer_bounds(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let bounded = |(name, value): (&String, &Value)| {
                let is_value = matches!(name.as_str(), "const" | "default" | "enum" | "examples");
                (name.clone(), if is_value { value.clone() } else { with_integer_bounds(value) })
            };
            let mut fields: Map<_, _> = fields.iter().map(bounded).collect();
            let bounds = fields.get("format").and_then(Value::as_str).and_then(bounds);
            if let Some((least, most)) = bounds.filter(|_| fields.contains_key("type")) {
                fields.entry("minimum").or_insert(least);
                fields.entry("maximum").or_insert(most);
            }
            fields.into()
        }
        Value::Array(items) => items.iter().map(with_integer_bounds).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

fn bounds(format: &str) -> Option<(Value, Value)> {
    Some(match format {
        "uint8" => (0.into(), u8::MAX.into()),
        "uint16" => (0.into(), u16::MAX.into()),
        "uint32" => (0.into(), u32::MAX.into()),
        "uint64" | "uint" => (0.into(), u64::MAX.into()),
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "int64" | "int" => (i64::MIN.into(), i64::MAX.into()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::check_json;

    #[test]
    fn integers_beyond_their_format_are_refused() {
        let schema = json!({ "properties": { "amount": { "type": "integer", "format": "uint32", "minimum": 1 } } });
        let check = |amount: Value| check_json(&schema, &json!({ "amount": amount }));

        assert_eq!(check(u32::MAX.into()), Ok(()));
        assert_eq!(
            check(4_294_967_296_u64.into()).unwrap_err(),
            "at `/amount`: 4294967296 is greater than the maximum of 4294967295"
        );
        assert!(check(0.into()).is_err(), "the schema's own bound counts");
    }

    #[test]
    fn values_within_a_schema_stay_as_they_are() {
        let schema =
            json!({ "const": { "type": "x", "format": "int8" }, "properties": { "format": { "type": "string" } } });

        assert_eq!(with_integer_bounds(&schema), schema);
    }
}
