//! Redaction of secrets at the edge of the API: what a client gets has a mark in their place, the log keeps them.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::app::{LARGE, off_the_executor};
use crate::problem::{Problem, ProblemType};

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
const MAX_PARSED: usize = 8;
/// How deep texts with JSON may be in each other: each may nest 128 values again, and the stack is limited.
const MAX_TEXTS: usize = 4;
/// How deep such texts may be to be restored, which takes more of the stack.
const MAX_RESTORED: usize = 2;

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
    move |value| redact(&names, value, Place::Answer, MAX_TEXTS)
}

fn redact(names: &[String], value: &mut Value, place: Place, texts: usize) {
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
                            redact_field(names, if value.is_object() { "" } else { name }, value, place, texts);
                        }
                    }
                    value => redact_field(names, name, value, place.field(name), texts),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(names, item, place, texts)),
        Value::String(text) => {
            // A text is of a model or a person; what it says about schemas does not count.
            if let Some(redacted) = redacted_inside(names, text, texts) {
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

/// Returns whether a JSON pointer leads to one of the fields, or into it.
fn is_path_of(names: &[String], pointer: &str) -> bool {
    pointer.split('/').any(|part| names.contains(&part.replace("~1", "/").replace("~0", "~")))
}

fn redact_field(names: &[String], name: &str, value: &mut Value, place: Place, texts: usize) {
    if names.iter().any(|known| known == name) {
        *value = REDACTED.into();
    } else {
        redact(names, value, place, texts);
    }
}

/// Redacts the JSON objects inside of a text, such as the arguments in an answer of a model; `None` if nothing changes. From a
/// field in JSON that cannot be parsed on, such as in arguments that were cut off, the text is withheld.
///
/// An object that may have a field is written out as it was parsed, without values under repeated names, which parsing drops.
fn redacted_inside(names: &[String], text: &str, texts: usize) -> Option<String> {
    let is_too_deep = texts == 0 && text.contains('{');
    let Some(objects) = objects(text).filter(|_| !is_too_deep) else { return Some(REDACTED.to_owned()) };
    let is_parsed = |at: &usize| {
        let next = objects.get(objects.partition_point(|(place, _)| place.end <= *at));
        // A value that itself is an object begins with it, but its name is not a part of it.
        next.is_some_and(|(place, _)| place.start < *at && *at < place.end)
    };
    let places = values_of(names, text).chain(values_of_escaped_names(text)).chain(changes_of(names, text));
    let codes = ["\\u0022", "\\u003a", "\\u003A"].into_iter().flat_map(|code| text.match_indices(code));
    let places = places.chain(codes.map(|(at, _)| at));
    let end = places.filter(|at| !is_parsed(at)).min();
    let (mut redacted, mut copied) = (String::new(), 0);
    for (place, original) in objects.iter().filter(|(place, _)| end.is_none_or(|end| place.end <= end)) {
        let mut value = original.clone();
        redact(names, &mut value, Place::Data, texts.saturating_sub(1));
        let written = text.get(place.clone()).unwrap_or_default();
        if value != *original || written.contains('\\') || names.iter().any(|name| written.contains(name)) {
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

/// Returns what follows a quote, which may be escaped.
fn after_quote(text: &str) -> Option<&str> {
    text.trim_start_matches('\\').strip_prefix('"')
}

/// Finds where the values of fields begin in a text with JSON, whether it can be parsed or not: after `"iban":`, also if the
/// quotes are escaped. Values that are already redacted do not count.
fn values_of(names: &[String], text: &str) -> impl Iterator<Item = usize> {
    let matches = names.iter().flat_map(|name| text.match_indices(name.as_str()));
    matches.filter_map(|(at, name)| {
        let value = after_quote(text.get(at + name.len()..)?)?.trim_start().strip_prefix(':')?;
        (text.get(..at)?.ends_with('"') && !is_mark(value.trim_start())).then_some(text.len() - value.len())
    })
}

/// Returns whether a text begins with a string that is a mark. Its quotes are escaped alike, as in JSON within a string.
fn is_mark(text: &str) -> bool {
    let quote = text.split_inclusive('"').next().unwrap_or_default();
    let end = text.strip_prefix(quote).and_then(|text| text.strip_prefix(REDACTED));
    quote.trim_start_matches('\\') == "\"" && end.is_some_and(|end| end.starts_with(quote))
}

/// Finds where the values of fields begin whose names have escapes, such as `"ib\u0061n":`. They may be any names.
fn values_of_escaped_names(text: &str) -> impl Iterator<Item = usize> {
    let mut at = 0;
    text.split('"').zip(text.split('"').skip(1)).filter_map(move |(name, rest)| {
        at += name.len() + 1;
        let value = rest.trim_start().strip_prefix(':')?;
        name.trim_end_matches('\\').contains('\\').then_some(at + rest.len() - value.len())
    })
}

/// Finds where the paths of a JSON Patch begin that lead to one of the fields, or into it. The value follows.
fn changes_of(names: &[String], text: &str) -> impl Iterator<Item = usize> {
    text.match_indices("path").filter_map(|(at, key)| {
        let value = after_quote(text.get(at + key.len()..)?)?.trim_start().strip_prefix(':')?;
        let path = after_quote(value.trim_start())?.split('"').next()?.trim_end_matches('\\');
        let is_known = is_path_of(names, path) || path.contains('\\');
        (text.get(..at)?.ends_with('"') && is_known).then_some(text.len() - value.len())
    })
}

/// Redacts a value that becomes a part of a text, where the JSON of the answer no longer shows its fields. Returns `None` if it is
/// no longer such a value then, such as a number with a mark in its place.
pub(crate) fn redacted<T: Serialize + DeserializeOwned + Clone>(redact: Option<&Redact>, value: &T) -> Option<T> {
    let Some(redact) = redact else { return Some(value.clone()) };
    let mut json = serde_json::json!({ "value": value });
    redact(&mut json);
    serde_json::from_value(json.get_mut("value")?.take()).ok()
}

/// Redacts a text that is cut afterwards: its JSON could not be parsed then.
pub(crate) fn redacted_then_cut(redact: Option<&Redact>, text: String, most: usize) -> String {
    let mut text = if redact.is_some() { redacted(redact, &text).unwrap_or_else(|| REDACTED.to_owned()) } else { text };
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
    }
    text
}

/// Marks an answer that is not to be redacted: a file, or JSON that already is redacted.
#[derive(Clone)]
pub(crate) struct AsIs;

/// Redacts the JSON text of an answer; a large one where this does not block other requests.
pub(crate) async fn redacted_answer(redact: &Redact, text: String) -> Result<String, Problem> {
    let (redact, is_large) = (Arc::clone(redact), text.len() > LARGE);
    let work = move || redacted_text(&redact, &text);
    if is_large {
        return off_the_executor(work).await;
    }
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|_| Problem::new(ProblemType::Internal).detail("the redaction panicked"))
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
    fn json_in_a_text_is_redacted_under_repeated_and_escaped_names_and_in_cut_changes() {
        let redact = redact_fields(["iban", "a/b"]);
        for (text, redacted) in [
            (r#"{"iban":"DE02","iban":"[redacted]"}"#, r#"{"iban":"[redacted]"}"#),
            (r#"{ "a": {"iban": "DE02"}, "a": 1 }"#, r#"{"a":1}"#),
            (r#"{ "a": {"ib\u0061n": "DE02"}, "a": 1 }"#, r#"{"a":1}"#),
            (r#"{ "a": {"a\/b": "DE02"}, "a": 1 }"#, r#"{"a":1}"#),
            (r#"{"a":1,"iban":{"number":"DE02"}"#, r#"{"a":1,"iban":[redacted]"#),
            (r#"{"ib\u0061n":{"number":"DE02"}"#, r#"{"ib\u0061n":[redacted]"#),
            (r#"{"body":"{\u0022iban\u0022:\u0022DE02"#, r#"{"body":"{[redacted]"#),
            (r#"{"iban":"[redacted]\" DE02"#, r#"{"iban":[redacted]"#),
            (r#"x {"ib\u0061n" : "DE02"#, r#"x {"ib\u0061n" :[redacted]"#),
            (r#"{"note": "{\"ib\\u0061n\": 7"#, r#"{"note": "{\"ib\\u0061n\":[redacted]"#),
            (r#"[{"op":"add","path":"/to/iban","value":"DE02"#, r#"[{"op":"add","path":[redacted]"#),
            (r#"[{\"path\": \"/a~1b/0\", \"value\":7"#, r#"[{\"path\":[redacted]"#),
            (r#"[{"path":"/ib\u0061n","value":7"#, r#"[{"path":[redacted]"#),
        ] {
            let mut value = json!(text);
            redact(&mut value);
            assert_eq!(value, redacted);
            redact(&mut value);
            assert_eq!(value, redacted);
        }
        for text in [r#"{"path":"/ibans","value":1"#, r#"{"note": "{\"a\": \"b\n"#, "see src/iban/mod.rs {"] {
            let mut value = json!(text);
            redact(&mut value);
            assert_eq!(value, text);
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

    #[test]
    fn text_with_many_escapes_is_read_in_linear_time() {
        let redact = redact_fields(["iban"]);
        for text in ["\\u", "\\", "\\\"", "\"path\":\"", "path\\", "\"iban\"  "] {
            let text = "{".to_owned() + &text.repeat(100_000);
            redact(&mut json!(text));
        }
    }

    #[test]
    fn text_with_many_unclosed_objects_is_withheld_in_linear_time() {
        let redact = redact_fields(["iban"]);
        let text = |end: &str| "{\"a\":".repeat(120) + "[" + &"{},".repeat(20_000) + end;
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
    fn value_that_no_longer_has_its_type_is_withheld() {
        let redact: Redact = Arc::new(redact_fields(["size"]));
        let sizes = |name: &str| std::collections::BTreeMap::from([(name.to_owned(), 7)]);
        assert_eq!(redacted(Some(&redact), &sizes("size")), None);
        assert_eq!(redacted(Some(&redact), &sizes("count")), Some(sizes("count")));
    }

    #[test]
    fn text_that_cannot_be_decoded_is_withheld() {
        let redact: Redact = Arc::new(redact_fields(["key"]));
        assert_eq!(redacted_text(&redact, r#"{"a":[{"key":{"x":1}}]}"#), r#"{"a":[{"key":"[redacted]"}]}"#);
        assert_eq!(redacted_text(&redact, "key: 1"), r#""[redacted]""#);
    }
}
