//! Assembles a Responses answer from its events.
//!
//! Items are distinguished by `output_index`: some servers change an item's id with every event. Others give the same index to all
//! items, so an item that begins under the index of another one after its end is a further one. The final item is
//! authoritative; its pieces only fill what it omits. Unknown events are skipped; `response.completed` or
//! `response.incomplete` finishes the answer, and later events do not change it. Another `response.created` restarts the
//! answer, also after its end: only the usage of the earlier one is kept.

use std::collections::BTreeMap;

use positronic_core::model::Piece;
use positronic_core::record::{DeltaKind, Finish, ModelError, ModelErrorKind, ModelResponse, ResponseMetadata, Usage};
use positronic_model_http::lenient::{BorrowedValue, Json, any, count, document, json_text, list, object, text};
use positronic_model_http::{Assemble, MAX_ITEMS, Progress, reported_error, shorten, too_many_items};
use serde_json::json;

use super::chat_chunk::cache;
use super::responses_item::{Item, ItemKind, unanswerable};
use super::wrapper::unwrap_parallel;

/// Assembles a Responses answer without I/O: events go in, pieces and finally the answer come out.
#[derive(Debug, Default)]
pub struct ResponsesAssembler {
    items: BTreeMap<u64, Item>,
    /// The places of the items to which the events with an `output_index` belong.
    places: BTreeMap<u64, u64>,
    metadata: ResponseMetadata,
    finish: Option<Finish>,
    has_begun: bool,
    generation: u32,
    /// The usage of the responses before the last beginning.
    abandoned: Usage,
}

impl Assemble for ResponsesAssembler {
    fn feed(&mut self, event: &str) -> Result<Vec<Piece>, ModelError> {
        let event: BorrowedValue<'_> = match document(event) {
            Err(_) if self.finish.is_some() => return Ok(Vec::new()),
            read => read?,
        };
        match text(&event, "type") {
            Some("response.created") => self.begin(object(&event, "response").unwrap_or(&BorrowedValue::Null)),
            _ if self.finish.is_some() => return Ok(Vec::new()),
            None if list(&event, "output").is_some() => return self.complete(&event),
            _ => {}
        }
        self.event(&event)
    }

    fn feed_complete(&mut self, answer: &str) -> Result<Vec<Piece>, ModelError> {
        let response: BorrowedValue<'_> = document(answer)?;
        if list(&response, "output").is_none() {
            let sentence = format!("the answer contains no output: {}", shorten(answer));
            return Err(ModelError::new(ModelErrorKind::Malformed, sentence));
        }
        self.complete(&response)
    }

    /// The API does not send `[DONE]`.
    fn done(&mut self) {}

    fn progress(&self) -> Progress {
        if self.finish.is_some() { Progress::Ended } else { Progress::Open }
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
        let unanswerable = unanswerable(&self.items);
        let mut calls = Vec::new();
        let mut parts = Vec::with_capacity(self.items.len());
        for (number, item) in (1..).zip(self.items.into_values()) {
            parts.extend(item.into_parts(number, &mut calls));
        }
        let finish = match unanswerable {
            Some(kind) => Finish::Other(kind),
            None if finish == Finish::Stop && !calls.is_empty() => Finish::Calls,
            None => finish,
        };
        let metadata = ResponseMetadata { finish, ..self.metadata };
        Ok(unwrap_parallel(ModelResponse { parts, calls, metadata }))
    }
}

impl ResponsesAssembler {
    /// Begins a response. An earlier one is discarded, but its usage counts.
    fn begin(&mut self, response: &BorrowedValue<'_>) {
        if std::mem::replace(&mut self.has_begun, true) {
            self.generation += 1;
            self.items.clear();
            self.places.clear();
            self.finish = None;
            if text(response, "id") != self.metadata.response_id.as_deref() {
                self.abandoned = self.metadata.usage;
            }
        }
    }

    /// Reads a whole response.
    fn complete(&mut self, response: &BorrowedValue<'_>) -> Result<Vec<Piece>, ModelError> {
        self.end(response)?;
        let indexes: Vec<_> = self.items.keys().copied().collect();
        Ok(indexes.into_iter().filter_map(|index| self.rest(index)).collect())
    }

