//! Puts a Responses answer together from its events.
//!
//! Items are told apart by `output_index`: some servers give one item a new id with every event. An item's end says
//! what it is, its pieces only fill what the end leaves out. Events that are not known are skipped; the answer is finished
//! by `response.completed` or `response.incomplete`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::chat_assembler::malformed;
use super::chat_chunk::Details;
use super::fault::{Fault, shorten};
use super::lenient::{count, lenient, not_empty};
use super::responses_item::{Item, Kind};
use super::wrapper::unwrap_parallel;
use crate::model::Piece;
use crate::record::{DeltaKind, Finish, ModelError, ModelErrorKind, ModelFacts, ModelResponse, Usage};

/// Puts a Responses answer together. It does no I/O: events go in, pieces and at last the answer come out.
#[derive(Debug, Default)]
pub struct ResponsesAssembler {
    items: BTreeMap<u64, Item>,
    facts: ModelFacts,
    finish: Option<Finish>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(deserialize_with = "lenient")]
    r#type: Option<String>,
    #[serde(deserialize_with = "count")]
    output_index: Option<u64>,
    #[serde(deserialize_with = "count")]
    content_index: Option<u64>,
    #[serde(deserialize_with = "count")]
    summary_index: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    delta: Option<String>,
    #[serde(deserialize_with = "lenient")]
    item: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    response: Option<Response>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Response {
    #[serde(deserialize_with = "lenient")]
    id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    error: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    incomplete_details: Option<Incomplete>,
    #[serde(deserialize_with = "lenient")]
    output: Option<Vec<Value>>,
    #[serde(deserialize_with = "lenient")]
    usage: Option<ResponseUsage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Incomplete {
    #[serde(deserialize_with = "lenient")]
    reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResponseUsage {
    #[serde(deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    input_tokens_details: Option<Details>,
    #[serde(deserialize_with = "lenient")]
    output_tokens_details: Option<Details>,
}

impl ResponsesAssembler {
    /// Takes one event and returns what it adds.
    ///
    /// # Errors
    ///
    /// A [`ModelError`] of the kind the server names where the event says that the answer failed, and
    /// [`Malformed`](ModelErrorKind::Malformed) where it is no JSON object.
    pub fn feed(&mut self, event: &str) -> Result<Vec<Piece>, ModelError> {
        let document: Value = serde_json::from_str(event).map_err(|error| malformed(&error, event))?;
        if document.get("type").is_some_and(|kind| kind == "error") {
            let error = document.get("error").filter(|error| !error.is_null()).unwrap_or(&document);
            return Err(Fault::of(error).into_error());
        }
        if let Some(fault) = Fault::read(&document) {
            return Err(fault.into_error());
        }
        let event: Event = serde_json::from_value(document).map_err(|error| malformed(&error, event))?;
        self.event(event)
    }

    /// Takes an answer that was not streamed.
    ///
    /// # Errors
    ///
    /// As [`ResponsesAssembler::feed`], and [`Malformed`](ModelErrorKind::Malformed) where there is no output in it.
    pub fn feed_whole(&mut self, answer: &str) -> Result<Vec<Piece>, ModelError> {
        let document: Value = serde_json::from_str(answer).map_err(|error| malformed(&error, answer))?;
        if let Some(fault) = Fault::read(&document) {
            return Err(fault.into_error());
        }
        let response: Response = serde_json::from_value(document).map_err(|error| malformed(&error, answer))?;
        if response.output.is_none() {
            let sentence = format!("the answer holds no output: {}", shorten(answer));
            return Err(ModelError::new(ModelErrorKind::Malformed, sentence));
        }
        self.end(response)?;
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
        let mut calls = Vec::new();
        let mut parts = Vec::with_capacity(self.items.len());
        for item in self.items.into_values() {
            parts.extend(item.into_parts(&mut calls));
        }
        let finish = if finish == Finish::Stop && !calls.is_empty() { Finish::Calls } else { finish };
        let facts = ModelFacts { finish, ..self.facts };
        Ok(unwrap_parallel(ModelResponse { parts, calls, facts }))
    }

    fn event(&mut self, event: Event) -> Result<Vec<Piece>, ModelError> {
        let place = event.output_index.or_else(|| self.items.keys().next_back().copied()).unwrap_or(0);
        let mut pieces = Vec::new();
        match event.r#type.as_deref().unwrap_or_default() {
            "response.created" | "response.in_progress" => {
                if let Some(response) = event.response {
                    self.know(response.id, response.model);
                }
            }
            "response.output_item.added" => {
                if let Some(value) = event.item {
                    self.items.insert(place, Item { value, ..Item::default() });
                    pieces.extend(self.announce(place));
                }
            }
            "response.output_item.done" => {
                if let Some(value) = event.item {
                    let item = self.items.entry(place).or_default();
                    item.value = value;
                    item.done = true;
                    pieces.extend(self.rest(place));
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                pieces.extend(self.add(place, "message", event.delta, event.content_index));
            }
            "response.reasoning_summary_text.delta" => {
                pieces.extend(self.add(place, "reasoning", event.delta, event.summary_index));
            }
            "response.reasoning_text.delta" => {
                pieces.extend(self.add(place, "reasoning", event.delta, event.content_index));
            }
            "response.function_call_arguments.delta" => {
                pieces.extend(self.add(place, "function_call", event.delta, None));
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.end(event.response.unwrap_or_default())?;
            }
            _ => {}
        }
        Ok(pieces)
    }

    fn know(&mut self, id: Option<String>, model: Option<String>) {
        if let Some(id) = not_empty(id) {
            self.facts.response_id = Some(id);
        }
        if let Some(model) = not_empty(model) {
            self.facts.answered_by = Some(model);
        }
    }

    fn end(&mut self, response: Response) -> Result<(), ModelError> {
        self.know(response.id, response.model);
        if let Some(usage) = response.usage {
            self.facts.usage = Usage {
                input: usage.input_tokens.unwrap_or(0),
                output: usage.output_tokens.unwrap_or(0),
                cached: usage.input_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0),
                reasoning: usage.output_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0),
            };
        }
        if let Some(error) = response.error {
            return Err(Fault::of(&error).into_error());
        }
        self.finish = Some(match response.status.as_deref() {
            Some("failed" | "cancelled") => {
                return Err(ModelError::new(ModelErrorKind::Server, "the server failed and did not say why"));
            }
            Some("queued" | "in_progress") => {
                return Err(ModelError::new(ModelErrorKind::Truncated, "the server answered before it was done"));
            }
            Some("incomplete") => match response.incomplete_details.and_then(|details| details.reason) {
                Some(reason) if reason == "content_filter" => Finish::Filtered,
                Some(reason) if reason != "max_output_tokens" => Finish::Other(reason),
                _ => Finish::Length,
            },
            _ => Finish::Stop,
        });
        // The output repeats the items. It counts where items have not come one by one, or not to their end.
        let done = self.items.values().filter(|item| item.done).count();
        if let Some(output) = response.output.filter(|output| output.len() > done) {
            self.items = (0..).zip(output.into_iter().map(Item::whole)).collect();
        }
        Ok(())
    }

    fn add(&mut self, place: u64, kind: &str, delta: Option<String>, section: Option<u64>) -> Option<Piece> {
        let delta = not_empty(delta)?;
        let item =
            self.items.entry(place).or_insert_with(|| Item { value: json!({ "type": kind }), ..Item::default() });
        let text = if item.kind() == Kind::Thought && item.section.is_some() && item.section != section {
            format!("\n\n{delta}")
        } else {
            delta
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
