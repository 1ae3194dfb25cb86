//! Restoring secrets in what a person has edited.

use serde_json::{Map, Value};

use super::text::objects;
use super::{REDACTED, Redact};
use crate::problem::{Problem, ProblemType};

/// How deep texts with JSON may be in each other to be restored, which takes much of the stack.
const MAX_RESTORED: usize = 2;

/// Puts the secrets back into arguments or options that a person has edited: each place that is as the person has seen it keeps
/// the original value. Refuses an edit in which it is not clear which secret a mark stands for.
pub(crate) fn with_secrets(redact: Option<&Redact>, original: &Value, edited: Value) -> Result<Value, Problem> {
    let Some(redact) = redact else { return Ok(edited) };
    restored(redact, original, edited).ok_or_else(|| {
        Problem::new(ProblemType::Unprocessable).detail(format!(
            "an edited value has `{REDACTED}` where it is not clear which hidden value it stands for; edit one item of a list at a \
             time and leave the marks where they are, or enter the values"
        ))
    })
}

fn restored(redact: &Redact, original: &Value, edited: Value) -> Option<Value> {
    restore(original, &shown(redact, original), edited, MAX_RESTORED)
}

/// Returns arguments or options as a person sees them.
pub(crate) fn shown(redact: &Redact, original: &Value) -> Value {
    let mut seen = serde_json::json!({ "arguments": original });
    redact(&mut seen);
    seen.get_mut("arguments").map(Value::take).unwrap_or_default()
}

fn restore(original: &Value, seen: &Value, edited: Value, texts: usize) -> Option<Value> {
    if edited == *seen {
        return Some(original.clone());
    }
    match (original, seen, edited) {
        (Value::Object(original), Value::Object(seen), Value::Object(edited)) => {
            let fields = edited.into_iter().map(|(name, edited)| {
                let known = |fields: &Map<String, Value>| fields.get(&name).cloned().unwrap_or_default();
                let value = restore(&known(original), &known(seen), edited, texts)?;
                Some((name, value))
            });
            fields.collect()
        }
        (Value::Array(original), Value::Array(seen), Value::Array(edited)) => {
            restore_items(original, seen, edited, texts).map(Value::Array)
        }
        (Value::String(original), Value::String(seen), Value::String(edited)) if edited.contains(REDACTED) => {
            restore_text(original, seen, &edited, texts.checked_sub(1)?).map(Value::String)
        }
        (_, _, edited) => (!hides(&edited)).then_some(edited),
    }
}

/// Restores the items of a list. They may have changed places, so only one of those with marks may differ.
fn restore_items(original: &[Value], seen: &[Value], edited: Vec<Value>, texts: usize) -> Option<Vec<Value>> {
    if original.len() != edited.len() || seen.len() != edited.len() {
        return (!edited.iter().any(hides)).then_some(edited);
    }
    if seen.iter().zip(&edited).filter(|(seen, edited)| seen != edited && hides(edited)).count() > 1 {
        return None;
    }
    let items = original.iter().zip(seen).zip(edited);
    items.map(|((original, seen), edited)| restore(original, seen, edited, texts)).collect()
}

/// Restores the JSON objects of a text, like the items of a list. A mark outside of them stands for nothing.
fn restore_text(original: &str, seen: &str, edited: &str, texts: usize) -> Option<String> {
    let values = |found: &[(_, Value)]| found.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>();
    let found = objects(edited)?;
    let restored = restore_items(&values(&objects(original)?), &values(&objects(seen)?), values(&found), texts)?;
    let (mut text, mut copied) = (String::new(), 0);
    for ((place, _), restored) in found.iter().zip(&restored).filter(|((_, value), restored)| value != *restored) {
        text.push_str(edited.get(copied..place.start)?);
        text.push_str(&restored.to_string());
        copied = place.end;
    }
    text.push_str(edited.get(copied..)?);
    (!text.contains(REDACTED)).then_some(text)
}

