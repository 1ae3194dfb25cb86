//! Redaction of secrets at the edge of the API: what a client gets has a mark in their place, the log keeps them.

use std::sync::Arc;

use serde_json::Value;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Changes the JSON of an answer.
pub(crate) type Redact = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// Returns a function for [`Options::redact`](crate::Options) that replaces the values of fields with these names, at any
/// depth, by [`REDACTED`].
pub fn redact_fields(
    names: impl IntoIterator<Item = impl Into<String>>,
) -> impl Fn(&mut Value) + Clone + Send + Sync + 'static {
    let names: Arc<[String]> = names.into_iter().map(Into::into).collect();
    move |value| redact(&names, value)
}

fn redact(names: &[String], value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if names.contains(name) {
                    *value = REDACTED.into();
                } else {
                    redact(names, value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(names, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Redacts JSON text. Text that cannot be decoded has no places to redact and is withheld.
pub(crate) fn redacted_text(redact: &Redact, text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(mut value) => {
            redact(&mut value);
            value.to_string()
        }
        Err(_) => Value::from(REDACTED).to_string(),
    }
}

/// Puts the secrets back into arguments that a person has edited: each place that is as the person has seen it keeps the
/// original value.
pub(crate) fn restored(redact: &Redact, original: &Value, edited: Value) -> Value {
    let mut seen = serde_json::json!({ "arguments": original });
    redact(&mut seen);
    let seen = seen.get_mut("arguments").map(Value::take).unwrap_or_default();
    restore(original, &seen, edited)
}

fn restore(original: &Value, seen: &Value, edited: Value) -> Value {
    if edited == *seen {
        return original.clone();
    }
    match (original, seen, edited) {
        (Value::Object(original), Value::Object(seen), Value::Object(edited)) => {
            let fields = edited.into_iter().map(|(name, edited)| {
                let value = match (original.get(&name), seen.get(&name)) {
                    (Some(original), Some(seen)) => restore(original, seen, edited),
                    _ => edited,
                };
                (name, value)
            });
            fields.collect()
        }
        (Value::Array(original), Value::Array(seen), Value::Array(edited)) if original.len() == edited.len() => {
            original
                .iter()
                .zip(seen)
                .zip(edited)
                .map(|((original, seen), edited)| restore(original, seen, edited))
                .collect()
        }
        (_, _, edited) => edited,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn edited_arguments_keep_the_secrets_that_were_not_changed() {
        let redact: Redact = Arc::new(redact_fields(["iban"]));
        let original = json!({ "amount": 100, "to": [{ "iban": "DE02", "name": "Ann" }] });

        let edited = json!({ "amount": 50, "to": [{ "iban": REDACTED, "name": "Ann" }] });
        assert_eq!(
            restored(&redact, &original, edited),
            json!({ "amount": 50, "to": [{ "iban": "DE02", "name": "Ann" }] })
        );
        let new = json!({ "amount": 100, "to": [{ "iban": "DE99", "name": "Ann" }] });
        assert_eq!(restored(&redact, &original, new.clone()), new);
    }

    #[test]
    fn text_that_cannot_be_decoded_is_withheld() {
        let redact: Redact = Arc::new(redact_fields(["key"]));
        assert_eq!(redacted_text(&redact, r#"{"a":[{"key":{"x":1}}]}"#), r#"{"a":[{"key":"[redacted]"}]}"#);
        assert_eq!(redacted_text(&redact, "key: 1"), r#""[redacted]""#);
    }
}
