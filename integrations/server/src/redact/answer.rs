//! Redaction of answers, as the options of the router say.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::mark::REDACTED;
use crate::blocking::{LARGE, off_the_executor};
use crate::problem::{Problem, ProblemType};

/// Changes the JSON of an answer.
pub(crate) type Redact = Arc<dyn Fn(&mut Value) + Send + Sync>;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::redact_fields;

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
