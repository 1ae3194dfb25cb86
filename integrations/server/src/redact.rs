//! Redaction of secrets at the edge of the API: what a client gets has a mark in their place, the log keeps them.

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// The fields of the API with JSON schemas, which only declare fields.
const SCHEMAS: &[&str] = &["arguments_schema", "options_schema", "parameters", "schema"];
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
    "reply",
    "result",
    "state",
    "value",
];

/// How often a text is read, at most, in attempts to find JSON in it: each `{` may begin an object that fails to parse at the end.
const MAX_PARSED: usize = 4;

/// Where in an answer a value is.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Answer,
    Schema,
    Data,
}

impl Place {
    /// Returns the place of a field.
    fn field(self, name: &str) -> Self {
        match self {
            Self::Answer if SCHEMAS.contains(&name) => Self::Schema,
            Self::Answer if DATA.contains(&name) => Self::Data,
            place => place,
        }
    }
}

/// Changes the JSON of an answer.
pub(crate) type Redact = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// Returns a function for [`Options::redact`](crate::Options) that replaces the values of fields with these names, at any
/// depth, by [`REDACTED`], also in JSON that is a part of a text. Fields that a schema of the API declares stay.
pub fn redact_fields(
    names: impl IntoIterator<Item = impl Into<String>>,
) -> impl Fn(&mut Value) + Clone + Send + Sync + 'static {
    let names: Arc<[String]> = names.into_iter().map(Into::into).collect();
    move |value| redact(&names, value, Place::Answer)
}

