//! Assembles an answer of the Messages API from its events.
//!
//! Blocks are distinguished by their `index`; some servers give the same one to all blocks, so a block that begins under the index of
//! another one after its end is a further one. Unknown events, deltas and blocks are kept or skipped, never an error. A
//! `stop_reason` finishes the answer, `message_stop` ends it. Another `message_start` restarts the answer, also after its end:
//! only the usage of the earlier one is kept.

use std::collections::BTreeMap;

use positronic_core::model::Piece;
use positronic_core::record::{
    DeltaKind, Finish, ModelError, ModelErrorKind, ModelResponse, Part, ResponseMetadata, Usage,
};
use positronic_model_http::lenient::{BorrowedValue, Json, any, count, document, list, object, text};
use positronic_model_http::{Assemble, MAX_ITEMS, Progress, shorten, too_many_items};
use serde_json::{Map, Value};

use crate::block::{BlockKind, StreamedBlock};

/// Assembles an answer without I/O: events go in, pieces and finally the answer come out.
#[derive(Debug, Default)]
pub struct MessagesAssembler {
    blocks: BTreeMap<u64, StreamedBlock>,
    /// The places of the blocks to which the events with an index belong.
    places: BTreeMap<u64, u64>,
    metadata: ResponseMetadata,
    usage: Value,
    finish: Option<Finish>,
    refusal: Option<String>,
    has_begun: bool,
    has_ended: bool,
    /// Whether content followed a `stop_reason`.
    is_contradicted: bool,
    generation: u32,
    /// The usage of the messages before the last beginning.
    abandoned: Usage,
}

impl Assemble for MessagesAssembler {
    fn feed(&mut self, event: &str) -> Result<Vec<Piece>, ModelError> {
        let read: BorrowedValue<'_> = match document(event) {
            Err(_) if self.progress() != Progress::Open => return Ok(Vec::new()),
            read => read?,
        };
        let index = count(&read, "index").unwrap_or(0);
        match text(&read, "type").unwrap_or_default() {
            "message_start" => self.begin(object(&read, "message").unwrap_or(&BorrowedValue::Null)),
            "message" => return self.feed_complete(event),
            "content_block_start" | "content_block_delta" if self.has_ended => {}
            "content_block_start" => {
                if let Some(Value::Object(block)) = any(&read, "content_block").map(Json::to_value) {
                    let index = self.begin_block(index, &block);
                    if self.blocks.len() >= MAX_ITEMS && !self.blocks.contains_key(&index) {
                        return Err(too_many_items());
                    }
                    self.is_contradicted |= self.finish.is_some();
                    self.blocks.insert(index, StreamedBlock::new(block));
                    return Ok(self.first_piece(index).into_iter().collect());
                }
            }
            "content_block_delta" => {
                self.is_contradicted |= self.finish.is_some();
                let (delta, index) = (object(&read, "delta"), self.place(index));
                let added = delta.and_then(|delta| self.blocks.get_mut(&index)?.add(delta));
                return Ok(added.and_then(|added| self.piece(index, added)).into_iter().collect());
            }
            "content_block_stop" => {
                let index = self.place(index);
                let rest = self.blocks.get_mut(&index).and_then(StreamedBlock::end);
                return Ok(rest.and_then(|rest| self.piece(index, rest)).into_iter().collect());
            }
            "message_stop" => self.has_ended = self.finish.is_some(),
            "message_delta" => {
                self.read_usage(&read);
                if let Some(delta) = object(&read, "delta") {
                    self.read_end(delta);
                }
            }
            _ => {}
        }
        Ok(Vec::new())
    }

    fn feed_complete(&mut self, answer: &str) -> Result<Vec<Piece>, ModelError> {
        let message: BorrowedValue<'_> = document(answer)?;
        let Some(content) = list(&message, "content") else {
            let sentence = format!("the answer has no content: {}", shorten(answer));
            return Err(ModelError::new(ModelErrorKind::Malformed, sentence));
        };
        if content.len() > MAX_ITEMS {
            return Err(too_many_items());
        }
        let mut pieces = Vec::new();
        for (index, block) in (0..).zip(content) {
            if let Value::Object(block) = block.to_value() {
                let mut block = StreamedBlock::new(block);
                block.end();
                self.blocks.insert(index, block);
                pieces.extend(self.first_piece(index));
            }
        }
        self.read_metadata(&message);
        self.read_end(&message);
        self.finish.get_or_insert(Finish::Stop);
        self.has_ended = true;
        Ok(pieces)
    }

    fn done(&mut self) {}

    fn progress(&self) -> Progress {
        match self.finish {
            Some(_) if self.has_ended => Progress::Ended,
            Some(_) if !self.is_contradicted => Progress::Finished,
            _ => Progress::Open,
        }
    }

    fn generation(&self) -> u32 {
        self.generation
    }

    fn metadata(&self) -> &ResponseMetadata {
        &self.metadata
    }

    fn finish(self) -> Result<ModelResponse, ModelError> {
        let Some(finish) = self.finish else {
            let sentence = "the stream ended before the answer was finished";
            return Err(ModelError::new(ModelErrorKind::Truncated, sentence));
        };
        let mut calls = Vec::new();
        let mut parts = Vec::new();
        let mut blocks = self.blocks.into_values().peekable();
        while let Some(block) = blocks.next() {
            let result = blocks.next_if(|next| next.is_result_of(&block));
            parts.extend(block.into_parts(result, &mut calls));
        }
        if let Some(text) = self.refusal.filter(|_| finish == Finish::Refused) {
            parts.push(Part::Refusal { text });
        }
        let metadata = ResponseMetadata { finish, ..self.metadata };
        Ok(ModelResponse { parts, calls, metadata })
    }
}

