//! Redaction of JSON within texts, whole or cut.

use std::ops::Range;

use serde_json::Value;

use super::mark::REDACTED;

/// How often a text is read, at most, in attempts to find JSON in it: each `{` may begin an object that fails to parse at the end.
const MAX_PARSED: usize = 8;

/// Redacts the JSON objects inside of a text, such as the arguments in an answer of a model, with `redact`, which replaces the
/// values of the fields with these names; `None` if nothing changes. From a field in JSON that cannot be parsed on, such as in
/// arguments that were cut off, the text is withheld.
///
/// An object that may have a field is written out as it was parsed, without values under repeated names, which parsing drops.
pub(super) fn redacted_inside(names: &[String], text: &str, redact: impl Fn(&mut Value)) -> Option<String> {
    let Some(objects) = objects(text) else { return Some(REDACTED.to_owned()) };
    let is_parsed = |at: &usize| {
        let next = objects.get(objects.partition_point(|(place, _)| place.end <= *at));
        // A value that itself is an object begins with it, but its name is not a part of it.
        next.is_some_and(|(place, _)| place.start < *at && *at < place.end)
    };
    let codes = ["\\u0022", "\\u003a", "\\u003A"].into_iter().flat_map(|code| text.match_indices(code));
    let end = values_of(names, text).into_iter().chain(codes.map(|(at, _)| at)).filter(|at| !is_parsed(at)).min();
    let (mut redacted, mut copied) = (String::new(), 0);
    for (place, original) in objects.iter().filter(|(place, _)| end.is_none_or(|end| place.end <= end)) {
        let mut value = original.clone();
        redact(&mut value);
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
pub(super) fn objects(text: &str) -> Option<Vec<(Range<usize>, Value)>> {
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

/// Returns whether a JSON pointer leads to one of the fields, or into it.
pub(super) fn is_path_of(names: &[String], pointer: &str) -> bool {
    pointer.split('/').any(|part| names.contains(&part.replace("~1", "/").replace("~0", "~")))
}

/// Finds where the values of fields begin in a text with JSON, whether it can be parsed or not: after `"iban":`, and after a
/// name with escapes, which may be any name. The path of a JSON Patch counts, too, if it leads to one of the fields or into it.
/// Quotes may be escaped. A value that is already redacted does not count.
fn values_of(names: &[String], text: &str) -> Vec<usize> {
    let pieces: Vec<&str> = text.split('"').collect();
    let mut at = 0;
    let found = pieces.windows(2).enumerate().filter_map(|(place, pair)| {
        let [name, after] = pair else { return None };
        at += name.len() + 1;
        let value = after.trim_start().strip_prefix(':')?;
        let begin = at + after.len() - value.len();
        // A string begins with the backslashes of its quote, and ends with them.
        let escapes = value.trim_start();
        let string = pieces.get(place + 2).filter(|_| escapes.bytes().all(|byte| byte == b'\\'));
        let is_value = match name.trim_end_matches('\\') {
            name if name.contains('\\') => true,
            name if names.iter().any(|known| known == name) => {
                string.and_then(|string| string.strip_prefix(REDACTED)) != Some(escapes)
            }
            "path" => string.is_some_and(|path| {
                let path = path.trim_end_matches('\\');
                path.contains('\\') || is_path_of(names, path)
            }),
            _ => false,
        };
        is_value.then_some(begin)
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::redact::{REDACTED, redact_fields};

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
}
