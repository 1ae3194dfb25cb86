//! The messages of a chat, as a page loads them: what a client has after the chunks that it would have got.

use std::collections::HashMap;

use positronic_core::record::{Event, EventKind, RunId, Speaker};
use positronic_server::extension::Viewer;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::chunk::{Chunk, Data, StreamChunk};
use super::encoder::{AiSdk, TurnKind};
use crate::history::RunMessages;
use crate::leg::{LegEnd, settled};
use crate::projection::{Item, Projection};

/// A message of the AI SDK (`UIMessage`).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "AiSdkUiMessage")]
pub(super) struct LoadedMessage {
    id: String,
    /// `user` or `assistant`.
    role: &'static str,
    /// `runId`, `seq` and `usage` of a message of the assistant; of the first message `leftOutRuns`, the number of earlier runs of the
    /// chat that the answer does not have, if there are any.
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
    /// Texts, calls (`dynamic-tool`), data and steps.
    parts: Vec<Map<String, Value>>,
}

/// The messages of a run.
pub(super) struct LoadedRun {
    viewer: Viewer,
    projection: Projection,
    encoder: AiSdk,
    messages: MessageList,
    /// Whether the first message is there.
    has_first: bool,
}

#[derive(Debug, Default)]
struct MessageList {
    list: Vec<LoadedMessage>,
    /// Where the texts of the last message are, by their ids.
    texts: HashMap<String, usize>,
    /// Where the data of the last message are, by their kinds and ids.
    data: HashMap<(String, Option<String>), usize>,
    /// In which message and where in it the calls are, by their ids.
    calls: HashMap<String, (usize, usize)>,
    /// The calls of approvals, by the ids of these.
    approvals: HashMap<String, String>,
}

impl LoadedRun {
    pub(super) fn new(run: &RunId, viewer: Viewer) -> Self {
        let projection = Projection::new(run, viewer.clone(), None);
        let mut encoder = AiSdk::new(TurnKind::First);
        let mut messages = MessageList::default();
        // It is left out if the run begins without one.
        messages.list.push(LoadedMessage::of_user(String::new(), Vec::new()));
        messages.apply(encoder.start(&projection));
        Self { viewer, projection, encoder, messages, has_first: false }
    }

    /// Returns how the run has settled as of the last event.
    fn settled(&self) -> Option<LegEnd> {
        settled(&self.viewer, self.projection.run(), self.projection.state(), false)
    }
}

impl RunMessages for LoadedRun {
    type Message = LoadedMessage;

    fn event(&mut self, event: &Event) {
        // What the message before shows.
        let next = self.projection.next();
        let is_said = matches!(event.kind, EventKind::LoopMessage { from: Speaker::Person, .. });
        if (is_said || self.projection.text_answer(event).is_some())
            && let Some(end @ LegEnd::Waiting(_)) = self.settled()
        {
            self.messages.apply(self.encoder.finish(&self.projection, end));
        }
        for placed in self.projection.event(event) {
            let mut chunks = Vec::new();
            if let Some((id, text)) = placed.item.turn_message() {
                self.messages.apply(self.encoder.end_turn(&self.projection, next, TurnKind::Message));
                self.messages.list.push(said(id, text));
                chunks = self.encoder.start(&self.projection);
            }
            // The first message of the assistant has also what the run did before it read this. A loop may also begin with an input of
            // its author.
            if let Item::UserMessage { id, text, is_input: true } = &placed.item
                && !std::mem::replace(&mut self.has_first, true)
                && self.projection.state().start.message.is_some()
                && let Some(message) = self.messages.list.first_mut()
            {
                *message = said(id, text);
            }
            self.encoder.item(placed, &mut chunks);
            self.messages.apply(chunks);
        }
    }

    /// Ends the last message as its run has settled, or works. A message in which nothing has happened is left out.
    fn finish(mut self) -> Vec<LoadedMessage> {
        let last = match self.settled() {
            Some(end) => self.encoder.finish(&self.projection, end),
            None => {
                let mut chunks = self.encoder.end_turn(&self.projection, self.projection.next(), TurnKind::Rest);
                self.encoder.ask_refused(&self.projection, &mut chunks);
                chunks
            }
        };
        self.messages.apply(last);
        self.messages.into_list()
    }
}

impl MessageList {
    fn into_list(mut self) -> Vec<LoadedMessage> {
        // A call that has left a message has left an empty part.
        self.list.iter_mut().for_each(|message| message.parts.retain(|part| !part.is_empty()));
        self.list.retain(|message| !message.parts.is_empty());
        self.list
    }

    fn apply(&mut self, chunks: Vec<StreamChunk>) {
        for chunk in chunks {
            match chunk {
                StreamChunk::Plain(chunk) => self.plain(chunk),
                StreamChunk::Data(data) => self.data(data),
            }
        }
    }

    fn data(&mut self, Data { kind, id, data, transient }: Data) {
        if transient {
            return;
        }
        let part = object(json!({ "type": &kind, "id": &id, "data": data }));
        let Some(last) = self.list.last_mut() else { return };
        let index = *self.data.entry((kind, id)).or_insert(last.parts.len());
        match last.parts.get_mut(index) {
            Some(known) => *known = part,
            None => last.parts.push(part),
        }
    }

