//! What a text or a document is about, in one line.

use std::sync::Arc;

use serde_json::Value;

/// The largest number of characters of an input or a result.
const LONGEST: usize = 160;
/// How many values of a document are looked at.
const LOOKED_AT: usize = 200;
/// How many fields stand for a document without sentences.
const FIELDS: usize = 4;

/// Returns the first sentence of a text as one line; `None` if it has no letters or digits.
pub(super) fn sentence(text: &str) -> Option<Arc<str>> {
    let mut line = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let letters = word.chars().filter(|letter| !letter.is_control()).count();
        length += letters + usize::from(!line.is_empty());
        if length > LONGEST {
            line.push('\u{2026}');
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        let begin = line.len();
        line.extend(word.chars().filter(|letter| !letter.is_control()));
        let word = line.get(begin..).unwrap_or_default();
        let is_number = || word.trim_end_matches('.').bytes().all(|letter| letter.is_ascii_digit());
        if letters > 2 && word.ends_with(['.', '!', '?']) && !is_number() {
            break;
        }
    }
    line.chars().any(char::is_alphanumeric).then(|| line.into())
}

/// Returns a document in one line: the longest of its sentences, else its first fields.
pub(super) fn gist(document: &Value) -> Option<Arc<str>> {
    let mut left = LOOKED_AT;
    let mut longest = None;
    find_sentence(document, &mut left, &mut longest);
    if let Some(text) = longest {
        return sentence(text);
    }
    let plain = |value: &Value| match value {
        Value::Null | Value::Object(_) | Value::Array(_) => None,
        Value::String(text) => sentence(text),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string().into()),
    };
    match document {
        Value::Object(fields) => {
            let named = fields.iter().filter_map(|(name, value)| Some(format!("{name} {}", plain(value)?)));
            sentence(&named.take(FIELDS).collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => sentence(&items.iter().filter_map(plain).take(FIELDS).collect::<Vec<_>>().join(", ")),
        _ => plain(document),
    }
}

fn find_sentence<'a>(value: &'a Value, left: &mut usize, longest: &mut Option<&'a str>) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    match value {
        // A text without spaces, such as a path, is no sentence.
        Value::String(text) if text.trim().contains(char::is_whitespace) => {
            *longest = longest.filter(|longest| longest.len() >= text.len()).or(Some(text));
        }
        Value::Array(items) => items.iter().for_each(|item| find_sentence(item, left, longest)),
        Value::Object(fields) => fields.values().for_each(|field| find_sentence(field, left, longest)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn gist_is_the_longest_sentence_or_the_first_fields() {
        for (document, expected) in [
            (json!(null), None),
            (json!({}), None),
            (json!("Done. And more."), Some("Done.")),
            (
                json!({"id": "C-7", "outcome": {"resolved": "The tank is broken; it was paid back. Really."}}),
                Some("The tank is broken; it was paid back."),
            ),
            (
                json!({"finished": true, "folder": "/srv/agents/01a22588-75f2-7709-a8af-829c20bb29d2", "summary": "It is 4,662 m."}),
                Some("It is 4,662 m."),
            ),
            (json!({"city": "Ghent", "nights": 2, "train": {"price": 58}}), Some("city Ghent, nights 2")),
            (json!(["red", "green"]), Some("red, green")),
            (json!(true), Some("true")),
            (json!("   "), None),
        ] {
            assert_eq!(gist(&document).as_deref(), expected, "{document}");
        }
    }

    #[test]
    fn sentence_is_one_line_without_control_characters() {
        for (text, expected) in [
            ("My machine leaks.\nWhat now?", Some("My machine leaks.")),
            ("It\n  takes\u{7} 2. of May", Some("It takes 2. of May")),
            ("---", None),
        ] {
            assert_eq!(sentence(text).as_deref(), expected);
        }
        assert_eq!(sentence(&"word ".repeat(100)).map(|text| text.chars().count()), Some(160));
    }
}
