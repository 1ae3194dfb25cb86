//! The first difference between two requests, as a JSON pointer with both values. `player.rs` refuses the request with it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::scrub::Scrubber;
use crate::record::{Message, ModelRequest};

/// Returns the first difference of the attempted request from the recorded one; the first `skip` messages are known to be
/// equal. Both are scrubbed, since the recorded one has lost its secrets.
pub(super) fn difference(
    recorded: &ModelRequest,
    attempted: &ModelRequest,
    skip: usize,
    scrubber: &Scrubber,
) -> Option<String> {
    let same_tools = Arc::ptr_eq(&recorded.tools, &attempted.tools);
    compare("/system", &*recorded.system, &*attempted.system, scrubber)
        .or_else(|| compare("/context", &*recorded.context, &*attempted.context, scrubber))
        .or_else(|| {
            let tools = || compare("/tools", recorded.tools.tools(), attempted.tools.tools(), scrubber);
            (!same_tools).then(tools).flatten()
        })
        .or_else(|| compare("/settings", &*recorded.settings, &*attempted.settings, scrubber))
        .or_else(|| messages(recorded, attempted, skip, scrubber))
}

fn messages(recorded: &ModelRequest, attempted: &ModelRequest, skip: usize, scrubber: &Scrubber) -> Option<String> {
    let recorded: Vec<_> = recorded.messages.read().iter().skip(skip).map(|entry| entry.message.clone()).collect();
    let attempted: Vec<_> = attempted.messages.read().iter().skip(skip).map(|entry| entry.message.clone()).collect();
    let longest = recorded.len().max(attempted.len());
    (0..longest).find_map(|index| {
        let name = format!("/messages/{}", skip + index);
        match (recorded.get(index), attempted.get(index)) {
            (Some(one), Some(other)) => compare(&name, one, other, scrubber),
            (one, other) => {
                let show = |message: Option<&Message>| message.map(|message| document(message, scrubber));
                child(&name, show(one).as_ref(), show(other).as_ref()).map(sentence)
            }
        }
    })
}

fn compare<T: Serialize + PartialEq + ?Sized>(
    name: &str,
    recorded: &T,
    attempted: &T,
    scrubber: &Scrubber,
) -> Option<String> {
    if recorded == attempted {
        return None;
    }
    first(name.to_owned(), &document(recorded, scrubber), &document(attempted, scrubber)).map(sentence)
}

fn document<T: Serialize + ?Sized>(value: &T, scrubber: &Scrubber) -> Value {
    let mut document = serde_json::to_value(value).unwrap_or_default();
    scrubber.scrub(&mut document);
    document
}

fn sentence((pointer, recorded, attempted): (String, String, String)) -> String {
    format!("{pointer} differs\n  recorded:  {recorded}\n  attempted: {attempted}")
}

/// Finds the first difference of two documents.
fn first(pointer: String, recorded: &Value, attempted: &Value) -> Option<(String, String, String)> {
    if recorded == attempted {
        return None;
    }
    match (recorded, attempted) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
            names.into_iter().find_map(|name| {
                child(
                    &format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")),
                    one.get(name),
                    other.get(name),
                )
            })
        }
        (Value::Array(one), Value::Array(other)) => (0..one.len().max(other.len()))
            .find_map(|index| child(&format!("{pointer}/{index}"), one.get(index), other.get(index))),
        (Value::String(one), Value::String(other)) => {
            let same = std::iter::zip(one.chars(), other.chars()).take_while(|(one, other)| one == other).count();
            Some((pointer, excerpt(one, same), excerpt(other, same)))
        }
        _ => Some((pointer, excerpt_of_document(recorded), excerpt_of_document(attempted))),
    }
}

fn child(pointer: &str, one: Option<&Value>, other: Option<&Value>) -> Option<(String, String, String)> {
    match (one, other) {
        (Some(one), Some(other)) => first(pointer.to_owned(), one, other),
        (one, other) => {
            let show = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), excerpt_of_document);
            Some((pointer.to_owned(), show(one), show(other)))
        }
    }
}

/// Shows the part of a text around the difference.
fn excerpt(text: &str, at: usize) -> String {
    const BEFORE: usize = 30;
    const LONGEST: usize = 100;
    let start = if at > BEFORE * 2 { at - BEFORE } else { 0 };
    let shown: String = text.chars().skip(start).take(LONGEST).collect();
    let (before, after) = (start > 0, text.chars().count() > start + LONGEST);
    format!("{}{shown:?}{}", if before { "…" } else { "" }, if after { "…" } else { "" })
}

fn excerpt_of_document(document: &Value) -> String {
    const LONGEST: usize = 120;
    let text = document.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