    fn plain(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Start { message_id: id, message_metadata } => {
                self.texts.clear();
                self.data.clear();
                let metadata = object(message_metadata);
                self.list.push(LoadedMessage { id, role: "assistant", metadata, parts: Vec::new() });
            }
            Chunk::MessageMetadata { message_metadata } => {
                if let Some(message) = self.list.last_mut() {
                    message.metadata.extend(object(message_metadata));
                }
            }
            Chunk::StartStep => self.push(json!({ "type": "step-start" })),
            Chunk::TextStart { id } => self.text(id, json!({ "type": "text", "text": "", "state": "streaming" })),
            Chunk::ReasoningStart { id } => {
                let part = json!({ "type": "reasoning", "id": id, "text": "", "state": "streaming" });
                self.text(id, part);
            }
            Chunk::TextDelta { id, delta } | Chunk::ReasoningDelta { id, delta } => {
                if let Some(Value::String(text)) = self.text_part(&id).and_then(|part| part.get_mut("text")) {
                    text.push_str(&delta);
                }
            }
            Chunk::TextEnd { id } | Chunk::ReasoningEnd { id } => {
                if let Some(part) = self.text_part(&id) {
                    part.insert("state".to_owned(), "done".into());
                }
            }
            Chunk::SourceUrl { source_id, url, title } => {
                let mut part = object(json!({ "type": "source-url", "sourceId": source_id, "url": url }));
                part.extend(title.map(|title| ("title".to_owned(), title.into())));
                self.push(Value::Object(part));
            }
            Chunk::ToolInputStart { tool_call_id, tool_name, .. } => {
                self.set_call(&tool_call_id, &tool_name, json!({ "state": "input-streaming" }));
            }
            Chunk::ToolInputAvailable { tool_call_id, tool_name, input, .. } => {
                self.set_call(&tool_call_id, &tool_name, json!({ "state": "input-available", "input": input }));
            }
            Chunk::ToolApprovalRequest { approval_id, tool_call_id, reason, approval_descriptor } => {
                let mut approval = object(json!({ "id": approval_id, "requestReason": reason }));
                approval.extend(approval_descriptor.map(|descriptor| ("descriptor".to_owned(), descriptor)));
                self.approvals.insert(approval_id, tool_call_id.clone());
                self.change_call(&tool_call_id, json!({ "state": "approval-requested", "approval": approval }));
            }
            Chunk::ToolApprovalResponse { approval_id, approved, reason } => {
                let call = self.approvals.remove(&approval_id);
                if let Some(part) = call.and_then(|call| self.call(&call)) {
                    part.insert("state".to_owned(), "approval-responded".into());
                    if let Some(Value::Object(approval)) = part.get_mut("approval") {
                        approval.insert("approved".to_owned(), approved.into());
                        approval.extend(reason.map(|reason| ("reason".to_owned(), reason.into())));
                    }
                }
            }
            Chunk::ToolOutputAvailable { tool_call_id, output, .. } => {
                self.change_call(&tool_call_id, json!({ "state": "output-available", "output": output }));
            }
            Chunk::ToolOutputError { tool_call_id, error_text, .. } => {
                self.change_call(&tool_call_id, json!({ "state": "output-error", "errorText": error_text }));
            }
            Chunk::ToolOutputDenied { tool_call_id } => {
                self.change_call(&tool_call_id, json!({ "state": "output-denied" }));
            }
            // A log has whole answers, and each message of the user begins a message of the assistant.
            Chunk::ToolInputDelta { .. }
            | Chunk::ResetStep
            | Chunk::FinishStep
            | Chunk::SteeringMessage { .. }
            | Chunk::Finish { .. }
            | Chunk::Error { .. }
            | Chunk::Abort { .. } => {}
        }
    }

    fn push(&mut self, part: Value) {
        if let Some(message) = self.list.last_mut() {
            message.parts.push(object(part));
        }
    }

    fn text(&mut self, id: String, part: Value) {
        self.texts.insert(id, self.list.last().map_or(0, |message| message.parts.len()));
        self.push(part);
    }

    fn text_part(&mut self, id: &str) -> Option<&mut Map<String, Value>> {
        let index = *self.texts.get(id)?;
        self.list.last_mut()?.parts.get_mut(index)
    }

    /// Sets a call of the last message. One that asks again there leaves the message before.
    fn set_call(&mut self, id: &str, tool: &str, fields: Value) {
        let Some(last) = self.list.len().checked_sub(1) else { return };
        if self.calls.get(id).is_none_or(|(message, _)| *message != last) {
            if let Some(left) = self.call(id) {
                left.clear();
            }
            self.calls.insert(id.to_owned(), (last, self.list.last().map_or(0, |message| message.parts.len())));
            self.push(json!({ "type": "dynamic-tool", "toolName": tool, "toolCallId": id }));
        }
        self.change_call(id, fields);
    }

    fn change_call(&mut self, id: &str, fields: Value) {
        if let Some(part) = self.call(id) {
            part.extend(object(fields));
        }
    }

    fn call(&mut self, id: &str) -> Option<&mut Map<String, Value>> {
        let (message, part) = *self.calls.get(id)?;
        self.list.get_mut(message)?.parts.get_mut(part)
    }
}

impl LoadedMessage {
    fn of_user(id: String, parts: Vec<Map<String, Value>>) -> Self {
        Self { id, role: "user", metadata: Map::new(), parts }
    }

    /// Says how many runs before this message are left out.
    pub(super) fn leave_out(&mut self, runs: usize) {
        self.metadata.insert("leftOutRuns".to_owned(), runs.into());
    }
}

/// Returns a message of the user.
fn said(id: &str, text: &str) -> LoadedMessage {
    LoadedMessage::of_user(id.to_owned(), vec![object(json!({ "type": "text", "text": text }))])
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
