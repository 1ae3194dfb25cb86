//! Assembles a chat answer from its chunks.
//!
//! An answer is finished by a finish reason, whether or not `[DONE]` follows; a later error does not revoke it. Where content
//! follows a reason, the server sends one in every chunk: then only `[DONE]` or the end of the stream finishes the answer.
//! Servers that never send a reason end with the usage and `[DONE]`.
//!
//! This API has no event that begins an answer. Another `id` does not begin one: routers change it with every chunk, and when they
//! continue an answer with another model.

use indexmap::IndexSet;
use positronic_core::model::Piece;
use positronic_core::record::{
    Attachment, Citation, DeltaKind, Finish, ModelError, ModelErrorKind, ModelResponse, Part, ResponseMetadata,
};
use positronic_model_http::lenient::{BorrowedValue, Json, any, document, list, object, objects, text};
use positronic_model_http::{Assemble, MAX_ITEMS, Progress, from_data_url, shorten, too_many_items};
use serde_json::{Map, Number, Value, json};

use super::chat_calls::{AddedText, ChatCalls};
use super::chat_chunk::{cited_pages, content, usage};
use super::responses_tools::citations;
use super::wrapper::unwrap_parallel;

/// The finish reason of an answer that failed on the server.
const FAILED: &str = "error";

/// The reported finish of an answer with a custom tool call, named as in the Responses API.
const CUSTOM_CALL: &str = "custom_tool_call";

/// Assembles a chat answer without I/O: chunks go in, pieces and finally the answer come out.
#[derive(Debug, Default)]
pub struct ChatAssembler {
    /// Whether the request asks for several choices, of which the first one is read.
    has_choices: bool,
    slots: Vec<Slot>,
    calls: ChatCalls,
    details: Vec<Value>,
    citations: IndexSet<Citation>,
    extra: Option<Value>,
    metadata: ResponseMetadata,
    finish: Option<Finish>,
    /// Whether the end was certain when it was last reported: without content, or by usage.
    is_certain: bool,
    /// Whether content followed a finish reason.
    is_contradicted: bool,
    answered: bool,
    /// Whether content came in pieces.
    is_streamed: bool,
    /// Whether a usage was received.
    counted: bool,
    /// The type of a call that our tools cannot answer.
    unanswerable: Option<&'static str>,
}

#[derive(Debug)]
enum Slot {
    Text(String),
    Refusal(String),
    Reasoning { field: &'static str, text: String },
    Call(usize),
    File(Attachment),
}

impl ChatAssembler {
    /// Creates an assembler for a request that asks for several choices; the first one is read. The default one reads the only
    /// choice, whatever its index is.
    #[must_use]
    pub fn of_first_choice() -> Self {
        Self { has_choices: true, ..Self::default() }
    }

    /// Returns whether the server has failed.
    fn has_failed(&self) -> bool {
        matches!(&self.finish, Some(Finish::Other(reason)) if reason == FAILED)
    }
}

impl Assemble for ChatAssembler {
    fn feed(&mut self, chunk: &str) -> Result<Vec<Piece>, ModelError> {
        let chunk: BorrowedValue<'_> = match document(chunk) {
            Err(_) if self.progress() != Progress::Open && !self.has_failed() => return Ok(Vec::new()),
            read => read?,
        };
        if let Some(id) = text(&chunk, "id") {
            self.metadata.response_id.get_or_insert_with(|| id.to_owned());
        }
        if let Some(model) = text(&chunk, "model") {
            self.metadata.answered_by = Some(model.to_owned());
        }
        self.cite(cited_pages(&chunk));
        let choices = objects(&chunk, "choices");
        if let Some(usage) = usage(&chunk) {
            self.metadata.usage = usage;
            self.counted = true;
            self.is_certain |= choices.is_empty() && self.finish.is_some();
        }
        let mut pieces = Vec::new();
        let is_only = choices.len() == 1 && !self.has_choices;
        for choice in choices {
            if is_only || is_first(choice) {
                self.choice(choice, &mut pieces);
            }
        }
        if self.calls.has_too_many { Err(too_many_items()) } else { Ok(pieces) }
    }

