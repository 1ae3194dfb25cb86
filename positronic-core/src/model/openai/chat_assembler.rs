//! Assembles a chat answer from its chunks.
//!
//! Calls are distinguished by their `index`, else by their `id`; else a piece belongs to the last call. A known index with
//! another id and name begins a new call, since some servers give every call index 0. An answer is finished by a finish
//! reason, whether or not `[DONE]` follows; a later error does not revoke it. Servers that never send a reason end with
//! the usage and `[DONE]`.

use indexmap::IndexSet;
use serde_json::{Map, Value, json};

use super::chat_chunk::{arguments, cited_pages, content, usage};
use super::responses_tools::citations;
use super::wrapper::unwrap_parallel;
use crate::model::Piece;
use crate::model::http::lenient::{any, document, list, object, objects, text};
use crate::model::http::{MAX_ITEMS, from_data_url, shorten, too_many_items};
use crate::record::{
    Attachment, Citation, DeltaKind, Finish, ModelError, ModelErrorKind, ModelResponse, Part, ProposedCall,
    ResponseMetadata,
};

/// The finish reason of an answer that failed on the server.
const FAILED: &str = "error";

/// The reported finish of an answer with a custom tool call, named as in the Responses API.
const CUSTOM_CALL: &str = "custom_tool_call";

/// Assembles a chat answer without I/O: chunks go in, pieces and finally the answer come out.
#[derive(Debug, Default)]
pub struct ChatAssembler {
    slots: Vec<Slot>,
    calls: Vec<OpenCall>,
    details: Vec<Value>,
    citations: IndexSet<Citation>,
    extra: Option<Value>,
    metadata: ResponseMetadata,
    finish: Option<Finish>,
    answered: bool,
    /// Whether a usage was received.
    counted: bool,
    /// The type of a call that our tools cannot answer.
    unanswerable: Option<&'static str>,
    /// Whether there were more calls than an answer may have.
    has_too_many: bool,
}

#[derive(Debug)]
enum Slot {
    Text(String),
    Refusal(String),
    Reasoning { field: &'static str, text: String },
    Call(usize),
    File(Attachment),
}

#[derive(Debug, Default)]
struct OpenCall {
    index: Option<u64>,
    /// Its place among the slots.
    part: usize,
    id: Option<String>,
    name: String,
    arguments: String,
    data: Option<Value>,
    announced: bool,
}

impl ChatAssembler {
    /// Processes a chunk and returns its pieces.
    ///
    /// # Errors
    ///
    /// A [`ModelError`] of the kind that the server reports if the chunk is an error object, and
    /// [`Malformed`](ModelErrorKind::Malformed) if it is not a JSON object.
    pub fn feed(&mut self, chunk: &str) -> Result<Vec<Piece>, ModelError> {
        let chunk = match document(chunk) {
            Err(_) if self.is_complete() => return Ok(Vec::new()),
            read => read?,
        };
        if let Some(id) = text(&chunk, "id") {
            self.metadata.response_id.get_or_insert_with(|| id.to_owned());
        }
        if let Some(model) = text(&chunk, "model") {
            self.metadata.answered_by = Some(model.to_owned());
        }
        self.cite(cited_pages(&chunk));
        if let Some(usage) = usage(&chunk) {
            self.metadata.usage = usage;
            self.counted = true;
        }
        let mut pieces = Vec::new();
        for choice in objects(&chunk, "choices") {
            if choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0 {
                self.choice(choice, &mut pieces);
            }
        }
        if self.has_too_many { Err(too_many_items()) } else { Ok(pieces) }
    }

    /// Processes an answer that was not streamed, as a single chunk.
    ///
    /// # Errors
    ///
    /// See [`ChatAssembler::feed`], and [`Malformed`](ModelErrorKind::Malformed) if the answer has no message.
    pub fn feed_complete(&mut self, answer: &str) -> Result<Vec<Piece>, ModelError> {
        let pieces = self.feed(answer)?;
        if !self.answered {
            let sentence = format!("the answer contains no message: {}", shorten(answer));
            return Err(ModelError::new(ModelErrorKind::Malformed, sentence));
        }
        self.finish.get_or_insert(Finish::Stop);
        Ok(pieces)
    }

    /// Processes `[DONE]`, which ends a stream. It finishes an answer that has a usage, even without a finish reason.
    pub fn done(&mut self) {
        if self.answered && self.counted {
            self.finish.get_or_insert(Finish::Stop);
        }
    }

