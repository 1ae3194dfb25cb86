//! A response of OpenAI's Responses API: the items of one turn, as far as the run has come.

use std::collections::HashSet;
use std::sync::Arc;

use positronic_core::record::{Event, EventKind, Path, RunId, RunSummary, Seq, Speaker, Usage};
use positronic_server::extension::RequestContext;
use positronic_server::{Problem, ProblemType};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::speech::{AskedCall, Speech, SpeechEncoder, TurnEnd, asked_calls};
use crate::leg::{Encoder as _, settled};
use crate::projection::Projection;
use crate::shared::Shared;

/// A response.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "OpenAiResponse")]
pub(super) struct ResponseObject {
    /// `resp_`, the run, and the event from which on it answers.
    pub(super) id: String,
    object: &'static str,
    created_at: i64,
    pub(super) status: &'static str,
    background: bool,
    error: Value,
    incomplete_details: Value,
    instructions: Value,
    metadata: Value,
    pub(super) model: String,
    pub(super) output: Vec<Value>,
    parallel_tool_calls: bool,
    previous_response_id: Option<String>,
    temperature: Value,
    tool_choice: &'static str,
    tools: Vec<Value>,
    top_p: Value,
    usage: Value,
    /// The calls of the caller's tools among the output.
    #[serde(skip)]
    pub(super) asked: Vec<AskedCall>,
    /// The text in progress, with its id.
    #[serde(skip)]
    open: Option<(String, String)>,
}

/// How a response has grown.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Growth {
    /// A new text has begun, or a text has got a piece.
    Text {
        index: usize,
        is_new: bool,
        piece: String,
    },
    /// A text is complete.
    TextDone {
        index: usize,
    },
    /// The run waits for the result of a call of one of the caller's tools.
    Called {
        index: usize,
        call: AskedCall,
    },
    /// The run waits, and has refused to answer for now.
    Refused {
        index: usize,
        refusal: String,
    },
    Over,
}

/// Returns the id of the response that a turn gives.
pub(super) fn response_id(run: &RunId, from: Seq) -> String {
    format!("resp_{run}_{from}")
}

/// Reads the id of a response: its run, and the event from which on it answers.
pub(super) fn turn_of(id: &str) -> Result<(RunId, Seq), Problem> {
    let parts = id.strip_prefix("resp_").and_then(|rest| rest.rsplit_once('_'));
    let turn = parts.and_then(|(run, from)| Some((RunId::new(run), Seq(from.parse().ok()?))));
    turn.ok_or_else(|| Problem::new(ProblemType::NotFound).detail(format!("there is no response `{id}`")))
}

impl ResponseObject {
    /// Creates the response of a turn that has just begun.
    pub(super) fn new(row: &RunSummary, from: Seq) -> Self {
        Self {
            id: response_id(&row.run, from),
            object: "response",
            created_at: row.started.0 / 1_000_000,
            status: "in_progress",
            background: false,
            error: Value::Null,
            incomplete_details: Value::Null,
            instructions: Value::Null,
            metadata: json!({}),
            model: row.brain.to_string(),
            output: Vec::new(),
            parallel_tool_calls: true,
            previous_response_id: None,
            temperature: Value::Null,
            tool_choice: "auto",
            tools: Vec::new(),
            top_p: Value::Null,
            usage: Value::Null,
            asked: Vec::new(),
            open: None,
        }
    }

    /// Sets what the request has named.
    pub(super) fn requested(self, previous: Option<String>, background: bool) -> Self {
        Self { previous_response_id: previous, background, ..self }
    }

    /// Adds what the run says.
    pub(super) fn add(&mut self, speech: Speech) -> Vec<Growth> {
        match speech {
            Speech::Text { id, text } => {
                let mut grown = Vec::new();
                let is_new = self.open.as_ref().is_none_or(|(known, _)| *known != id);
                if is_new {
                    grown.extend(self.close());
                    self.open = Some((id, String::new()));
                }
                if let Some((_, open)) = &mut self.open {
                    open.push_str(&text);
                }
                grown.push(Growth::Text { index: self.output.len(), is_new, piece: text });
                grown
            }
            Speech::TextEnded { id } if self.open.as_ref().is_some_and(|(known, _)| *known == id) => {
                self.close().into_iter().collect()
            }
            Speech::TextEnded { .. } => Vec::new(),
            Speech::Over { end, usage } => {
                let mut grown: Vec<_> = self.close().into_iter().collect();
                self.usage = usage_of(&usage);
                let failed = |message: &str| json!({ "code": "server_error", "message": message });
                match end {
                    TurnEnd::Completed => self.status = "completed",
                    TurnEnd::CutOff => {
                        self.status = "incomplete";
                        self.incomplete_details = json!({ "reason": "max_output_tokens" });
                    }
                    TurnEnd::Called(calls) => {
                        self.status = "completed";
                        grown.extend(calls.into_iter().map(|call| self.called(call)));
                    }
                    TurnEnd::Cancelled => self.status = "cancelled",
                    TurnEnd::Failed(message) | TurnEnd::Broken(message) => {
                        (self.status, self.error) = ("failed", failed(&message));
                    }
                    TurnEnd::Waiting(refusal) => {
                        let index = self.output.len();
                        let part = json!({ "type": "refusal", "refusal": refusal });
                        self.output.push(self.item(index, &[part], "completed"));
                        self.status = "incomplete";
                        grown.push(Growth::Refused { index, refusal });
                    }
                }
                grown.push(Growth::Over);
                grown
            }
        }
    }

