//! JSON from outside: its check against a schema, and the order of its keys.

use serde_json::Value;

/// Checks a value (the second argument) against a JSON schema, and describes a mismatch. It is passed in, so that the
/// machine needs no schema library.
pub type SchemaCheck<'a> = &'a dyn Fn(&Value, &Value) -> Result<(), String>;

/// Sorts the keys of external JSON, whatever features other crates enable in `serde_json`, so that the model and readers of
/// the log see the same text.
pub(super) fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    value.sort_all_objects();
    value
}
