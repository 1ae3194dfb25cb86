//! Helpers for models without a provider: a plain encoding of requests, and streaming of finished answers.

use serde::Serialize;

use super::{DeltaSink, Piece};
use crate::record::{Assistant, DeltaKind, Message, ModelRequest, ModelResponse, Part, wire_text};

/// Encodes a request as the JSON of its fields.
pub(super) fn plain_wire(request: &ModelRequest) -> String {
    const DIALECT: &str = "plain";
    let mut out = String::from("{\"system\":");
    out.push_str(&wire_text(&*request.system));
    out.push_str(",\"context\":");
    out.push_str(&wire_text(&*request.context));
    out.push_str(",\"tools\":");
    out.push_str(&request.tools.wire(DIALECT, wire_text));
    out.push_str(",\"settings\":");
    out.push_str(&wire_text(&*request.settings));
    out.push_str(",\"messages\":[");
    for (index, entry) in request.messages.read().iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&entry.wire(DIALECT, encode));
    }
    out.push_str("]}");
    out
}

/// Encodes a message, without the model that gave it: a plain model has no private data.
fn encode(message: &Message) -> Box<str> {
    #[derive(Serialize)]
    struct AnswerMessage<'a> {
        role: &'static str,
        parts: &'a [Assistant],
    }
    match message {
        Message::Assistant { parts, .. } => wire_text(&AnswerMessage { role: "assistant", parts }),
        other => wire_text(other),
    }
}

/// Streams a finished answer to a sink: its text word by word, each call as one piece.
pub(super) fn emit_pieces(response: &ModelResponse, deltas: &dyn DeltaSink) {
    if !deltas.has_reader() {
        return;
    }
    for (part, content) in (0..).zip(&response.parts) {
        let words = |kind, text: &str| {
            for word in text.split_inclusive(' ') {
                deltas.piece(Piece { part, kind, call: None, tool: None, text: word.to_owned() });
            }
        };
        match content {
            Part::Text { text } | Part::Refusal { text } => words(DeltaKind::Text, text),
            Part::Reasoning { text, .. } => words(DeltaKind::Reasoning, text),
            Part::Call { index } => {
                let call = usize::try_from(*index).ok().and_then(|index| response.calls.get(index));
                if let Some(call) = call {
                    let (tool, text) = (Some(call.name.clone()), call.arguments.clone());
                    deltas.piece(Piece { part, kind: DeltaKind::Arguments, call: Some(*index), tool, text });
                }
            }
            Part::Citations { .. } | Part::ProviderTool(_) | Part::File { .. } | Part::Opaque { .. } => {}
        }
    }
}
