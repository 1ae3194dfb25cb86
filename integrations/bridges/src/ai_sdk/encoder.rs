//! Items as chunks of the UI message stream.
//!
//! One message of the assistant is one turn of a run: from the message of the user to the next one. The protocol has no nested
//! agents, so a nested brain is a data part, and of its calls only those are shown that need an approval.

use std::collections::{BTreeMap, BTreeSet};

use positronic_core::projection::result_text;
use positronic_core::record::{PendingKind, SideOutput, ToolResult};
use positronic_server::extension::{Frame, OpenQuestion};
use serde_json::{Value, json};

use super::chunk::{Chunk, Data, TextPart};
use crate::leg::{Encoder, LegEnd, PAUSED};
use crate::outputs::{Outputs, status};
use crate::projection::{ApprovalOutcome, BrainOutcome, Item, Placed, Projection, TextKind};
use crate::thread::RefusedAnswer;

/// Encodes a leg.
pub(super) struct AiSdk {
    /// Whether the leg begins with a message of the user.
    is_new_turn: bool,
    /// How many messages the user has sent to the run.
    messages: usize,
    in_step: bool,
    in_nested_step: bool,
    texts: BTreeMap<String, TextKind>,
    /// The tools and arguments of calls in nested brains, until they are shown.
    nested: BTreeMap<String, (String, Value)>,
    tools: BTreeMap<String, String>,
    shown: BTreeSet<String>,
    outputs: Outputs,
    refused: Vec<RefusedAnswer>,
    has_begun: bool,
}

impl AiSdk {
    pub(super) fn new(is_new_turn: bool) -> Self {
        Self {
            is_new_turn,
            messages: 0,
            in_step: false,
            in_nested_step: false,
            texts: BTreeMap::new(),
            nested: BTreeMap::new(),
            tools: BTreeMap::new(),
            shown: BTreeSet::new(),
            outputs: Outputs::default(),
            refused: Vec::new(),
            has_begun: false,
        }
    }

    /// Ends the leg with an error that says which answers were not recorded.
    pub(super) fn with_refused_answers(self, refused: Vec<RefusedAnswer>) -> Self {
        Self { refused, ..self }
    }

    /// Asks again what a refused answer has left open, and returns why it was refused.
    fn refused(&mut self, projection: &Projection, questions: &[OpenQuestion], out: &mut Vec<Frame>) -> Option<Chunk> {
        let refused = std::mem::take(&mut self.refused);
        for open in questions.iter().filter(|open| refused.iter().any(|answer| answer.question == open.id)) {
            if let PendingKind::Approval { gate, .. } = &open.pending.kind {
                out.push(Frame::json(&Chunk::ToolApprovalRequest {
                    approval_id: open.id.clone(),
                    tool_call_id: projection.call_id(&open.pending.call),
                    reason: gate.reason.clone(),
                }));
            }
        }
        let texts: Vec<_> = refused.iter().map(|answer| answer.problem.message()).collect();
        (!texts.is_empty()).then(|| Chunk::Error { error_text: texts.join("\n") })
    }