impl MessagesAssembler {
    /// Begins a message. An earlier one is discarded, but its usage counts.
    fn begin(&mut self, message: &BorrowedValue<'_>) {
        if std::mem::replace(&mut self.has_begun, true) {
            self.generation += 1;
            self.blocks.clear();
            self.places.clear();
            (self.finish, self.refusal, self.has_ended, self.is_contradicted) = (None, None, false, false);
            if text(message, "id") != self.metadata.response_id.as_deref() {
                self.abandoned = self.metadata.usage;
                self.usage = Value::Null;
            }
        }
        self.read_metadata(message);
    }

    /// Returns the place of the block to which the events with an index belong.
    fn place(&self, index: u64) -> u64 {
        self.places.get(&index).copied().unwrap_or(index)
    }

    /// Returns the place of a block that begins, and takes the later events with its index for it.
    fn begin_block(&mut self, index: u64, block: &Map<String, Value>) -> u64 {
        let known = self.blocks.get(&self.place(index));
        let is_taken = known.is_some_and(|known| !self.places.contains_key(&index) || known.is_before(block));
        let next = self.blocks.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
        let place = if is_taken { next } else { self.place(index) };
        self.places.insert(index, place);
        place
    }

    fn read_metadata(&mut self, message: &BorrowedValue<'_>) {
        self.metadata.response_id = text(message, "id").map(str::to_owned);
        self.metadata.answered_by = text(message, "model").map(str::to_owned);
        self.read_usage(message);
    }

    /// Takes over the counts of an event, each of which replaces the earlier one.
    fn read_usage(&mut self, event: &BorrowedValue<'_>) {
        let Some(counts) = object(event, "usage") else { return };
        let known = counts.fields().filter(|(_, value)| !value.is_null());
        let known = known.map(|(name, value)| (name.to_owned(), value.to_value()));
        match &mut self.usage {
            Value::Object(usage) => usage.extend(known),
            other => *other = known.collect(),
        }
        self.metadata.usage = usage(&self.usage);
        self.metadata.usage += self.abandoned;
    }

    fn read_end(&mut self, end: &BorrowedValue<'_>) {
        let Some(reason) = text(end, "stop_reason") else { return };
        self.refusal = object(end, "stop_details").and_then(|why| text(why, "explanation")).map(str::to_owned);
        self.finish = Some(match reason {
            "end_turn" | "stop_sequence" => Finish::Stop,
            "tool_use" => Finish::Calls,
            "max_tokens" | "model_context_window_exceeded" => Finish::Length,
            "refusal" => Finish::Refused,
            "pause_turn" => Finish::Paused,
            other => Finish::Other(other.to_owned()),
        });
    }

    /// Returns the first piece of a block: its first text, or the tool's name.
    fn first_piece(&mut self, index: u64) -> Option<Piece> {
        let block = self.blocks.get(&index)?;
        let first = block.text().to_owned();
        (block.kind() == BlockKind::Call || !first.is_empty()).then(|| self.piece(index, first)).flatten()
    }

    fn piece(&mut self, index: u64, text: String) -> Option<Piece> {
        let (mut part, mut calls, mut before) = (0, 0, None);
        for (_, block) in self.blocks.range(..index) {
            let is_joined = before.is_some_and(|before| block.is_result_of(before));
            part += if is_joined { 0 } else { block.parts() };
            calls += u32::from(block.kind() == BlockKind::Call);
            before = Some(block);
        }
        let block = self.blocks.get_mut(&index)?;
        let kind = block.streamed()?;
        let is_call = kind == DeltaKind::Arguments;
        let tool = block.name().filter(|_| is_call && !block.announced).map(str::to_owned);
        block.announced |= tool.is_some();
        Some(Piece { part, kind, call: is_call.then_some(calls), tool, text })
    }
}

/// Converts the counts. The API counts what was read from the cache and written to it beside `input_tokens`, and thinking
/// within `output_tokens`.
fn usage(usage: &Value) -> Usage {
    let tokens = |name: &str| count(usage, name).unwrap_or(0);
    let (cached, cache_write) = (tokens("cache_read_input_tokens"), tokens("cache_creation_input_tokens"));
    let input = tokens("input_tokens").saturating_add(cached).saturating_add(cache_write);
    let in_object = |object_name: &str, name: &str| object(usage, object_name).and_then(|inner| count(inner, name));
    let cache_write_1h = in_object("cache_creation", "ephemeral_1h_input_tokens").unwrap_or(0);
    let reasoning = in_object("output_tokens_details", "thinking_tokens").unwrap_or(0);
    Usage { input, output: tokens("output_tokens"), cached, cache_write, cache_write_1h, reasoning }
}
