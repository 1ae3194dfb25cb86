//! Reads fields that compatible servers leave out, set to `null`, or give another type.

use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Deserializer};
use serde_json::Value;

/// Reads a field if it has the expected type; anything else counts as missing.
pub(super) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => None,
        value => serde_json::from_value(value).ok(),
    })
}

/// Reads a count of tokens, whole or not.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float's cast saturates, and a count of tokens is small"
    )]
    let rounded = || value.as_f64().map(|float| float as u64);
    Ok(value.as_u64().or_else(rounded))
}

/// Keeps a text that says something.
pub(super) fn not_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}
