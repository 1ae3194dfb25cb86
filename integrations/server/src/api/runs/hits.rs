//! Where a search has found its text: the event, and its field with the words around the text.

use std::cmp::Reverse;

use positronic_core::store::{EventMatch, EventSearch, EventStore, RunFilter, StoreError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::redact::Redact;

/// How many characters before and after the text are shown.
const BEFORE: usize = 60;
const AFTER: usize = 120;
/// How many events of a run are compared to find the one with most of what is looked for.
const MAX_COMPARED: usize = 500;
/// The fields that every event has: their numbers are not searched, since a number of a person would be found in every time.
const NUMBERS: [&str; 3] = ["seq", "at", "epoch"];

/// The event of a run with what a search looks for: all of it, if an event has it.
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
    /// Describes a match of one of the texts in lower case as the caller sees it. Returns `None` if no text is among what the caller sees, or
    /// only in the number or the time of the event.
    pub(crate) fn of(hit: &EventMatch, wanted: &[String], redact: Option<&Redact>) -> Option<Self> {
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
        let tool = event.get("tool").and_then(Value::as_str).unwrap_or_default();
        // What the name of the tool says is said beside the field.
        let (of_tool, others): (Vec<_>, Vec<_>) = wanted.iter().partition(|text| has(tool, text));
        let found_in = |value, name| best_field(value, name, &others).or_else(|| best_field(value, name, &of_tool));
        // A person rather looks for what was called than for what was said of it.
        let of_call = event.get("arguments").and_then(|given| found_in(given, "arguments"));
        let (field, text) = match of_call {
            Some((field, text)) if !of_tool.is_empty() && !others.is_empty() => (format!("{tool} {field}"), text),
            Some((field, text)) => (field.to_owned(), text),
            None => match found_in(&event, "") {
                Some((field, text)) => (field.to_owned(), text),
                // The text goes over several fields.
                None => {
                    let text = event.to_string();
                    let wanted = wanted.iter().find(|wanted| has(&text, wanted))?;
                    (String::new(), around(&text, wanted))
                }
            },
        };
        Some(Self { run: hit.run.to_string(), seq: hit.seq.0, r#type, path, field, text })
    }
}

/// Finds the event of the run that has most of the texts in lower case: the first call with all of them, else the event with most of them,
/// whereby one field with all of them as a phrase comes first, and a call before other events. Returns `None` if the match is that call, and if
/// the run has no such event.
pub(crate) async fn best_of(
    store: &dyn EventStore,
    hit: &EventMatch,
    wanted: &[String],
) -> Result<Option<EventMatch>, StoreError> {
    let Some((first, others)) = wanted.split_first().filter(|_| !is_call_with(&hit.line, wanted)) else {
        return Ok(None);
    };
    let mut within = RunFilter::default();
    within.prefix = Some(hit.run.as_str().to_owned());
    let found = store.search(&EventSearch::new(first, MAX_COMPARED).within(within)).await?.found;
    let of_run = || found.iter().filter(|other| other.run == hit.run);
    let call = of_run().find(|event| is_call_with(&event.line, wanted));
    // One text is as well in the first event that has it, unless a call has it.
    let best = || {
        let is_call = |event: &EventMatch| is_call_with(&event.line, std::slice::from_ref(first));
        let ranked = of_run().map(|event| ((rank_of(&event.line, wanted), is_call(event), Reverse(event.seq)), event));
        let worth = ranked.filter(|((_, is_call, _), _)| *is_call || !others.is_empty());
        worth.max_by_key(|(rank, _)| *rank).map(|(_, event)| event)
    };
    Ok(call.or_else(best).cloned())
}

/// Returns whether a call has each text in its tool or its arguments, and one of them in these.
fn is_call_with(line: &str, wanted: &[String]) -> bool {
    let Ok(event) = serde_json::from_str::<Value>(line) else { return false };
    let word = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_given = |text: &String| event.get("arguments").is_some_and(|given| find(given, "", text).is_some());
    word("type") == "LOOP_TOOL_CALL"
        && wanted.iter().any(is_given)
        && wanted.iter().all(|text| has(word("tool"), text) || is_given(text))
}

/// How well a value has the texts: whether one field has them as a phrase, and how many are words of it.
fn rank_of(line: &str, wanted: &[String]) -> (bool, usize) {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(line) else { return (false, 0) };
    fields.retain(|name, _| !NUMBERS.contains(&name.as_str()));
    let event = Value::Object(fields);
    let leaves = leaves_of(&event, "");
    let phrase = wanted.join(" ");
    let has_word = |wanted: &&String| leaves.iter().any(|(_, text)| is_word_of(text, wanted));
    (leaves.iter().any(|(_, text)| has(text, &phrase)), wanted.iter().filter(has_word).count())
}

/// Finds the field with most of the texts, and the part of its value around them.
fn best_field<'v>(value: &'v Value, name: &'v str, wanted: &[&String]) -> Option<(&'v str, String)> {
    let phrase = wanted.iter().map(|text| text.as_str()).collect::<Vec<_>>().join(" ");
    let rank = |text: &str| {
        let words = wanted.iter().filter(|wanted| is_word_of(text, wanted)).count();
        (has(text, &phrase), words, wanted.iter().filter(|wanted| has(text, wanted)).count())
    };
    let leaves = leaves_of(value, name);
    let found = leaves.iter().filter(|(_, text)| wanted.iter().any(|wanted| has(text, wanted)));
    // Of equal ones the first.
    let best = found.rev().max_by_key(|(_, text)| rank(text));
    let of_name = || {
        wanted.iter().find_map(|wanted| find(value, name, wanted).map(|(field, text)| (field, around(&text, wanted))))
    };
    let Some((field, text)) = best else { return of_name() };
    let word = wanted
        .iter()
        .find(|wanted| is_word_of(text, wanted))
        .or_else(|| wanted.iter().find(|wanted| has(text, wanted)));
    let around_it = if has(text, &phrase) { phrase.as_str() } else { word.map_or("", |word| word.as_str()) };
    Some((*field, around(text, around_it)))
}

/// Lists the texts and numbers of a value with the names of their fields.
fn leaves_of<'v>(value: &'v Value, name: &'v str) -> Vec<(&'v str, String)> {
    match value {
        Value::String(text) => vec![(name, text.clone())],
        Value::Number(number) => vec![(name, number.to_string())],
        Value::Bool(_) | Value::Null => Vec::new(),
        Value::Array(items) => items.iter().flat_map(|item| leaves_of(item, name)).collect(),
        Value::Object(fields) => fields.iter().flat_map(|(name, value)| leaves_of(value, name)).collect(),
    }
}