/// Returns whether a value has a mark.
fn hides(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().any(hides),
        Value::Array(items) => items.iter().any(hides),
        Value::String(text) => text.contains(REDACTED),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::redact::redact_fields;

    #[test]
    fn edited_arguments_keep_the_secrets_that_were_not_changed() {
        let redact: Redact = Arc::new(redact_fields(["iban"]));
        let original = json!({ "amount": 100, "to": [{ "iban": "DE02", "name": "Ann" }] });

        let edited = json!({ "amount": 50, "to": [{ "iban": REDACTED, "name": "Ann" }] });
        assert_eq!(
            restored(&redact, &original, edited),
            Some(json!({ "amount": 50, "to": [{ "iban": "DE02", "name": "Ann" }] }))
        );
        let new = json!({ "amount": 100, "to": [{ "iban": "DE99", "name": "Ann" }] });
        assert_eq!(restored(&redact, &original, new.clone()), Some(new));
    }

    #[test]
    fn list_whose_items_have_moved_is_not_restored() {
        let redact: Redact = Arc::new(redact_fields(["iban"]));
        let item = |name: &str, iban: &str, amount: u32| json!({ "name": name, "iban": iban, "amount": amount });
        let original = json!([item("Ann", "DE02", 1), item("Ben", "DE03", 2)]);
        let restored = |edited: Value| restored(&redact, &original, edited);

        let (ann, ben) = (item("Ann", REDACTED, 1), item("Ben", REDACTED, 2));
        assert_eq!(restored(json!([ben, ann])), None);
        assert_eq!(restored(json!([ben])), None);
        assert_eq!(restored(json!([ann, ben, item("Cas", REDACTED, 3)])), None);
        let more = restored(json!([ann, item("Ben", REDACTED, 5)]));
        assert_eq!(more, Some(json!([item("Ann", "DE02", 1), item("Ben", "DE03", 5)])));
        let new = json!([item("Cas", "DE04", 3)]);
        assert_eq!(restored(new.clone()), Some(new));
    }

    #[test]
    fn edited_text_keeps_the_secrets_of_its_json_or_is_refused() {
        let redact: Redact = Arc::new(redact_fields(["iban"]));
        let restored = |original: &str, edited: &str| {
            let restored = restored(&redact, &json!({ "note": original }), json!({ "note": edited }))?;
            Some(restored["note"].as_str().unwrap().to_owned())
        };
        let one = "call {\"to\": \"Ann\", \"iban\": \"DE02\"} now";
        let later = restored(one, "call {\"iban\":\"[redacted]\",\"to\":\"Ben\"} later, { \"a\": 1 }");
        assert_eq!(later, None, "another object");
        let later = restored(one, "call {\"iban\":\"[redacted]\",\"to\":\"Ben\"} later");
        assert_eq!(later.as_deref(), Some("call {\"iban\":\"DE02\",\"to\":\"Ben\"} later"));
        assert_eq!(restored(one, "call { \"iban\": 7 }").as_deref(), Some("call { \"iban\": 7 }"));
        assert_eq!(restored(one, "call [redacted]"), None);

        let two = "{ \"a\": 1 } {\"iban\":\"DE02\"} {\"iban\":\"DE03\"}";
        let edited = restored(two, "{ \"a\": 1 } {\"iban\":\"[redacted]\"} or {\"iban\":\"[redacted]\"}");
        assert_eq!(edited.as_deref(), Some("{ \"a\": 1 } {\"iban\":\"DE02\"} or {\"iban\":\"DE03\"}"));
        assert_eq!(restored(two, "{\"iban\":\"[redacted]\"}"), None);
        assert_eq!(restored("{\"iban\":\"DE02", "{\"iban\":[redacted]\"}"), None, "the end was withheld");
    }

    #[test]
    fn mark_that_stands_for_nothing_is_refused() {
        let redact: Redact = Arc::new(redact_fields(["iban"]));
        let original = json!({ "iban": "DE02", "note": "none" });
        for edited in [
            json!({ "iban": "DE02", "note": REDACTED }),
            json!({ "iban": "not [redacted]", "note": "none" }),
            json!({ "iban": [REDACTED], "note": "none" }),
            json!({ "account": REDACTED, "note": "none" }),
            json!(REDACTED),
        ] {
            assert_eq!(restored(&redact, &original, edited.clone()), None, "{edited}");
        }
    }

    #[test]
    fn texts_in_texts_are_withheld_at_some_depth() {
        let redact: Redact = Arc::new(redact_fields(["iban"]));
        // The escapes keep the size of a level linear, so that few kilobytes would be thousands of levels.
        let escaped = |text: &str| text.replace('\\', "\\u005c").replace('"', "\\u0022");
        let nested = |levels: usize| {
            let outer = |text: String| format!(r#"{{"a":{}"{}"{}}}"#, "[".repeat(120), escaped(&text), "]".repeat(120));
            (0..levels).fold(r#"{"iban":"DE02"}"#.to_owned(), |text, _| outer(text))
        };
        for levels in [1, 3, 8] {
            let (mut seen, text) = (json!(nested(levels)), nested(levels));
            redact(&mut seen);
            let seen = seen.as_str().unwrap();
            assert!(seen.contains(REDACTED) && !seen.contains("DE02"), "{levels}: {seen}");
            assert_eq!(restored(&redact, &json!(text), json!(seen)), Some(json!(text)));
            assert_eq!(restored(&redact, &json!(text), json!(format!("{text} {REDACTED}"))), None);
            let within = seen.replacen(REDACTED, &format!("{REDACTED}!"), 1);
            assert_eq!(restored(&redact, &json!(text), json!(within)), None);
        }
    }
}
