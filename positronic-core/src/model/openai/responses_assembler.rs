//! Puts a Responses answer together from its events.
//!
//! Items are told apart by `output_index`: some servers give one item a new id with every event. An item's end says
//! what it is, its pieces only fill what the end leaves out. Events that are not known are skipped; the answer is finished
//! by `response.completed` or `response.incomplete`, and nothing behind them changes it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::chat_chunk::cache;
use super::fault::{Fault, MAX_ITEMS, shorten, too_many_items};
use super::lenient::{any, count, document, list, object, text};
use super::responses_item::{Item, Kind, unanswerable};
use super::wrapper::unwrap_parallel;
use crate::model::Piece;
use crate::record::{DeltaKind, Finish, ModelError, ModelErrorKind, ModelResponse, ResponseMetadata, Usage};

/// Puts a Responses answer together. It does no I/O: events go in, pieces and at last the answer come out.
#[derive(Debug, Default)]
pub struct ResponsesAssembler {
    items: BTreeMap<u64, Item>,
    metadata: ResponseMetadata,
    finish: Option<Finish>,
}

impl ResponsesAssembler {
    /// Takes one event and returns what it adds.
    ///
    /// # Errors
    ///
    /// A [`ModelError`] of the kind the server names where the event says that the answer failed, and
    /// [`Malformed`](ModelErrorKind::Malformed) where it is no JSON object.
    pub fn feed(&mut self, event: &str) -> Result<Vec<Piece>, ModelError> {
        if self.is_finished() {
            return Ok(Vec::new());
        }
        let event = document(event)?;
        if text(&event, "type") == Some("error") {
            return Err(Fault::of(&event).into_error());
        }
        self.event(&event)
    }

    /// Takes an answer that was not streamed.
    ///
    /// # Errors
    ///
    /// As [`ResponsesAssembler::feed`], and [`Malformed`](ModelErrorKind::Malformed) where there is no output in it.
    pub fn feed_whole(&mut self, answer: &str) -> Result<Vec<Piece>, ModelError> {
        let response = document(answer)?;
        if list(&response, "output").is_none() {
            let sentence = format!("the answer holds no output: {}", shorten(answer));
            return Err(ModelError::new(ModelErrorKind::Malformed, sentence));
        }
        self.end(&response)?;
        let places: Vec<_> = self.items.keys().copied().collect();
        Ok(places.into_iter().filter_map(|place| self.rest(place)).collect())
    }

    /// Says whether the model has said that it is done; a broken connection does no harm then.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Ends the answer.
    ///
    /// # Errors
    ///
    /// [`Truncated`](ModelErrorKind::Truncated) when neither `response.completed` nor `response.incomplete` has come.
    pub fn finish(self) -> Result<ModelResponse, ModelError> {
        let Some(finish) = self.finish else {
            let sentence = "the stream ended before the answer was finished";
            return Err(ModelError::new(ModelErrorKind::Truncated, sentence));
        };
        let unanswerable = unanswerable(&self.items);
        let mut calls = Vec::new();
        let mut parts = Vec::with_capacity(self.items.len());
        for item in self.items.into_values() {
            parts.extend(item.into_parts(&mut calls));
        }
        let finish = match unanswerable {
            Some(kind) => Finish::Other(kind),
            None if finish == Finish::Stop && !calls.is_empty() => Finish::Calls,
            None => finish,
        };
        let metadata = ResponseMetadata { finish, ..self.metadata };
        Ok(unwrap_parallel(ModelResponse { parts, calls, metadata }))
    }

    fn event(&mut self, event: &Value) -> Result<Vec<Piece>, ModelError> {
        let place = count(event, "output_index").or_else(|| self.items.keys().next_back().copied()).unwrap_or(0);
        if self.items.len() >= MAX_ITEMS && !self.items.contains_key(&place) {
            return Err(too_many_items());
        }
        let (delta, response) = (text(event, "delta"), object(event, "response"));
        let mut pieces = Vec::new();
        match text(event, "type").unwrap_or_default() {
            "response.created" | "response.in_progress" => {
                if let Some(response) = response {
                    self.know(response);
                }
            }
            "response.output_item.added" => {
                if let Some(value) = any(event, "item").cloned() {
                    self.items.insert(place, Item { value, ..Item::default() });
                    pieces.extend(self.announce(place));
                }
            }
            "response.output_item.done" => {
                if let Some(value) = any(event, "item").cloned() {
                    let item = self.items.entry(place).or_default();
                    item.value = value;
                    item.done = true;
                    pieces.extend(self.rest(place));
                }
            }
            kind @ ("response.output_text.delta" | "response.refusal.delta") => {
                pieces.extend(self.add(place, "message", delta, count(event, "content_index")));
                if let Some(item) = self.items.get_mut(&place).filter(|_| kind == "response.refusal.delta") {
                    item.refuses = true;
                }
            }
            "response.reasoning_summary_text.delta" => {
                pieces.extend(self.add(place, "reasoning", delta, count(event, "summary_index")));
            }
            "response.reasoning_text.delta" => {
                pieces.extend(self.add(place, "reasoning", delta, count(event, "content_index")));
            }
            "response.function_call_arguments.delta" => {
                pieces.extend(self.add(place, "function_call", delta, None));
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.end(response.unwrap_or(&Value::Null))?;
            }
            _ => {}
        }
        Ok(pieces)
    }

