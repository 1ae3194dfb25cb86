//! Assembles an answer of `streamGenerateContent` from its chunks.
//!
//! A chunk has whole parts. Texts in a row are one part of the answer, until one has a signature; the arguments of a call may
//! stream over several chunks. Sources follow at the end. Unknown parts are kept. The chunk with a `finishReason` finishes the
//! answer; where content follows one, the server sends it in every chunk, and only the end of the stream finishes the answer. This
//! API has no event that begins an answer.

use std::collections::BTreeMap;

use positronic_core::model::Piece;
use positronic_core::record::{
    DeltaKind, Finish, ModelError, ModelErrorKind, ModelResponse, Part, ProposedCall, ResponseMetadata, Usage,
};
use positronic_model_http::lenient::{any, count, document, json_text, list, object, objects, text};
use positronic_model_http::{Assemble, MAX_ITEMS, Progress, shorten, too_many_items};
use serde_json::{Map, Value, json};

use crate::wire::ITEM;
use crate::{made_file, partial_args, provider_use, sources};

/// The fields of a part that are read into the record; the others are provider data.
const CALL_FIELDS: [&str; 4] = ["name", "args", "partialArgs", "willContinue"];

/// Assembles an answer without I/O: chunks go in, pieces and finally the answer come out.
#[derive(Debug, Default)]
pub struct GenerateContentAssembler {
    parts: Vec<Part>,
    calls: Vec<ProposedCall>,
    /// The arguments of the last call while they stream.
    streaming: Option<Streaming>,
    /// Where the answer comes from, by the field of the candidate; a later chunk has all of the earlier ones.
    sources: BTreeMap<&'static str, Value>,
    metadata: ResponseMetadata,
    finish: Option<Finish>,
    /// Whether the end was certain when it was last reported: without content.
    is_certain: bool,
    /// Whether content followed a `finishReason`.
    is_contradicted: bool,
}

/// Arguments while they stream.
#[derive(Debug)]
enum Streaming {
    /// With the pieces whose path cannot be read.
    Fields(Map<String, Value>, Vec<Value>),
    /// Anything but an object, as JSON.
    Other(String),
}

impl Assemble for GenerateContentAssembler {
    fn feed(&mut self, chunk: &str) -> Result<Vec<Piece>, ModelError> {
        let chunk = match document(chunk) {
            Err(_) if self.progress() != Progress::Open => return Ok(Vec::new()),
            read => read?,
        };
        self.read_metadata(&chunk);
        if let Some(reason) = object(&chunk, "promptFeedback").and_then(|feedback| text(feedback, "blockReason")) {
            let sentence = format!("the provider blocked the prompt: {}", shorten(reason));
            let blocked = ModelError::new(ModelErrorKind::Filtered, sentence);
            return Err(ModelError { provider_code: Some(reason.to_owned()), ..blocked });
        }
        let Some(candidate) = objects(&chunk, "candidates").first() else { return Ok(Vec::new()) };
        let mut pieces = Vec::new();
        let known = self.parts.len();
        let parts = object(candidate, "content").and_then(|content| list(content, "parts")).unwrap_or_default();
        for part in parts.iter().filter_map(Value::as_object) {
            if self.parts.len() >= MAX_ITEMS {
                return Err(too_many_items());
            }
            self.add(part, &mut pieces);
        }
        for field in sources::FIELDS {
            if let Some(sources) = any(candidate, field) {
                self.sources.insert(field, sources.clone());
            }
        }
        let has_content = !pieces.is_empty() || self.parts.len() > known;
        if has_content {
            self.is_contradicted |= self.finish.is_some();
            self.is_certain = false;
        }
        if let Some(reason) = text(candidate, "finishReason") {
            self.is_certain = !has_content && !self.parts.is_empty() && !self.is_contradicted;
            pieces.extend(self.end_call());
            self.finish = Some(match reason {
                "STOP" => Finish::Stop,
                "MAX_TOKENS" => Finish::Length,
                "SAFETY"
                | "RECITATION"
                | "BLOCKLIST"
                | "PROHIBITED_CONTENT"
                | "SPII"
                | "IMAGE_SAFETY"
                | "IMAGE_PROHIBITED_CONTENT"
                | "IMAGE_RECITATION" => Finish::Filtered,
                other => Finish::Other(other.to_owned()),
            });
        }
        Ok(pieces)
    }

