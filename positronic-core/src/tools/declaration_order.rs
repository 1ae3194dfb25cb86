//! The declared order of fields in the schema of a type.

use serde_json::Value;

use crate::record::{PROPERTY_ORDERING, property_order};

/// Records in `schema` the order in which a type declares its fields, where `required` does not give it.
///
/// `written` is the serialization schema. It requires nearly all fields, in declaration order, while the deserialization
/// schema omits optional ones. Fields that serialization may omit come last.
pub(super) fn record_order(schema: &mut Value, written: &Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                let all = property_order(fields, properties);
                let declared = written.get("required").and_then(Value::as_array).into_iter().flatten();
                let declared: Vec<_> =
                    declared.filter_map(Value::as_str).filter(|name| properties.contains_key(*name)).collect();
                let rest = all.iter().copied().filter(|name| !declared.contains(name));
                let ordered: Vec<_> = declared.iter().copied().chain(rest).collect();
                if ordered != all {
                    let ordered = ordered.into_iter().map(Value::from).collect();
                    fields.insert(PROPERTY_ORDERING.to_owned(), ordered);
                }
            }
            for (keyword, value) in fields {
                if let Some(written) = written.get(keyword.as_str()) {
                    record_order(value, written);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                if let Some(written) = written.get(index) {
                    record_order(item, written);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