    fn know(&mut self, response: &Value) {
        if let Some(id) = text(response, "id") {
            self.metadata.response_id = Some(id.to_owned());
        }
        if let Some(model) = text(response, "model") {
            self.metadata.answered_by = Some(model.to_owned());
        }
    }

    fn end(&mut self, response: &Value) -> Result<(), ModelError> {
        self.know(response);
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
            };
        }
        if let Some(error) = any(response, "error") {
            return Err(Fault::of(error).into_error());
        }
        self.finish = Some(match text(response, "status") {
            Some("failed" | "cancelled") => {
                return Err(ModelError::new(ModelErrorKind::Server, "the server failed and did not say why"));
            }
            Some("queued" | "in_progress") => {
                return Err(ModelError::new(ModelErrorKind::Truncated, "the server answered before it was done"));
            }
            Some("incomplete") => match object(response, "incomplete_details").and_then(|why| text(why, "reason")) {
                Some("content_filter") => Finish::Filtered,
                Some(reason) if reason != "max_output_tokens" => Finish::Other(reason.to_owned()),
                _ => Finish::Length,
            },
            _ => Finish::Stop,
        });
        // The output repeats the items. It counts where items have not come one by one, or not to their end.
        let done = self.items.values().filter(|item| item.done).count();
        if let Some(output) = list(response, "output").filter(|output| output.len() > done) {
            if output.len() > MAX_ITEMS {
                return Err(too_many_items());
            }
            self.items = (0..).zip(output.iter().cloned().map(Item::whole)).collect();
        }
        Ok(())
    }

    fn add(&mut self, place: u64, kind: &str, delta: Option<&str>, section: Option<u64>) -> Option<Piece> {
        let delta = delta?;
        let item =
            self.items.entry(place).or_insert_with(|| Item { value: json!({ "type": kind }), ..Item::default() });
        let text = if item.kind() == Kind::Thought && item.section.is_some() && item.section != section {
            format!("\n\n{delta}")
        } else {
            delta.to_owned()
        };
        item.section = section;
        item.text.push_str(&text);
        self.piece(place, text)
    }

    /// Makes the first piece of a call, which names its tool.
    fn announce(&mut self, place: u64) -> Option<Piece> {
        let item = self.items.get(&place)?;
        (item.kind() == Kind::Call && item.name().is_some()).then(|| self.piece(place, String::new())).flatten()
    }

    /// Makes the last piece of an item whose pieces did not all come, or which came whole.
    fn rest(&mut self, place: u64) -> Option<Piece> {
        let item = self.items.get(&place)?;
        let whole = item.whole_text()?;
        let rest = whole.strip_prefix(item.text.as_str()).filter(|rest| !rest.is_empty())?.to_owned();
        self.piece(place, rest)
    }

    fn piece(&mut self, place: u64, text: String) -> Option<Piece> {
        let before = self.items.range(..place);
        let (parts, calls) = before.fold((0, 0), |(parts, calls), (_, item)| {
            (parts + item.parts(), calls + u32::from(item.kind() == Kind::Call))
        });
        let item = self.items.get_mut(&place)?;
        let kind = match item.kind() {
            Kind::Message => DeltaKind::Text,
            Kind::Thought => DeltaKind::Reasoning,
            Kind::Call => DeltaKind::Arguments,
            Kind::Other => return None,
        };
        let is_call = kind == DeltaKind::Arguments;
        let tool = item.name().filter(|_| is_call && !item.announced).map(str::to_owned);
        item.announced |= tool.is_some();
        let part = parts + item.parts_before_stream();
        Some(Piece { part, kind, call: is_call.then_some(calls), tool, text })
    }
}