/// Returns whether a text has another one in lower case as a word: not as a part of a hash or of a longer number.
fn is_word_of(text: &str, wanted: &str) -> bool {
    let lower = text.to_lowercase();
    lower.match_indices(wanted).any(|(at, found)| {
        let before = lower.get(..at).and_then(|before| before.chars().next_back());
        let after = lower.get(at + found.len()..).and_then(|after| after.chars().next());
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    })
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

    fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
        texts.map(str::to_owned).to_vec()
    }

    #[test]
    fn hit_of_several_texts_is_the_call_that_has_them_all() {
        let call = |tool: &str, given: Value| {
            json!({ "type": "LOOP_TOOL_CALL", "tool": tool, "arguments": given }).to_string()
        };
        let paid = call("refund", json!({ "amount": 249 }));

        assert!(is_call_with(&paid, &texts(["refund", "249"])));
        assert!(!is_call_with(&call("refund", json!({ "amount": 100 })), &texts(["refund", "249"])));
        assert!(!is_call_with(&paid, &texts(["refund"])), "all refunds have the name of their tool");
        let rank = |event: Value| rank_of(&event.to_string(), &texts(["refund", "of", "249"]));
        assert_eq!(rank(json!({ "seq": 7, "text": "A refund of 249 euros" })), (true, 3));
        let tools =
            json!({ "seq": 249, "tools": [{ "hash": "ab249c", "description": "What the refund desk says of it" }] });
        assert_eq!(rank(tools), (false, 2), "a part of a hash or the number of an event is no word");
        let found =
            HitItem::of(&EventMatch::new(RunId::new("r"), Seq(7), paid), &texts(["refund", "249"]), None).unwrap();
        assert_eq!((found.field.as_str(), found.text.as_str()), ("refund amount", "249"));
    }

    #[test]
    fn hit_names_the_field_and_the_words_around_the_text() {
        let words = format!("{} the Invoice {}", "a ".repeat(200), "b ".repeat(200));
        let event = json!({ "seq": 7, "at": 249, "type": "LOOP_MESSAGE", "path": "Chat", "arguments": { "note": words, "amount": 249 } });

        let found = HitItem::of(&hit(&event), &texts(["invoice"]), None).unwrap();
        assert_eq!((found.seq, found.r#type.as_str(), found.field.as_str()), (7, "LOOP_MESSAGE", "note"));
        assert!(found.text.starts_with('…') && found.text.ends_with('…') && found.text.contains("the Invoice b"));
        assert_eq!(found.text.chars().count(), BEFORE + 7 + AFTER + 2);
        let amount = HitItem::of(&hit(&event), &texts(["249"]), None).unwrap();
        assert_eq!((amount.field.as_str(), amount.text.as_str()), ("amount", "249"));
    }

    #[test]
    fn hit_of_a_phrase_is_the_field_that_has_it() {
        let event = json!({ "seq": 7, "type": "LOOP_TOOL_RESULT", "result": { "title": "A refund", "output": "Paid: a refund of 249 euros." } });

        let found = HitItem::of(&hit(&event), &texts(["refund", "of", "249"]), None).unwrap();
        assert_eq!((found.field.as_str(), found.text.as_str()), ("output", "Paid: a refund of 249 euros."));
        let found = HitItem::of(&hit(&event), &texts(["249", "refund"]), None).unwrap();
        assert_eq!(found.field, "output", "most of the words");
    }

    #[test]
    fn numbers_of_an_event_and_hidden_values_are_not_found() {
        let event = json!({ "seq": 249, "at": 1_249_000, "epoch": 249, "type": "RUN_CLAIMED", "iban": "DE02" });
        let redact: Redact = Arc::new(redact_fields(["iban"]));

        assert!(HitItem::of(&hit(&event), &texts(["249"]), None).is_none());
        assert!(HitItem::of(&hit(&event), &texts(["de02"]), None).is_some());
        assert!(HitItem::of(&hit(&event), &texts(["de02"]), Some(&redact)).is_none());
    }
}