    fn feed_complete(&mut self, answer: &str) -> Result<Vec<Piece>, ModelError> {
        let pieces = self.feed(answer)?;
        if !self.answered {
            let sentence = format!("the answer contains no message: {}", shorten(answer));
            return Err(ModelError::new(ModelErrorKind::Malformed, sentence));
        }
        self.finish.get_or_insert(Finish::Stop);
        Ok(pieces)
    }

    /// `[DONE]` finishes an answer that has a usage, even without a finish reason.
    fn done(&mut self) {
        if self.answered && self.counted {
            self.finish.get_or_insert(Finish::Stop);
        }
        self.is_certain = self.finish.is_some();
    }

    fn progress(&self) -> Progress {
        match self.finish {
            Some(_) if self.is_certain || self.has_failed() => Progress::Ended,
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

    fn finish(self) -> Result<ModelResponse, ModelError> {
        if self.has_failed() {
            let sentence = "the server ended the answer with the finish reason `error` but no error message";
            return Err(ModelError::new(ModelErrorKind::Server, sentence));
        }
        let Some(finish) = self.finish else {
            let sentence = "the stream ended before the answer was finished";
            return Err(ModelError::new(ModelErrorKind::Truncated, sentence));
        };
        let mut details = Some(self.details).filter(|details| !details.is_empty());
        let mut parts = Vec::with_capacity(self.slots.len());
        for slot in self.slots {
            parts.push(match slot {
                Slot::Text(text) => Part::Text { text },
                Slot::Refusal(text) => Part::Refusal { text },
                Slot::Reasoning { field, text } => {
                    Part::Reasoning { text, data: Some(reasoning_data(field, details.take())) }
                }
                Slot::Call(index) => Part::Call { index: u32::try_from(index).unwrap_or(u32::MAX) },
                Slot::File(file) => Part::File { file, data: None },
            });
        }
        if let Some(details) = details {
            let data = Some(reasoning_data("reasoning", Some(details)));
            parts.push(Part::Reasoning { text: String::new(), data });
        }
        if !self.citations.is_empty() {
            parts.push(Part::Citations { citations: self.citations.into_iter().collect(), data: None });
        }
        if let Some(extra) = self.extra {
            parts.push(Part::Opaque { data: json!({ "extra_content": extra }) });
        }
        let calls = self.calls.into_calls();
        let finish = match self.unanswerable {
            Some(kind) => Finish::Other(kind.to_owned()),
            None if finish == Finish::Stop && !calls.is_empty() => Finish::Calls,
            None => finish,
        };
        let metadata = ResponseMetadata { finish, ..self.metadata };
        Ok(unwrap_parallel(ModelResponse { parts, calls, metadata }))
    }
}

impl ChatAssembler {
    fn choice<J: Json>(&mut self, choice: &J, pieces: &mut Vec<Piece>) {
        let before = (pieces.len(), self.slots.len());
        let (delta, message) = (object(choice, "delta"), object(choice, "message"));
        match (delta.filter(|delta| !is_void(*delta)), message) {
            (Some(delta), _) => {
                self.answered = true;
                self.is_streamed = true;
                self.delta(delta, pieces);
            }
            (None, Some(message)) if self.is_streamed => self.whole(message, pieces),
            (None, either) => {
                if let Some(delta) = either.or(delta) {
                    self.answered = true;
                    self.delta(delta, pieces);
                }
            }
        }
        let has_content = (pieces.len(), self.slots.len()) != before;
        if has_content {
            self.is_contradicted |= self.finish.is_some();
            self.is_certain = false;
        }
        if let Some(reason) = text(choice, "finish_reason") {
            self.finish = Some(finish(reason));
            self.is_certain = !has_content && !self.slots.is_empty() && !self.is_contradicted;
        }
    }

    /// Reads what a whole message, which repeats the streamed pieces, has beyond them.
    fn whole<J: Json>(&mut self, message: &J, pieces: &mut Vec<Piece>) {
        let streamed = |slots: &[Slot], thought: bool| -> String {
            let texts = slots.iter().filter_map(|slot| match slot {
                Slot::Text(text) if !thought => Some(text.as_str()),
                Slot::Reasoning { text, .. } if thought => Some(text.as_str()),
                _ => None,
            });
            texts.collect()
        };
        let mut rest = message.to_value();
        for (thought, names) in [(true, ["reasoning_content", "reasoning"].as_slice()), (false, ["content"].as_slice())]
        {
            let known = streamed(&self.slots, thought);
            for name in names {
                let text = message.get(name).and_then(J::as_str);
                let more = text.and_then(|text| text.strip_prefix(known.as_str())).unwrap_or_default();
                if let Some(field) = rest.get_mut(*name).filter(|_| text.is_some() || !known.is_empty()) {
                    *field = more.into();
                }
            }
        }
        if let Some(fields) = rest.as_object_mut() {
            fields.remove("tool_calls");
            if !self.details.is_empty() {
                fields.remove("reasoning_details");
            }
            if self.slots.iter().any(|slot| matches!(slot, Slot::Refusal(_))) {
                fields.remove("refusal");
            }
        }
        self.delta(&rest, pieces);
        for (number, call) in objects(message, "tool_calls").iter().enumerate() {
            let (known, part) = (self.calls.len(), self.slots.len());
            let added = self.calls.complete(number, call, part);
            self.call_piece(known, added, pieces);
        }
    }

    fn delta<J: Json>(&mut self, delta: &J, pieces: &mut Vec<Piece>) {
        // Some servers send the same reasoning in both fields.
        let thought = ["reasoning_content", "reasoning"].into_iter().find_map(|name| Some((name, text(delta, name)?)));
        if let Some((name, text)) = thought {
            self.reasoning(name, text, pieces);
        }
        for detail in list(delta, "reasoning_details").unwrap_or_default() {
            merge_detail(&mut self.details, detail.to_value());
        }
        for (thought, text) in content(delta) {
            if thought {
                self.reasoning("content", &text, pieces);
            } else {
                self.text(&text, pieces);
            }
        }
        if let Some(text) = text(delta, "refusal") {
            self.refusal(text, pieces);
        }
        for call in objects(delta, "tool_calls") {
            // Later pieces have no `type`, but `custom` instead of `function`.
            if text(call, "type") == Some("custom") || object(call, "custom").is_some() {
                self.unanswerable = Some(CUSTOM_CALL);
            } else {
                self.call(call, pieces);
            }
        }
        if let Some(extra) = any(delta, "extra_content") {
            self.extra = Some(extra.to_value());
        }
        self.cite(citations(delta));
        for image in objects(delta, "images") {
            self.image(image);
        }
    }

    fn cite(&mut self, citations: Vec<Citation>) {
        for citation in citations {
            if self.citations.len() < MAX_ITEMS {
                self.citations.insert(citation);
            }
        }
    }

    /// Adds a picture that the model made, as OpenRouter and others send it: a `data:` URL. The complete message repeats those of the
    /// stream.
    fn image<J: Json>(&mut self, image: &J) {
        let url = object(image, "image_url").and_then(|image| text(image, "url")).unwrap_or_default();
        let Some((media_type, bytes)) = from_data_url(url) else { return };
        let number = 1 + self.slots.iter().filter(|slot| matches!(slot, Slot::File(_))).count();
        let file = Attachment::made(number, media_type, bytes);
        let is_same = |slot: &Slot| matches!(slot, Slot::File(known) if known.file().sha256 == file.file().sha256);
        if !self.slots.iter().any(is_same) {
            self.slots.push(Slot::File(file));
        }
    }

    fn text(&mut self, piece: &str, pieces: &mut Vec<Piece>) {
        if piece.is_empty() {
            return;
        }
        if let Some(Slot::Text(text)) = self.slots.last_mut() {
            text.push_str(piece);
        } else {
            self.slots.push(Slot::Text(piece.to_owned()));
        }
        pieces.push(self.piece(DeltaKind::Text, piece));
    }

    fn refusal(&mut self, piece: &str, pieces: &mut Vec<Piece>) {
        if let Some(Slot::Refusal(text)) = self.slots.last_mut() {
            text.push_str(piece);
        } else {
            self.slots.push(Slot::Refusal(piece.to_owned()));
        }
        pieces.push(self.piece(DeltaKind::Text, piece));
    }

    fn reasoning(&mut self, name: &'static str, piece: &str, pieces: &mut Vec<Piece>) {
        if piece.is_empty() {
            return;
        }
        match self.slots.last_mut() {
            Some(Slot::Reasoning { field, text }) if *field == name => text.push_str(piece),
            _ => self.slots.push(Slot::Reasoning { field: name, text: piece.to_owned() }),
        }
        pieces.push(self.piece(DeltaKind::Reasoning, piece));
    }

    fn piece(&self, kind: DeltaKind, text: &str) -> Piece {
        let part = u32::try_from(self.slots.len().saturating_sub(1)).unwrap_or(u32::MAX);
        Piece { part, kind, call: None, tool: None, text: text.to_owned() }
    }

    fn call<J: Json>(&mut self, delta: &J, pieces: &mut Vec<Piece>) {
        let known = self.calls.len();
        let added = self.calls.add(delta, self.slots.len());
        self.call_piece(known, added, pieces);
    }

    /// Adds the slot of a new call, and the piece of a call.
    fn call_piece(&mut self, known: usize, added: Option<AddedText>, pieces: &mut Vec<Piece>) {
        if self.calls.len() > known {
            self.slots.push(Slot::Call(known));
        }
        pieces.extend(added.map(|AddedText { number, part, tool, text }| Piece {
            part: u32::try_from(part).unwrap_or(u32::MAX),
            kind: DeltaKind::Arguments,
            call: u32::try_from(number).ok(),
            tool,
            text,
        }));
    }
}

/// Returns whether a choice is the first one, which may have no index.
fn is_first<J: Json>(choice: &J) -> bool {
    choice.get("index").and_then(J::as_number).and_then(Number::as_u64).unwrap_or(0) == 0
}

/// Returns whether a delta has no content.
fn is_void<J: Json>(delta: &J) -> bool {
    let is_empty = |value: &J| {
        value.is_null() || value.as_str().is_some_and(str::is_empty) || value.as_array().is_some_and(<[J]>::is_empty)
    };
    delta.fields().all(|(name, value)| name == "role" || is_empty(value))
}

fn reasoning_data(field: &str, details: Option<Vec<Value>>) -> Value {
    let mut data = Map::new();
    data.insert("field".to_owned(), field.into());
    if let Some(details) = details {
        data.insert("details".to_owned(), details.into());
    }
    data.into()
}

/// Adds a piece of `reasoning_details`: pieces of one entry share index and type, and their texts are concatenated.
fn merge_detail(details: &mut Vec<Value>, piece: Value) {
    let same = |one: &Value| ["index", "type"].iter().all(|name| one.get(name) == piece.get(name));
    let open = details.last_mut().filter(|last| last.get("index").is_some_and(|index| !index.is_null()) && same(last));
    let Some(Value::Object(open)) = open else { return details.push(piece) };
    let Value::Object(piece) = piece else { return };
    for (name, value) in piece {
        match (open.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more)) if ["text", "summary", "data"].contains(&&*name) => {
                text.push_str(&more);
            }
            (_, value) => {
                open.insert(name, value);
            }
        }
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "stop" | "end_turn" | "stop_sequence" | "eos" | "STOP" => Finish::Stop,
        "tool_calls" | "tool_use" | "function_call" => Finish::Calls,
        "length" | "max_tokens" | "model_length" | "MAX_TOKENS" => Finish::Length,
        "content_filter" | "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "sensitive" => {
            Finish::Filtered
        }
        "refusal" => Finish::Refused,
        _ => Finish::Other(reason.to_owned()),
    }
}