    fn feed_complete(&mut self, answer: &str) -> Result<Vec<Piece>, ModelError> {
        self.feed(answer)
    }

    fn done(&mut self) {
        self.is_certain = self.finish.is_some();
    }

    fn progress(&self) -> Progress {
        match self.finish {
            Some(_) if self.is_certain => Progress::Ended,
            Some(_) if !self.is_contradicted => Progress::Finished,
            _ => Progress::Open,
        }
    }

    fn generation(&self) -> u32 {
        0
    }

    fn metadata(&self) -> &ResponseMetadata {
        &self.metadata
    }

    fn finish(mut self) -> Result<ModelResponse, ModelError> {
        self.end_call();
        let finish = match self.finish {
            Some(Finish::Stop) if !self.calls.is_empty() => Finish::Calls,
            Some(finish) => finish,
            None => {
                let sentence = "the stream ended before the answer was finished";
                return Err(ModelError::new(ModelErrorKind::Truncated, sentence));
            }
        };
        let metadata = ResponseMetadata { finish, ..self.metadata };
        self.sources.iter().for_each(|(field, found)| sources::add(&mut self.parts, field, found));
        Ok(ModelResponse { parts: self.parts, calls: self.calls, metadata })
    }
}

impl GenerateContentAssembler {
    fn read_metadata(&mut self, chunk: &Value) {
        if let Some(id) = text(chunk, "responseId") {
            self.metadata.response_id = Some(id.to_owned());
        }
        if let Some(model) = text(chunk, "modelVersion") {
            self.metadata.answered_by = Some(model.to_owned());
        }
        if let Some(usage) = object(chunk, "usageMetadata") {
            let tokens = |name: &str| count(usage, name).unwrap_or(0);
            // Thoughts are counted beside the answer, and what the provider's tools read beside the prompt.
            let reasoning = tokens("thoughtsTokenCount");
            self.metadata.usage = Usage {
                input: tokens("promptTokenCount").saturating_add(tokens("toolUsePromptTokenCount")),
                output: tokens("candidatesTokenCount").saturating_add(reasoning),
                cached: tokens("cachedContentTokenCount"),
                reasoning,
                ..Usage::default()
            };
        }
    }

    fn add(&mut self, part: &Map<String, Value>, pieces: &mut Vec<Piece>) {
        if let Some(Value::Object(call)) = part.get("functionCall") {
            self.add_call(part, call, pieces);
            return;
        }
        pieces.extend(self.end_call());
        let signature = part.get("thoughtSignature");
        let is_thought = part.get("thought").and_then(Value::as_bool).unwrap_or_default();
        match part.get("text").and_then(Value::as_str) {
            Some(words) if is_thought => pieces.extend(self.add_thought(words, signature)),
            Some(words) => {
                pieces.extend(self.add_text(words));
                if let Some(signature) = signature {
                    let end = json!({ "text": "", "thoughtSignature": signature });
                    self.parts.push(Part::Opaque { data: json!({ ITEM: end }) });
                }
            }
            None if provider_use::add(&mut self.parts, part) => {}
            // A draft of a picture, which people do not see and which does not go back.
            None if is_thought && part.contains_key("inlineData") => {}
            None => {
                let number = 1 + self.parts.iter().filter(|part| matches!(part, Part::File { .. })).count();
                self.parts.push(made_file::read(part, number).unwrap_or_else(|| {
                    let kind = part.keys().find(|name| !name.starts_with("thought"));
                    Part::Opaque { data: json!({ "type": kind, ITEM: part }) }
                }));
            }
        }
    }

    fn add_text(&mut self, words: &str) -> Option<Piece> {
        if words.is_empty() {
            return None;
        }
        if let Some(Part::Text { text }) = self.parts.last_mut() {
            text.push_str(words);
        } else {
            self.parts.push(Part::Text { text: words.to_owned() });
        }
        Some(self.piece(DeltaKind::Text, words.to_owned()))
    }