fn redact(names: &[String], value: &mut Value, place: Place) {
    match value {
        Value::Object(fields) => {
            let is_schema = place == Place::Schema && fields.get("type").is_some_and(|kind| kind == "object");
            if is_change_of(names, fields)
                && let Some(value) = fields.get_mut("value")
            {
                *value = REDACTED.into();
            }
            for (name, value) in fields {
                match value {
                    Value::Object(declared) if is_schema && name == "properties" => {
                        for (name, value) in declared {
                            redact_field(names, if value.is_object() { "" } else { name }, value, place);
                        }
                    }
                    value => redact_field(names, name, value, place.field(name)),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(names, item, place)),
        Value::String(text) => {
            // A text is of a model or a person; what it says about schemas does not count.
            if let Some(redacted) = redacted_inside(names, text) {
                *text = redacted;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns whether an operation of a JSON Patch (RFC 6902) sets one of the fields, or a part of it: its path has the name.
fn is_change_of(names: &[String], fields: &serde_json::Map<String, Value>) -> bool {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let (Some("add" | "replace" | "test"), Some(path)) = (text("op"), text("path")) else { return false };
    path.split('/').any(|part| names.contains(&part.replace("~1", "/").replace("~0", "~")))
}

fn redact_field(names: &[String], name: &str, value: &mut Value, place: Place) {
    if names.iter().any(|known| known == name) {
        *value = REDACTED.into();
    } else {
        redact(names, value, place);
    }
}

/// Redacts the JSON objects inside of a text, such as the arguments in an answer of a model; `None` if nothing changes. From a
/// field in JSON that cannot be parsed on, such as in arguments that were cut off, the text is withheld.
fn redacted_inside(names: &[String], text: &str) -> Option<String> {
    let Some(objects) = objects(text) else { return Some(REDACTED.to_owned()) };
    let is_parsed = |at: &usize| {
        let next = objects.get(objects.partition_point(|(place, _)| place.end <= *at));
        next.is_some_and(|(place, _)| place.contains(at))
    };
    let end = values_of(names, text).filter(|at| !is_parsed(at)).min();
    let (mut redacted, mut copied) = (String::new(), 0);
    for (place, original) in objects.iter().filter(|(place, _)| end.is_none_or(|end| place.end <= end)) {
        let mut value = original.clone();
        redact(names, &mut value, Place::Data);
        if value != *original {
            redacted.push_str(text.get(copied..place.start).unwrap_or_default());
            redacted.push_str(&value.to_string());
            copied = place.end;
        }
    }
    redacted.push_str(text.get(copied..end.unwrap_or(text.len())).unwrap_or_default());
    if end.is_some() {
        redacted.push_str(REDACTED);
    }
    (redacted != text).then_some(redacted)
}

/// Finds the JSON objects inside of a text. Returns `None` if the attempts to parse one read too much.
fn objects(text: &str) -> Option<Vec<(Range<usize>, Value)>> {
    let (mut found, mut at, mut budget) = (Vec::new(), 0, text.len() * MAX_PARSED);
    while let Some(begin) = text.get(at..)?.find('{').map(|next| at + next) {
        let rest = text.get(begin..)?;
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match stream.next()? {
            Ok(value) => {
                at = begin + stream.byte_offset();
                found.push((begin..at, value));
            }
            Err(error) => {
                let lines = rest.split_inclusive('\n').take(error.line().saturating_sub(1));
                budget = budget.checked_sub(lines.map(str::len).sum::<usize>() + error.column())?;
                at = begin + 1;
            }
        }
    }
    Some(found)
}

/// Finds where the values of fields begin in a text with JSON, whether it can be parsed or not: after `"iban":`, also if the
/// quotes are escaped.
fn values_of(names: &[String], text: &str) -> impl Iterator<Item = usize> {
    let matches = names.iter().flat_map(|name| text.match_indices(name.as_str()));
    matches.filter_map(|(at, name)| {
        let after = text.get(at + name.len()..)?.trim_start_matches('\\').strip_prefix('"')?;
        let value = after.trim_start().strip_prefix(':')?;
        text.get(..at)?.ends_with('"').then_some(text.len() - value.len())
    })
}

/// Redacts a value that becomes a part of a text, where the JSON of the answer no longer shows its fields.
pub(crate) fn redacted<T: Serialize + DeserializeOwned + Clone>(redact: Option<&Redact>, value: &T) -> T {
    let Some(redact) = redact else { return value.clone() };
    let mut json = serde_json::json!({ "value": value });
    redact(&mut json);
    let json = json.get_mut("value").map(Value::take).unwrap_or_default();
    serde_json::from_value(json).unwrap_or_else(|_| value.clone())
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
/// original value. Returns `None` if it is not clear which secret a place of a list stands for.
pub(crate) fn restored(redact: &Redact, original: &Value, edited: Value) -> Option<Value> {
    let mut seen = serde_json::json!({ "arguments": original });
    redact(&mut seen);
    let seen = seen.get_mut("arguments").map(Value::take).unwrap_or_default();
    restore(original, &seen, edited)
}

fn restore(original: &Value, seen: &Value, edited: Value) -> Option<Value> {
    if edited == *seen {
        return Some(original.clone());
    }
    match (original, seen, edited) {
        (Value::Object(original), Value::Object(seen), Value::Object(edited)) => {
            let fields = edited.into_iter().map(|(name, edited)| {
                let value = match (original.get(&name), seen.get(&name)) {
                    (Some(original), Some(seen)) => restore(original, seen, edited)?,
                    _ => edited,
                };
                Some((name, value))
            });
            fields.collect()
        }
        (Value::Array(original), Value::Array(seen), Value::Array(edited)) => {
            let hides = |value: &Value| value.to_string().contains(REDACTED);
            let moved = seen.iter().zip(&edited).filter(|(seen, edited)| seen != edited && hides(edited)).count();
            // The items may have changed places.
            let is_ambiguous = moved > 1 || (original.len() != edited.len() && edited.iter().any(hides));
            let items = original.iter().zip(seen).zip(edited.iter().cloned());
            let items = items.map(|((original, seen), edited)| restore(original, seen, edited));
            match original.len() == edited.len() {
                _ if is_ambiguous => None,
                true => items.collect(),
                false => Some(Value::Array(edited)),
            }
        }
        (_, _, edited) => Some(edited),
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
    fn json_in_a_text_is_redacted_and_other_text_is_not_changed() {
        let redact = redact_fields(["iban"]);
        let mut value =
            json!(["pay({\"to\": {\"iban\": \"DE02\"}}) {} {\"iban\": 7}.", "{ \"a\": 1 }", "{{iban}", "iban DE02"]);
        redact(&mut value);
        let redacted = "pay({\"to\":{\"iban\":\"[redacted]\"}}) {} {\"iban\":\"[redacted]\"}.";
        assert_eq!(value, json!([redacted, "{ \"a\": 1 }", "{{iban}", "iban DE02"]));
    }

    #[test]
    fn json_in_a_text_is_redacted_where_it_cannot_be_parsed() {
        let redact = redact_fields(["iban"]);
        let mut value = json!([
            "pay({\"amount\": 1, \"iban\" : \"DE02",
            "{\"iban\": 7} and {\"iban\": 8,} and more",
            "{\"note\": \"{\\\"iban\\\": 7",
            "say \"iban\" or \"iban: 7\"",
        ]);
        redact(&mut value);
        assert_eq!(
            value,
            json!([
                "pay({\"amount\": 1, \"iban\" :[redacted]",
                "{\"iban\":\"[redacted]\"} and {\"iban\":[redacted]",
                "{\"note\": \"{\\\"iban\\\":[redacted]",
                "say \"iban\" or \"iban: 7\"",
            ])
        );
        let once = value.clone();
        redact(&mut value);
        assert_eq!(value, once);
    }

    #[test]
    fn text_with_many_unclosed_objects_is_withheld_in_linear_time() {
        let redact = redact_fields(["iban"]);
        let text = |end: &str| "{\"a\":".repeat(120) + "[" + &"{},".repeat(100_000) + end;
        for end in ["", "x", "\n{\"a\""] {
            let mut value = text(end).into();
            redact(&mut value);
            assert_eq!(value, json!(REDACTED));
        }
        let code = "fn main() {\n    if a { b() } else { c() }\n}\n".repeat(100);
        let mut value = code.clone().into();
        redact(&mut value);
        assert_eq!(value, json!(code));
    }

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

    #[test]
    fn text_that_cannot_be_decoded_is_withheld() {
        let redact: Redact = Arc::new(redact_fields(["key"]));
        assert_eq!(redacted_text(&redact, r#"{"a":[{"key":{"x":1}}]}"#), r#"{"a":[{"key":"[redacted]"}]}"#);
        assert_eq!(redacted_text(&redact, "key: 1"), r#""[redacted]""#);
    }
}
