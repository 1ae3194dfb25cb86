//! Recorded streams, and answers that are read from them.

use std::collections::BTreeMap;

use positronic_core::model::Piece;
use positronic_core::record::{DeltaKind, ModelError, ModelResponse, Part};
use positronic_model_http::{Assemble, SseDecoder};
use serde_json::{Value, json};

/// The pieces of an answer, and the answer or its failure.
pub type Answer = (Vec<Piece>, Result<ModelResponse, ModelError>);

/// Returns the events of a recording, which has one on each line.
#[must_use]
pub fn events(recording: &str) -> Vec<String> {
    recording.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// Plays events to an assembler.
pub fn play<A: Assemble + Default>(events: &[String]) -> Answer {
    let mut assembler = A::default();
    let mut pieces = Vec::new();
    for event in events {
        match assembler.feed(event) {
            Ok(more) => pieces.extend(more),
            Err(error) => return (pieces, Err(error)),
        }
    }
    (pieces, assembler.finish())
}

/// Encodes events as a stream, cuts it into chunks of these sizes, and returns the events that are decoded from them.
#[must_use]
pub fn in_pieces(events: &[String], sizes: &[usize], line_end: &str) -> Vec<String> {
    let stream: String = events.iter().map(|event| format!("data: {event}{line_end}{line_end}")).collect();
    let (mut decoder, mut decoded, mut rest) = (SseDecoder::default(), Vec::new(), stream.as_bytes());
    for size in sizes.iter().cycle() {
        let (part, further) = rest.split_at((*size).min(rest.len()));
        decoded.extend(decoder.feed(part).unwrap());
        rest = further;
        if rest.is_empty() {
            break;
        }
    }
    decoded.extend(decoder.finish());
    decoded.into_iter().map(|event| event.data).collect()
}

/// Checks that the pieces of an answer add up to its parts.
///
/// # Panics
///
/// If they do not.
pub fn add_up(pieces: &[Piece], response: &ModelResponse) {
    let mut streamed: BTreeMap<(u32, String), String> = BTreeMap::new();
    for piece in pieces {
        streamed.entry((piece.part, format!("{:?}", piece.kind))).or_default().push_str(&piece.text);
    }
    for (number, part) in (0..).zip(&response.parts) {
        let (kind, text) = match part {
            Part::Text { text } => (DeltaKind::Text, text),
            Part::Reasoning { text, .. } => (DeltaKind::Reasoning, text),
            Part::Call { index } => {
                let call = &response.calls[*index as usize];
                let named = pieces.iter().find(|piece| piece.call == Some(*index)).unwrap();
                assert_eq!(named.tool.as_deref(), Some(call.name.as_str()));
                (DeltaKind::Arguments, &call.arguments)
            }
            _ => continue,
        };
        let known = streamed.get(&(number, format!("{kind:?}"))).map_or("", String::as_str);
        // A call without arguments streams none.
        assert!(known == text || (known.is_empty() && text == "{}"), "part {number}: {known:?} and {text:?}");
    }
}

/// Renders an answer for a snapshot, with long texts cut, after checking that its pieces add up to it.
#[must_use]
pub fn shown((pieces, answer): Answer) -> Value {
    let mut shown = match answer {
        Ok(response) => {
            add_up(&pieces, &response);
            serde_json::to_value(response).unwrap()
        }
        Err(error) => json!({ "error": error }),
    };
    shown["pieces"] = pieces.len().into();
    cut(&mut shown);
    shown
}

fn cut(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().count() > 60 => {
            let start: String = text.chars().take(40).collect();
            *text = format!("{start}… ({} characters)", text.chars().count());
        }
        Value::Array(items) => items.iter_mut().for_each(cut),
        Value::Object(fields) => fields.values_mut().for_each(cut),
        _ => {}
    }
}