    /// Returns whether the model has finished; a broken connection is harmless then.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Returns whether the answer is finished without a server failure.
    fn is_complete(&self) -> bool {
        self.finish.as_ref().is_some_and(|finish| *finish != Finish::Other(FAILED.to_owned()))
    }

    /// Returns the answer.
    ///
    /// # Errors
    ///
    /// [`Truncated`](ModelErrorKind::Truncated) without a finish reason, and [`Server`](ModelErrorKind::Server) if the reason
    /// is a failure of the server.
    pub fn finish(self) -> Result<ModelResponse, ModelError> {
        if self.finish.is_some() && !self.is_complete() {
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
        let calls: Vec<_> = self.calls.into_iter().map(OpenCall::into_call).collect();
        let finish = match self.unanswerable {
            Some(kind) => Finish::Other(kind.to_owned()),
            None if finish == Finish::Stop && !calls.is_empty() => Finish::Calls,
            None => finish,
        };
        let metadata = ResponseMetadata { finish, ..self.metadata };
        Ok(unwrap_parallel(ModelResponse { parts, calls, metadata }))
    }

    fn choice(&mut self, choice: &Value, pieces: &mut Vec<Piece>) {
        if let Some(delta) = object(choice, "delta").or_else(|| object(choice, "message")) {
            self.answered = true;
            self.delta(delta, pieces);
        }
        if let Some(reason) = text(choice, "finish_reason") {
            self.finish = Some(finish(reason));
        }
    }

    fn delta(&mut self, delta: &Value, pieces: &mut Vec<Piece>) {
        // Some servers send the same reasoning in both fields.
        let thought = ["reasoning_content", "reasoning"].into_iter().find_map(|name| Some((name, text(delta, name)?)));
        if let Some((name, text)) = thought {
            self.reasoning(name, text, pieces);
        }
        for detail in list(delta, "reasoning_details").unwrap_or_default() {
            merge_detail(&mut self.details, detail.clone());
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
            self.extra = Some(extra.clone());
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
    fn image(&mut self, image: &Value) {
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

    fn call(&mut self, delta: &Value, pieces: &mut Vec<Piece>) {
        let id = text(delta, "id");
        let function = object(delta, "function").unwrap_or(&Value::Null);
        let (name, piece) = (text(function, "name"), arguments(function));
        let number = self.call_number(delta.get("index").and_then(Value::as_u64), id, name.is_some());
        let Some((number, call)) = number.and_then(|number| Some((number, self.calls.get_mut(number)?))) else {
            return;
        };
        if call.id.is_none() {
            call.id = id.map(str::to_owned);
        }
        if let Some(name) = name.filter(|_| call.name.is_empty()) {
            name.clone_into(&mut call.name);
        }
        call.arguments.push_str(&piece);
        if let Some(extra) = any(delta, "extra_content") {
            call.data = Some(json!({ "extra_content": extra }));
        }
        let tool = (!call.announced && !call.name.is_empty()).then(|| call.name.clone());
        call.announced |= tool.is_some();
        if tool.is_none() && piece.is_empty() {
            return;
        }
        pieces.push(Piece {
            part: u32::try_from(call.part).unwrap_or(u32::MAX),
            kind: DeltaKind::Arguments,
            call: u32::try_from(number).ok(),
            tool,
            text: piece.into_owned(),
        });
    }

    /// Returns the number of the call that a piece belongs to; adds a new one if needed and allowed.
    fn call_number(&mut self, index: Option<u64>, id: Option<&str>, named: bool) -> Option<usize> {
        let another = |call: &OpenCall| named && id.is_some() && call.id.is_some() && call.id.as_deref() != id;
        let known = match (index, id) {
            (Some(_), _) => self.calls.iter().rposition(|call| call.index == index && !another(call)),
            (None, Some(id)) => self
                .calls
                .iter()
                .rposition(|call| call.id.as_deref() == Some(id))
                .or_else(|| self.calls.len().checked_sub(1).filter(|_| !named)),
            (None, None) => self.calls.len().checked_sub(1).filter(|_| !named),
        };
        if known.is_some() {
            return known;
        }
        self.has_too_many |= self.calls.len() >= MAX_ITEMS;
        if self.has_too_many {
            return None;
        }
        self.calls.push(OpenCall { index, part: self.slots.len(), ..OpenCall::default() });
        self.slots.push(Slot::Call(self.calls.len() - 1));
        Some(self.calls.len() - 1)
    }
}

impl OpenCall {
    fn into_call(self) -> ProposedCall {
        let arguments = if self.arguments.trim().is_empty() { "{}".to_owned() } else { self.arguments };
        ProposedCall { provider_id: self.id, name: self.name, arguments, data: self.data }
    }
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
