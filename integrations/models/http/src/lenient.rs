//! Lenient reading of JSON from compatible servers: a field that is absent, `null` or of another type counts as missing.

use std::borrow::Cow;

use positronic_core::record::{ModelError, ModelErrorKind};
use serde_json::{Map, Value};

use super::fault::{ServerFault, shorten};

/// Parses a chunk or an answer of a server.
///
/// # Errors
///
/// A [`ModelError`] of the kind that the server reports if it is an error object, and
/// [`Malformed`](ModelErrorKind::Malformed) if it is not a JSON object.
pub fn document(text: &str) -> Result<Value, ModelError> {
    let fields: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        let sentence = format!("the server sent an invalid answer ({error}): {}", shorten(text));
        ModelError::new(ModelErrorKind::Malformed, sentence)
    })?;
    let document = Value::Object(fields);
    match ServerFault::read(&document) {
        Some(fault) => Err(fault.into_error()),
        None => Ok(document),
    }
}

/// Reads a non-empty string.
#[must_use]
pub fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// Reads an object.
#[must_use]
pub fn object<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| value.is_object())
}

/// Reads a list.
#[must_use]
pub fn list<'a>(object: &'a Value, name: &str) -> Option<&'a [Value]> {
    object.get(name)?.as_array().map(Vec::as_slice)
}

/// Reads a list of objects.
#[must_use]
pub fn objects<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    list(object, name).filter(|list| list.iter().all(Value::is_object)).unwrap_or_default()
}

/// Reads any value that is not `null`.
#[must_use]
pub fn any<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// Returns the JSON text of arguments, which some servers send as a value and others as its text.
#[must_use]
pub fn json_text(arguments: &Value) -> Cow<'_, str> {
    match arguments {
        Value::String(text) => text.into(),
        value => value.to_string().into(),
    }
}

/// Reads a count, which may be a float.
#[must_use]
pub fn count(object: &Value, name: &str) -> Option<u64> {
    let value = object.get(name)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float's cast saturates, and a count of tokens is small"
    )]
    let rounded = || value.as_f64().map(|float| float as u64);
    value.as_u64().or_else(rounded)
}