    fn event(&mut self, event: &BorrowedValue<'_>) -> Result<Vec<Piece>, ModelError> {
        let begins = text(event, "type").and_then(|kind| match kind {
            "response.output_item.added" => Some((any(event, "item")?, true)),
            "response.output_item.done" => Some((any(event, "item")?, false)),
            _ => None,
        });
        let index = self.place(count(event, "output_index"), begins);
        if self.items.len() >= MAX_ITEMS && !self.items.contains_key(&index) {
            return Err(too_many_items());
        }
        let (delta, response) = (text(event, "delta"), object(event, "response"));
        let mut pieces = Vec::new();
        match text(event, "type").unwrap_or_default() {
            "response.created" | "response.in_progress" => {
                if let Some(response) = response {
                    self.read_metadata(response);
                }
            }
            "response.output_item.added" => {
                if let Some(value) = any(event, "item").map(Json::to_value) {
                    self.items.insert(index, Item { value, ..Item::default() });
                    pieces.extend(self.announce(index));
                }
            }
            "response.output_item.done" => {
                if let Some(value) = any(event, "item").map(Json::to_value) {
                    let item = self.items.entry(index).or_default();
                    item.value = value;
                    item.done = true;
                    pieces.extend(self.rest(index));
                }
            }
            kind @ ("response.output_text.delta" | "response.refusal.delta") => {
                pieces.extend(self.add(index, "message", delta, count(event, "content_index")));
                if let Some(item) = self.items.get_mut(&index).filter(|_| kind == "response.refusal.delta") {
                    item.refuses = true;
                }
            }
            "response.reasoning_summary_text.delta" => {
                pieces.extend(self.add(index, "reasoning", delta, count(event, "summary_index")));
            }
            "response.reasoning_text.delta" => {
                pieces.extend(self.add(index, "reasoning", delta, count(event, "content_index")));
            }
            "response.function_call_arguments.delta" => {
                let delta = any(event, "delta").map(json_text);
                pieces.extend(self.add(index, "function_call", delta.as_deref(), None));
            }
            kind
            @ ("response.output_text.done" | "response.refusal.done" | "response.function_call_arguments.done") => {
                pieces.extend(self.whole(index, kind, event));
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.end(response.unwrap_or(&BorrowedValue::Null))?;
            }
            _ => {}
        }
        Ok(pieces)
    }