    fn add_thought(&mut self, words: &str, signature: Option<&Value>) -> Option<Piece> {
        let data = signature.map(|signature| json!({ ITEM: { "thoughtSignature": signature } }));
        match self.parts.last_mut() {
            Some(Part::Reasoning { text, data: known @ None }) => {
                text.push_str(words);
                *known = data;
            }
            _ => self.parts.push(Part::Reasoning { text: words.to_owned(), data }),
        }
        (!words.is_empty()).then(|| self.piece(DeltaKind::Reasoning, words.to_owned()))
    }

    /// Begins a call, or continues the one that streams.
    fn add_call(&mut self, part: &Map<String, Value>, call: &Map<String, Value>, pieces: &mut Vec<Piece>) {
        let name = call.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        if self.is_repeated(call) {
            return;
        }
        if let Some(name) = name {
            pieces.extend(self.end_call());
            let index = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
            self.parts.push(Part::Call { index });
            self.calls.push(ProposedCall {
                provider_id: call.get("id").and_then(Value::as_str).map(str::to_owned),
                name: name.to_owned(),
                arguments: String::new(),
                data: call_data(part, call),
            });
            self.streaming = Some(match call.get("args") {
                None | Some(Value::Null) => Streaming::Fields(Map::new(), Vec::new()),
                Some(Value::Object(fields)) => Streaming::Fields(fields.clone(), Vec::new()),
                Some(other) => Streaming::Other(json_text(other).into_owned()),
            });
            pieces.push(Piece { tool: Some(name.to_owned()), ..self.call_piece(String::new()) });
        }
        if let Some(Streaming::Fields(arguments, unread)) = &mut self.streaming {
            let partial = call.get("partialArgs").and_then(Value::as_array).into_iter().flatten();
            unread.extend(partial.filter(|piece| !partial_args::set(arguments, piece)).cloned());
        }
        let continues = call.get("willContinue").and_then(Value::as_bool).unwrap_or_default();
        if !continues {
            pieces.extend(self.end_call());
        }
    }

    /// Returns whether a call repeats a whole one under its id, as the last chunk of some servers does.
    fn is_repeated(&self, call: &Map<String, Value>) -> bool {
        let field = |name: &str| call.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let (Some(id), Some(name), Some(arguments)) = (field("id"), field("name"), call.get("args")) else {
            return false;
        };
        let arguments = arguments.to_string();
        self.calls
            .iter()
            .any(|known| known.provider_id.as_deref() == Some(id) && known.name == name && known.arguments == arguments)
    }

    /// Completes the call that streams, and returns its arguments as a piece.
    fn end_call(&mut self) -> Option<Piece> {
        let arguments = match self.streaming.take()? {
            Streaming::Fields(fields, unread) if unread.is_empty() => Value::Object(fields).to_string(),
            // Arguments must be an object, so a list makes the call invalid, and the model reads why.
            Streaming::Fields(_, unread) => Value::Array(unread).to_string(),
            Streaming::Other(text) if text.trim().is_empty() => "{}".to_owned(),
            Streaming::Other(text) => text,
        };
        self.calls.last_mut()?.arguments.clone_from(&arguments);
        Some(self.call_piece(arguments))
    }

    fn piece(&self, kind: DeltaKind, text: String) -> Piece {
        let part = u32::try_from(self.parts.len().saturating_sub(1)).unwrap_or(u32::MAX);
        Piece { part, kind, call: None, tool: None, text }
    }

    fn call_piece(&self, text: String) -> Piece {
        let call = u32::try_from(self.calls.len().saturating_sub(1)).ok();
        Piece { call, ..self.piece(DeltaKind::Arguments, text) }
    }
}

/// Returns the provider data of a call: its id, the signature, and fields of later versions.
fn call_data(part: &Map<String, Value>, call: &Map<String, Value>) -> Option<Value> {
    let fields = |from: &Map<String, Value>, known: &[&str]| -> Map<String, Value> {
        from.iter()
            .filter(|(name, _)| !known.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let (own, around) = (fields(call, &CALL_FIELDS), fields(part, &["functionCall"]));
    (!own.is_empty() || !around.is_empty()).then(|| json!({ ITEM: { "call": own, "part": around } }))
}
