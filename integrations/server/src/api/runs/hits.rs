//! Where a search has found its text: the event, and its field with the words around the text.

use positronic_core::store::{EventMatch, EventSearch, EventStore, RunFilter, StoreError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::redact::Redact;

/// How many characters before and after the text are shown.
const BEFORE: usize = 60;
const AFTER: usize = 120;
/// How many events of a run are compared to find a call.
const MAX_COMPARED: usize = 500;
/// The fields that every event has: their numbers are not searched, since a number of a person would be found in every time.
const NUMBERS: [&str; 3] = ["seq", "at", "epoch"];

/// The first event of a run with the text of a search.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HitItem {
    pub(crate) run: String,
    seq: u64,
    /// The type of the event.
    r#type: String,
    /// The path of the event; empty for that of the run's own brain.
    path: String,
    /// The field with the text.
    field: String,
    /// The part of the field's value around the text.
    text: String,
}

impl HitItem {
    /// Describes a match as the caller sees it. Returns `None` if the text is not among what the caller sees, or only in the number or
    /// the time of the event.
    pub(crate) fn of(hit: &EventMatch, wanted: &str, redact: Option<&Redact>) -> Option<Self> {
        let mut event: Value = serde_json::from_str(&hit.line).ok()?;
        if let Some(redact) = redact {
            redact(&mut event);
        }
        let fields = event.as_object_mut()?;
        for name in NUMBERS {
            fields.remove(name);
        }
        let word = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (r#type, path) = (word("type"), word("path"));
        let wanted = wanted.to_lowercase();
        // A person rather looks for what was called than for what was said of it.
        let of_call = event.get("arguments").and_then(|given| find(given, "arguments", &wanted));
        let (field, text) = match of_call.or_else(|| find(&event, "", &wanted)) {
            Some((field, text)) => (field.to_owned(), around(&text, &wanted)),
            // The text goes over several fields.
            None => (
                String::new(),
                Some(event.to_string()).filter(|text| has(text, &wanted)).map(|text| around(&text, &wanted))?,
            ),
        };
        Some(Self { run: hit.run.to_string(), seq: hit.seq.0, r#type, path, field, text })
    }
}

/// Finds the first call of the run whose arguments have the text. Returns `None` if the match is one, and if the run has none.
pub(crate) async fn call_of(
    store: &dyn EventStore,
    hit: &EventMatch,
    wanted: &str,
) -> Result<Option<EventMatch>, StoreError> {
    let wanted = wanted.to_lowercase();
    if is_call_with(&hit.line, &wanted) {
        return Ok(None);
    }
    let mut within = RunFilter::default();
    within.prefix = Some(hit.run.as_str().to_owned());
    let found = store.search(&EventSearch::new(&wanted, MAX_COMPARED).within(within)).await?.found;
    Ok(found.into_iter().find(|other| other.run == hit.run && is_call_with(&other.line, &wanted)))
}

fn is_call_with(line: &str, wanted: &str) -> bool {
    let Ok(event) = serde_json::from_str::<Value>(line) else { return false };
    let is_call = event.get("type").and_then(Value::as_str) == Some("LOOP_TOOL_CALL");
    is_call && event.get("arguments").is_some_and(|given| find(given, "", wanted).is_some())
}

fn has(text: &str, wanted: &str) -> bool {
    text.to_lowercase().contains(wanted)
}

/// Finds the first field whose value or name has a text; a name with its value.
fn find<'v>(value: &'v Value, name: &'v str, wanted: &str) -> Option<(&'v str, String)> {
    match value {
        Value::String(text) => has(text, wanted).then(|| (name, text.clone())),
        Value::Number(number) => Some(number.to_string()).filter(|text| has(text, wanted)).map(|text| (name, text)),
        Value::Bool(_) | Value::Null => None,
        Value::Array(items) => items.iter().find_map(|item| find(item, name, wanted)),
        Value::Object(fields) => {
            // Values come first: the names of fields are the same in many events.
            let named = || {
                fields
                    .iter()
                    .find(|(name, _)| has(name, wanted))
                    .map(|(name, value)| (name.as_str(), value.to_string()))
            };
            fields.iter().find_map(|(name, value)| find(value, name, wanted)).or_else(named)
        }
    }
}

/// Returns the part of a text around another one.
fn around(text: &str, wanted: &str) -> String {
    let lower = text.to_lowercase();
    // Lower case may have other lengths, and then the place is about right.
    let place = lower.find(wanted).map_or(0, |at| lower.get(..at).map_or(0, |before| before.chars().count()));
    let from = place.saturating_sub(BEFORE);
    let length = place - from + wanted.chars().count() + AFTER;
    let part: String = text.chars().skip(from).take(length).collect();
    let (begin, end) = (if from > 0 { "…" } else { "" }, if text.chars().count() > from + length { "…" } else { "" });
    format!("{begin}{part}{end}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use positronic_core::record::{RunId, Seq};
    use serde_json::json;

    use super::*;
    use crate::redact::redact_fields;

    fn hit(event: &Value) -> EventMatch {
        EventMatch::new(RunId::new("r"), Seq(7), event.to_string())
    }

    #[test]
    fn hit_names_the_field_and_the_words_around_the_text() {
        let words = format!("{} the Invoice {}", "a ".repeat(200), "b ".repeat(200));
        let event = json!({ "seq": 7, "at": 249, "type": "LOOP_MESSAGE", "path": "Chat", "arguments": { "note": words, "amount": 249 } });

        let found = HitItem::of(&hit(&event), "invoice", None).unwrap();
        assert_eq!((found.seq, found.r#type.as_str(), found.field.as_str()), (7, "LOOP_MESSAGE", "note"));
        assert!(found.text.starts_with('…') && found.text.ends_with('…') && found.text.contains("the Invoice b"));
        assert_eq!(found.text.chars().count(), BEFORE + 7 + AFTER + 2);
        let amount = HitItem::of(&hit(&event), "249", None).unwrap();
        assert_eq!((amount.field.as_str(), amount.text.as_str()), ("amount", "249"));
    }

    #[test]
    fn numbers_of_an_event_and_hidden_values_are_not_found() {
        let event = json!({ "seq": 249, "at": 1_249_000, "epoch": 249, "type": "RUN_CLAIMED", "iban": "DE02" });
        let redact: Redact = Arc::new(redact_fields(["iban"]));

        assert!(HitItem::of(&hit(&event), "249", None).is_none());
        assert!(HitItem::of(&hit(&event), "DE02", None).is_some());
        assert!(HitItem::of(&hit(&event), "DE02", Some(&redact)).is_none());
    }
}