    fn item(&mut self, placed: Placed, out: &mut Vec<Frame>) {
        let is_nested = placed.brain.is_some();
        let mut push = |chunk: Chunk| out.push(Frame::json(&chunk));
        match placed.item {
            Item::BrainStarted { id, title, .. } => {
                out.push(Frame::json(&Data::new("brain", id, json!({ "title": title, "status": "running" }))));
            }
            Item::BrainEnded { id, outcome } => {
                let status = match outcome {
                    BrainOutcome::Completed(_) => "completed",
                    BrainOutcome::Failed(_) => "failed",
                    BrainOutcome::Cancelled => "cancelled",
                };
                out.push(Frame::json(&Data::new("brain", id, json!({ "status": status }))));
            }
            Item::StageStarted { path } if !is_nested => {
                out.push(Frame::json(&Data::new("stage", path.as_str(), json!({ "status": "running" }))));
            }
            Item::StageEnded { path } if !is_nested => {
                self.end_step(out);
                out.push(Frame::json(&Data::new("stage", path.as_str(), json!({ "status": "completed" }))));
            }
            Item::IterationStarted if !is_nested => {
                self.end_step(out);
                self.in_step = true;
                out.push(Frame::json(&Chunk::StartStep));
            }
            Item::TextStarted { id, kind, .. } if !is_nested => {
                self.texts.insert(id.clone(), kind);
                push(match kind {
                    TextKind::Answer => Chunk::TextStart { id },
                    TextKind::Reasoning => Chunk::ReasoningStart { id },
                });
            }
            Item::TextDelta { id, text: delta } => match self.texts.get(&id) {
                Some(TextKind::Answer) => push(Chunk::TextDelta { id, delta }),
                Some(TextKind::Reasoning) => push(Chunk::ReasoningDelta { id, delta }),
                None => {}
            },
            Item::TextEnded { id } => match self.texts.remove(&id) {
                Some(TextKind::Answer) => push(Chunk::TextEnd { id }),
                Some(TextKind::Reasoning) => push(Chunk::ReasoningEnd { id }),
                None => {}
            },
            Item::Discarded { .. } if !is_nested && self.in_step => {
                self.texts.clear();
                push(Chunk::ResetStep);
            }
            Item::Sources { id, sources } if !is_nested => {
                for (index, source) in sources.into_iter().enumerate() {
                    if let Some(url) = source.url {
                        push(Chunk::SourceUrl { source_id: format!("{id}.{index}"), url, title: source.title });
                    }
                }
            }
            Item::CallStarted { id, tool, .. } => {
                self.tools.insert(id.clone(), tool.clone());
                if !is_nested {
                    self.shown.insert(id.clone());
                    push(Chunk::ToolInputStart { tool_call_id: id, tool_name: tool, dynamic: true });
                }
            }
            Item::CallArguments { id, text } if !is_nested => {
                push(Chunk::ToolInputDelta { tool_call_id: id, input_text_delta: text });
            }
            Item::CallReady { id, arguments } => {
                let tool_name = self.tools.get(&id).cloned().unwrap_or_default();
                if is_nested {
                    self.nested.insert(id, (tool_name, arguments));
                } else {
                    push(Chunk::ToolInputAvailable { tool_call_id: id, tool_name, input: arguments, dynamic: true });
                }
            }
            Item::CallEdited { id, arguments } => {
                let tool_name = self.tools.get(&id).cloned().unwrap_or_default();
                push(Chunk::ToolInputAvailable { tool_call_id: id, tool_name, input: arguments, dynamic: true });
            }
            Item::CallEnded { id, result } if self.shown.contains(&id) => push(ended(id, result)),
            Item::ApprovalRequested { question, call, reason } => {
                if let Some((tool_name, input)) = self.nested.remove(&call) {
                    self.shown.insert(call.clone());
                    self.begin_nested_step(out);
                    let tool_call_id = call.clone();
                    out.push(Frame::json(&Chunk::ToolInputAvailable { tool_call_id, tool_name, input, dynamic: true }));
                }
                out.push(Frame::json(&Chunk::ToolApprovalRequest {
                    approval_id: question,
                    tool_call_id: call,
                    reason,
                }));
            }
            Item::ApprovalClosed { question, outcome, reason, .. } => {
                let approved = outcome == ApprovalOutcome::Approved;
                push(Chunk::ToolApprovalResponse { approval_id: question, approved, reason });
            }
            Item::WaitEnded { question, .. } => {
                out.push(Frame::json(&Data::new("wait", question, json!({ "status": "answered" }))));
            }
            Item::Output { id, output, .. } => {
                let id = self.outputs.message(&id, &output);
                out.push(Frame::json(&shown(&id, output)));
            }
            Item::Progress { call, text } => {
                let data = json!({ "toolCallId": call, "text": text });
                out.push(Frame::json(&Data::transient("progress", data)));
            }
            Item::UserMessage { id, text } if !is_nested => {
                self.messages += 1;
                // The client has the message that began the turn.
                if self.in_step {
                    push(Chunk::SteeringMessage { id, parts: vec![TextPart::Text { text }] });
                }
            }
            Item::StateChanged { state } => out.push(Frame::json(&Data::transient("state", state))),
            // Nested brains show their calls that ask; for the rest the protocol has no counterpart.
            Item::StageStarted { .. }
            | Item::StageEnded { .. }
            | Item::IterationStarted
            | Item::TextStarted { .. }
            | Item::Discarded { .. }
            | Item::Sources { .. }
            | Item::CallArguments { .. }
            | Item::CallEnded { .. }
            | Item::WaitStarted { .. }
            | Item::UserMessage { .. }
            | Item::Notice { .. } => {}
        }
    }

    /// Begins a step for the calls of nested brains that ask. A client sends its answers by itself once all calls of the last step have
    /// one, and the call that runs the nested brain cannot have one yet.
    fn begin_nested_step(&mut self, out: &mut Vec<Frame>) {
        if !self.in_nested_step {
            self.end_step(out);
            (self.in_step, self.in_nested_step) = (true, true);
            out.push(Frame::json(&Chunk::StartStep));
        }
    }

    fn end_step(&mut self, out: &mut Vec<Frame>) {
        self.in_nested_step = false;
        for (id, kind) in std::mem::take(&mut self.texts) {
            out.push(Frame::json(&match kind {
                TextKind::Answer => Chunk::TextEnd { id },
                TextKind::Reasoning => Chunk::ReasoningEnd { id },
            }));
        }
        if std::mem::take(&mut self.in_step) {
            out.push(Frame::json(&Chunk::FinishStep));
        }
    }
}