    /// Adds a call.
    fn called(&mut self, call: AskedCall) -> Growth {
        let index = self.output.len();
        self.output.push(self.call_item(index, &call, &call.arguments, "completed"));
        self.asked.push(call.clone());
        Growth::Called { index, call }
    }

    /// Returns a call of the output.
    pub(super) fn call_item(&self, index: usize, call: &AskedCall, arguments: &str, status: &str) -> Value {
        json!({
            "id": self.item_id(index), "type": "function_call", "status": status,
            "call_id": call.id, "name": call.tool, "arguments": arguments,
        })
    }

    /// Completes the text in progress.
    fn close(&mut self) -> Option<Growth> {
        let (_, text) = self.open.take()?;
        let index = self.output.len();
        self.output.push(self.item(index, &[text_part(&text)], "completed"));
        Some(Growth::TextDone { index })
    }

    /// Returns the texts of the output.
    pub(super) fn text(&self) -> String {
        let texts = self.output.iter().filter_map(|item| item.pointer("/content/0/text").and_then(Value::as_str));
        texts.collect()
    }

    /// Returns a message of the output.
    pub(super) fn item(&self, index: usize, content: &[Value], status: &str) -> Value {
        let id = self.item_id(index);
        json!({ "id": id, "type": "message", "role": "assistant", "status": status, "content": content })
    }

    /// Returns the id of an item of the output.
    pub(super) fn item_id(&self, index: usize) -> String {
        format!("msg_{}_{index}", self.id.trim_start_matches("resp_"))
    }
}

/// Returns a part of a message with a text.
pub(super) fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [] })
}

fn usage_of(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": { "cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": usage.reasoning },
        "total_tokens": usage.total(),
    })
}

/// Reads the response of a turn as the log has it now.
pub(super) async fn read(
    cx: &RequestContext,
    shared: &Shared,
    row: &RunSummary,
    from: Seq,
) -> Result<ResponseObject, Problem> {
    let (viewer, mut speaker) =
        (cx.viewer()?, SpeechEncoder::new(shared.caller_result(cx, &row.brain)?, Arc::clone(&shared.program)));
    let (mut projection, mut response) = (Projection::new(&row.run, viewer, None), ResponseObject::new(row, from));
    let log = cx.client().events(&row.run, Seq(0)).await?;
    let (mut has_begun, next_turn) = (false, next_turn(&log, from));
    for event in log.iter().take_while(|event| next_turn.is_none_or(|next| event.seq < next)) {
        if !has_begun && event.seq >= from {
            speaker.begin(&projection, from > Seq(0));
            has_begun = true;
        }
        for said in speaker.items(projection.event(event)) {
            if has_begun {
                response.add(said);
            }
        }
    }
    if next_turn.is_some() {
        response.close();
        for call in asked_calls(&projection) {
            response.called(call);
        }
        response.status = "completed";
    } else if let Some(end) = settled(projection.viewer(), &row.run, projection.state(), true) {
        for said in speaker.end(&projection, end) {
            response.add(said);
        }
    } else {
        response.close();
    }
    Ok(response)
}

/// Returns the first event of the turn after the one from an event on: a user's message, or results of calls of the caller's tools. Those that
/// a turn begins with were appended together.
pub(super) fn next_turn(log: &[Arc<Event>], from: Seq) -> Option<Seq> {
    let calls: HashSet<&Path> = log
        .iter()
        .filter(|event| matches!(&event.kind, EventKind::LoopToolCall(call) if call.flags.caller))
        .map(|event| &event.path)
        .collect();
    let is_result = |event: &Event| matches!(event.kind, EventKind::LoopResume { .. }) && calls.contains(&event.path);
    let mut is_opening = true;
    let begins = log.iter().filter(|event| event.seq >= from).find(|event| {
        is_opening &= is_result(event);
        let is_message = matches!(event.kind, EventKind::LoopMessage { from: Speaker::Person, .. });
        (is_message && event.seq > from) || (is_result(event) && !is_opening)
    });
    begins.map(|event| event.seq)
}