    /// Returns the place of the item to which an event belongs; `begins` is the item that it brings, and whether that is its first version.
    fn place(&mut self, index: Option<u64>, begins: Option<(&BorrowedValue<'_>, bool)>) -> u64 {
        let last = self.items.last_key_value().map(|(last, _)| *last);
        let known = match index {
            Some(index) => self.places.get(&index).copied(),
            None => last,
        };
        let is_before = |place: &u64| {
            let known = self.items.get(place).zip(begins);
            known.is_some_and(|(known, (item, is_first))| known.is_before(item, is_first))
        };
        let next = last.map_or(0, |last| last.saturating_add(1));
        let place = match (known, index) {
            (Some(place), _) if !is_before(&place) => place,
            (None, Some(index)) if !self.items.contains_key(&index) => index,
            _ => next,
        };
        if let Some(index) = index {
            self.places.insert(index, place);
        }
        place
    }

    fn read_metadata(&mut self, response: &BorrowedValue<'_>) {
        if let Some(id) = text(response, "id") {
            self.metadata.response_id = Some(id.to_owned());
        }
        if let Some(model) = text(response, "model") {
            self.metadata.answered_by = Some(model.to_owned());
        }
    }

    fn end(&mut self, response: &BorrowedValue<'_>) -> Result<(), ModelError> {
        self.read_metadata(response);
        if let Some(usage) = object(response, "usage") {
            let details = object(usage, "output_tokens_details");
            let reasoning = details.and_then(|details| count(details, "reasoning_tokens"));
            let (cached, cache_write) = cache(usage, "input_tokens_details");
            self.metadata.usage = Usage {
                input: count(usage, "input_tokens").unwrap_or(0),
                output: count(usage, "output_tokens").unwrap_or(0),
                cached,
                cache_write,
                reasoning: reasoning.unwrap_or(0),
                ..Usage::default()
            };
            self.metadata.usage += self.abandoned;
        }
        if let Some(error) = any(response, "error") {
            return Err(reported_error(&error.to_value()));
        }
        self.finish = Some(match text(response, "status") {
            Some("failed" | "cancelled") => {
                return Err(ModelError::new(ModelErrorKind::Server, "the server failed without a reason"));
            }
            Some("queued" | "in_progress") => {
                return Err(ModelError::new(ModelErrorKind::Truncated, "the server returned an unfinished answer"));
            }
            Some("incomplete") => match object(response, "incomplete_details").and_then(|why| text(why, "reason")) {
                Some("content_filter") => Finish::Filtered,
                Some(reason) if reason != "max_output_tokens" => Finish::Other(reason.to_owned()),
                _ => Finish::Length,
            },
            _ => Finish::Stop,
        });
        // The output repeats the items. It is used if items were not streamed, or not to their end.
        let done = self.items.values().filter(|item| item.done).count();
        if let Some(output) = list(response, "output").filter(|output| output.len() > done) {
            if output.len() > MAX_ITEMS {
                return Err(too_many_items());
            }
            self.items = (0..).zip(output.iter().map(Json::to_value).map(Item::complete)).collect();
        }
        Ok(())
    }

    fn add(&mut self, index: u64, kind: &str, delta: Option<&str>, section: Option<u64>) -> Option<Piece> {
        let delta = delta?;
        let item =
            self.items.entry(index).or_insert_with(|| Item { value: json!({ "type": kind }), ..Item::default() });
        let text = if item.kind() == ItemKind::Thought && item.section.is_some() && item.section != section {
            format!("\n\n{delta}")
        } else {
            delta.to_owned()
        };
        item.section = section;
        item.text.push_str(&text);
        self.piece(index, text)
    }

    /// Reads the whole text or arguments of an item, where a server streams no pieces of it.
    fn whole(&mut self, index: u64, kind: &str, event: &BorrowedValue<'_>) -> Option<Piece> {
        if self.items.get(&index).is_some_and(|item| item.done || !item.text.is_empty()) {
            return None;
        }
        match kind {
            "response.output_text.done" => {
                self.add(index, "message", text(event, "text"), count(event, "content_index"))
            }
            "response.refusal.done" => {
                let piece = self.add(index, "message", text(event, "refusal"), count(event, "content_index"));
                if let Some(item) = self.items.get_mut(&index) {
                    item.refuses = true;
                }
                piece
            }
            _ => {
                let arguments = any(event, "arguments").map(json_text);
                self.add(index, "function_call", arguments.as_deref(), None)
            }
        }
    }

    /// Returns the first piece of a call, with the tool's name.
    fn announce(&mut self, index: u64) -> Option<Piece> {
        let item = self.items.get(&index)?;
        (item.kind() == ItemKind::Call && item.name().is_some()).then(|| self.piece(index, String::new())).flatten()
    }

    /// Returns the last piece of an item, if its pieces are incomplete.
    fn rest(&mut self, index: u64) -> Option<Piece> {
        let item = self.items.get(&index)?;
        let full = item.full_text()?;
        let rest = full.strip_prefix(item.text.as_str()).filter(|rest| !rest.is_empty())?.to_owned();
        self.piece(index, rest)
    }

    fn piece(&mut self, index: u64, text: String) -> Option<Piece> {
        let before = self.items.range(..index);
        let (parts, calls) = before.fold((0, 0), |(parts, calls), (_, item)| {
            (parts + item.parts(), calls + u32::from(item.kind() == ItemKind::Call))
        });
        let item = self.items.get_mut(&index)?;
        let kind = match item.kind() {
            ItemKind::Message => DeltaKind::Text,
            ItemKind::Thought => DeltaKind::Reasoning,
            ItemKind::Call => DeltaKind::Arguments,
            ItemKind::Other => return None,
        };
        let is_call = kind == DeltaKind::Arguments;
        let tool = item.name().filter(|_| is_call && !item.announced).map(str::to_owned);
        item.announced |= tool.is_some();
        let part = parts + item.parts_before_stream();
        Some(Piece { part, kind, call: is_call.then_some(calls), tool, text })
    }
}