/// Returns the end of a call.
fn ended(tool_call_id: String, result: ToolResult) -> Chunk {
    match result {
        ToolResult::Success { output, .. } => Chunk::ToolOutputAvailable { tool_call_id, output, dynamic: true },
        ToolResult::Denied { .. } => Chunk::ToolOutputDenied { tool_call_id },
        other => {
            let error_text = format!("{} ({})", result_text(&other), status(&other));
            Chunk::ToolOutputError { tool_call_id, error_text, dynamic: true }
        }
    }
}

/// Returns a side output as a part of data.
fn shown(id: &str, output: SideOutput) -> Data {
    match output {
        SideOutput::File(file) => {
            let (file, run) = (file.file, id.split(':').next().unwrap_or_default());
            let data = json!({
                "name": file.name, "mediaType": file.media_type, "size": file.size, "sha256": file.sha256, "run": run,
            });
            Data::new("file", id, data)
        }
        SideOutput::Widget(widget) => {
            Data::new(&widget.kind, id, json!({ "data": widget.data, "fallback": widget.fallback }))
        }
        SideOutput::Custom(custom) => {
            Data::new(&custom.kind, id, json!({ "data": custom.data, "fallback": custom.fallback }))
        }
        _ => Data::new("output", id, json!({})),
    }
}

/// Returns a question that is not an approval as a part of data: a person answers it with `answers` of the next request.
fn asked(question: &OpenQuestion) -> Option<Data> {
    let data = match &question.pending.kind {
        PendingKind::Approval { .. } => return None,
        PendingKind::Budget(request) => json!({ "status": "waiting", "reason": "budget", "request": request }),
        PendingKind::Answer { waits } => match waits.iter().find(|wait| wait.person) {
            Some(wait) => json!({
                "status": "waiting", "reason": "answer", "prompt": wait.prompt, "schema": wait.schema,
                "answerable": question.refused.is_none(),
            }),
            None => json!({ "status": "waiting", "reason": "webhook", "answerable": false }),
        },
    };
    Some(Data::new("wait", &question.id, data))
}

impl Encoder for AiSdk {
    type Sent = Frame;

    fn items(&mut self, items: Vec<Placed>) -> Vec<Frame> {
        let mut frames = Vec::new();
        items.into_iter().for_each(|item| self.item(item, &mut frames));
        if self.has_begun { frames } else { Vec::new() }
    }

    fn begin(&mut self, projection: &Projection, _: bool) -> Vec<Frame> {
        self.has_begun = true;
        // What was sent of the step before belongs to another leg.
        (self.in_step, self.in_nested_step, self.texts) = (false, false, BTreeMap::new());
        let turn = if self.is_new_turn { self.messages } else { self.messages.saturating_sub(1) };
        let message_metadata = json!({ "runId": projection.run().as_str(), "seq": projection.state().next.0 });
        vec![Frame::json(&Chunk::Start { message_id: format!("{}:{turn}", projection.run()), message_metadata })]
    }

    fn end(&mut self, projection: &Projection, end: LegEnd) -> Vec<Frame> {
        let mut out = Vec::new();
        self.end_step(&mut out);
        let usage = projection.state().root.as_ref().map(|root| root.usage).filter(|usage| usage.total() > 0);
        let mut message_metadata = json!({ "seq": projection.next().0 });
        if let (Some(usage), Some(fields)) = (usage, message_metadata.as_object_mut()) {
            let usage =
                json!({ "inputTokens": usage.input, "outputTokens": usage.output, "totalTokens": usage.total() });
            fields.insert("usage".to_owned(), usage);
        }
        out.push(Frame::json(&Chunk::MessageMetadata { message_metadata }));
        let questions = if let LegEnd::Waiting(questions) = &end { questions.as_slice() } else { &[] };
        let refused = self.refused(projection, questions, &mut out);
        let last = match end {
            LegEnd::Completed { result, is_state } => {
                if !is_state && !result.is_null() {
                    out.push(Frame::json(&Data::new("result", "result", result)));
                }
                Chunk::Finish { finish_reason: "stop" }
            }
            LegEnd::Failed(failure) => Chunk::Error { error_text: failure.message },
            LegEnd::Cancelled => Chunk::Abort { reason: "the run was cancelled".to_owned() },
            LegEnd::Waiting(questions) => {
                out.extend(questions.iter().filter_map(asked).map(|data| Frame::json(&data)));
                let is_approval =
                    |question: &OpenQuestion| matches!(question.pending.kind, PendingKind::Approval { .. });
                Chunk::Finish { finish_reason: if questions.iter().any(is_approval) { "tool-calls" } else { "other" } }
            }
            LegEnd::Paused => {
                let data = json!({ "status": "waiting", "reason": "paused", "answerable": false });
                out.push(Frame::json(&Data::new("wait", PAUSED, data)));
                Chunk::Finish { finish_reason: "other" }
            }
            LegEnd::Broken(problem) => Chunk::Error { error_text: problem.message() },
        };
        out.extend([Frame::json(&refused.unwrap_or(last)), Frame::word("[DONE]")]);
        out
    }
}
