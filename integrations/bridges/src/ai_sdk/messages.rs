//! The messages of a chat, as a page loads them: what a client has after the chunks that it would have got.

use std::collections::HashMap;
use std::sync::Arc;

use positronic_core::record::{Event, RunId};
use positronic_server::extension::Viewer;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::chunk::{Chunk, Data, StreamChunk};
use super::encoder::{AiSdk, TurnKind};
use crate::leg::{LegEnd, settled};
use crate::projection::{Item, Projection};

/// A message of the AI SDK (`UIMessage`).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "AiSdkUiMessage")]
pub(super) struct LoadedMessage {
    id: String,
    /// `user` or `assistant`.
    role: &'static str,
    /// `runId`, `seq` and `usage` of a message of the assistant.
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
    /// Texts, calls (`dynamic-tool`), data and steps.
    parts: Vec<Map<String, Value>>,
}

/// The messages of a chat.
#[derive(Debug, Default)]
pub(super) struct LoadedChat {
    list: Vec<LoadedMessage>,
    /// Where the texts of the last message are, by their ids.
    texts: HashMap<String, usize>,
}

impl LoadedChat {
    /// Returns the messages, in order. One in which nothing has happened is left out.
    pub(super) fn into_list(self) -> Vec<LoadedMessage> {
        self.list.into_iter().filter(|message| !message.parts.is_empty()).collect()
    }

    /// Adds the messages of a run.
    pub(super) fn run(&mut self, run: &RunId, log: &[Arc<Event>], viewer: &Viewer) {
        let mut projection = Projection::new(run, viewer.clone(), None);
        let mut encoder = AiSdk::new(TurnKind::First);
        self.apply(encoder.start(&projection));
        let first = self.list.len().saturating_sub(1);
        let mut has_first = false;
        for event in log {
            // What the message before shows.
            let next = projection.next();
            if projection.text_answer(event).is_some()
                && let Some(end @ LegEnd::Waiting(_)) = settled(viewer, run, projection.state(), false)
            {
                self.apply(encoder.finish(&projection, end));
            }
            for placed in projection.event(event) {
                let mut chunks = Vec::new();
                if let Some((id, text)) = placed.item.turn_message() {
                    self.apply(encoder.end_turn(&projection, next, TurnKind::Message));
                    self.list.push(said(id, text));
                    chunks = encoder.start(&projection);
                }
                match &placed.item {
                    // The first message of the assistant has also what the run did before it read this. A loop may also begin with an
                    // input of its author.
                    Item::UserMessage { id, text, is_input: true } if !has_first => {
                        has_first = true;
                        if projection.state().start.message.is_some() {
                            self.list.insert(first, said(id, text));
                        }
                    }
                    _ => {}
                }
                encoder.item(placed, &mut chunks);
                self.apply(chunks);
            }
        }
        self.apply(match settled(viewer, run, projection.state(), false) {
            Some(end) => encoder.finish(&projection, end),
            None => encoder.end_turn(&projection, projection.next(), TurnKind::Rest),
        });
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
        let (kind, id) = (json!(kind), json!(id));
        let is_own = |part: &&mut Map<_, _>| part.get("type") == Some(&kind) && part.get("id") == Some(&id);
        match self.list.last_mut().and_then(|message| message.parts.iter_mut().find(is_own)) {
            Some(part) => _ = part.insert("data".to_owned(), data),
            None => self.push(json!({ "type": kind, "id": id, "data": data })),
        }
    }

    fn plain(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Start { message_id: id, message_metadata } => {
                self.texts.clear();
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
                let approval = json!({ "id": approval_id, "requestReason": reason, "descriptor": approval_descriptor });
                self.change_call(&tool_call_id, json!({ "state": "approval-requested", "approval": approval }));
            }
            Chunk::ToolApprovalResponse { approval_id, approved, reason } => {
                let id = json!(approval_id);
                let part = self.find(|part| part.get("approval").and_then(|approval| approval.get("id")) == Some(&id));
                if let Some(part) = part {
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
        let Some((last, earlier)) = self.list.split_last_mut() else { return };
        let is_call = |part: &Map<String, Value>| part.get("toolCallId").and_then(Value::as_str) == Some(id);
        earlier.iter_mut().for_each(|message| message.parts.retain(|part| !is_call(part)));
        match last.parts.iter_mut().find(|part| is_call(part)) {
            Some(part) => part.extend(object(fields)),
            None => {
                let mut part = object(json!({ "type": "dynamic-tool", "toolName": tool, "toolCallId": id }));
                part.extend(object(fields));
                last.parts.push(part);
            }
        }
    }

    fn change_call(&mut self, id: &str, fields: Value) {
        if let Some(part) = self.find(|part| part.get("toolCallId").and_then(Value::as_str) == Some(id)) {
            part.extend(object(fields));
        }
    }

    /// Finds a part, from the last one on.
    fn find(&mut self, is_meant: impl Fn(&Map<String, Value>) -> bool) -> Option<&mut Map<String, Value>> {
        let parts = self.list.iter_mut().rev().flat_map(|message| message.parts.iter_mut().rev());
        parts.into_iter().find(|part| is_meant(part))
    }
}

/// Returns a message of the user.
fn said(id: &str, text: &str) -> LoadedMessage {
    let part = object(json!({ "type": "text", "text": text }));
    LoadedMessage { id: id.to_owned(), role: "user", metadata: Map::new(), parts: vec![part] }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
