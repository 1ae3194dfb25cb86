//! Assembles an answer of the Messages API from its events.
//!
//! Blocks are distinguished by their `index`. Unknown events, deltas and blocks are kept or skipped, never an error; the event
//! with a `stop_reason` finishes the answer, and later ones change only its usage.

use std::collections::BTreeMap;

use positronic_core::model::Piece;
use positronic_core::model::http::lenient::{any, count, document, list, object, text};
use positronic_core::model::http::{Assemble, MAX_ITEMS, shorten, too_many_items};
use positronic_core::record::{
    DeltaKind, Finish, ModelError, ModelErrorKind, ModelResponse, Part, ResponseMetadata, Usage,
};
use serde_json::Value;

use crate::block::{Block, Kind};

/// Assembles an answer without I/O: events go in, pieces and finally the answer come out.
#[derive(Debug, Default)]
pub struct MessagesAssembler {
    blocks: BTreeMap<u64, Block>,
    metadata: ResponseMetadata,
    usage: Value,
    finish: Option<Finish>,
    refusal: Option<String>,
}

impl Assemble for MessagesAssembler {
    fn feed(&mut self, event: &str) -> Result<Vec<Piece>, ModelError> {
        let event = document(event)?;
        let index = count(&event, "index").unwrap_or(0);
        match text(&event, "type").unwrap_or_default() {
            "message_start" => {
                if let Some(message) = object(&event, "message") {
                    self.read_metadata(message);
                }
            }
            "content_block_start" if self.finish.is_none() => {
                if let Some(Value::Object(block)) = any(&event, "content_block").cloned() {
                    if self.blocks.len() >= MAX_ITEMS && !self.blocks.contains_key(&index) {
                        return Err(too_many_items());
                    }
                    self.blocks.insert(index, Block::new(block));
                    return Ok(self.first_piece(index).into_iter().collect());
                }
            }
            "content_block_delta" if self.finish.is_none() => {
                let delta = object(&event, "delta");
                let added = delta.and_then(|delta| self.blocks.get_mut(&index)?.add(delta));
                return Ok(added.and_then(|added| self.piece(index, added)).into_iter().collect());
            }
            "message_delta" => {
                self.read_usage(&event);
                if let Some(delta) = object(&event, "delta") {
                    self.read_end(delta);
                }
            }
            _ => {}
        }
        Ok(Vec::new())
    }

    fn feed_complete(&mut self, answer: &str) -> Result<Vec<Piece>, ModelError> {
        let message = document(answer)?;
        let Some(content) = list(&message, "content") else {
            let sentence = format!("the answer has no content: {}", shorten(answer));
            return Err(ModelError::new(ModelErrorKind::Malformed, sentence));
        };
        if content.len() > MAX_ITEMS {
            return Err(too_many_items());
        }
        let mut pieces = Vec::new();
        for (index, block) in (0..).zip(content) {
            if let Value::Object(block) = block {
                self.blocks.insert(index, Block::new(block.clone()));
                pieces.extend(self.first_piece(index));
            }
        }
        self.read_metadata(&message);
        self.read_end(&message);
        self.finish.get_or_insert(Finish::Stop);
        Ok(pieces)
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
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
        let metadata = ResponseMetadata { finish, usage: usage(&self.usage), ..self.metadata };
        Ok(ModelResponse { parts, calls, metadata })
    }
}

impl MessagesAssembler {
    fn read_metadata(&mut self, message: &Value) {
        self.metadata.response_id = text(message, "id").map(str::to_owned);
        self.metadata.answered_by = text(message, "model").map(str::to_owned);
        self.read_usage(message);
    }

    /// Takes over the counts of an event, each of which replaces the earlier one.
    fn read_usage(&mut self, event: &Value) {
        let Some(Value::Object(counts)) = object(event, "usage") else { return };
        let known = counts.iter().filter(|(_, value)| !value.is_null());
        match &mut self.usage {
            Value::Object(usage) => usage.extend(known.map(|(name, value)| (name.clone(), value.clone()))),
            other => *other = known.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }

    fn read_end(&mut self, end: &Value) {
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
        (block.kind() == Kind::Call || !first.is_empty()).then(|| self.piece(index, first)).flatten()
    }

    fn piece(&mut self, index: u64, text: String) -> Option<Piece> {
        let (mut part, mut calls, mut before) = (0, 0, None);
        for (_, block) in self.blocks.range(..index) {
            let is_joined = before.is_some_and(|before| block.is_result_of(before));
            part += if is_joined { 0 } else { block.parts() };
            calls += u32::from(block.kind() == Kind::Call);
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
