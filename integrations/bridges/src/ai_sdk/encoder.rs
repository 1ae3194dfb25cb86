//! Items as chunks of the UI message stream.
//!
//! One message of the assistant is one turn of a run: from the message of the user to the next one. The protocol has no nested
//! agents, so a nested brain is a data part, and of its calls only those are shown that need an approval, unless it took the dialogue over.

use std::collections::{BTreeMap, BTreeSet};

use positronic_core::machine::pending;
use positronic_core::record::{PendingKind, Seq};
use positronic_server::extension::{Frame, OpenQuestion};
use serde_json::{Value, json};

use super::chunk::{Chunk, Data, StreamChunk, TextPart};
use super::parts::{OpenApproval, asked, ended, metadata, request, shown};
use crate::cut_off::CutOff;
use crate::decisions::RefusedAnswer;
use crate::leg::{Encoder, LegEnd, PAUSED};
use crate::outputs::Outputs;
use crate::projection::{ApprovalOutcome, BrainOutcome, Item, Placed, Projection, TextKind};

/// Which message of the assistant a leg sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnKind {
    /// The first one of the run.
    First,
    /// The answer to a message that the run gets, or to a text that answers its question.
    Message,
    /// The rest of the one that the client has.
    Rest,
}

/// Encodes a leg.
pub(super) struct AiSdk {
    turn: TurnKind,
    /// How many messages the run has got since it began, and texts that answer its questions.
    messages: usize,
    in_step: bool,
    in_nested_step: bool,
    texts: BTreeMap<String, TextKind>,
    /// The tools of calls, and the arguments of those that have them.
    calls: BTreeMap<String, (String, Value)>,
    /// The calls that the message has.
    shown: BTreeSet<String>,
    /// The open approvals, by their questions.
    asked: BTreeMap<String, OpenApproval>,
    outputs: Outputs,
    refused: Vec<RefusedAnswer>,
    cut_off: CutOff,
    has_begun: bool,
}

impl AiSdk {
    pub(super) fn new(turn: TurnKind) -> Self {
        Self {
            turn,
            messages: 0,
            in_step: false,
            in_nested_step: false,
            texts: BTreeMap::new(),
            calls: BTreeMap::new(),
            shown: BTreeSet::new(),
            asked: BTreeMap::new(),
            outputs: Outputs::default(),
            refused: Vec::new(),
            cut_off: CutOff::default(),
            has_begun: false,
        }
    }

    /// Ends the leg with an error that says what else of the request was not recorded.
    pub(super) fn with_refused_answers(mut self, refused: Vec<RefusedAnswer>) -> Self {
        self.refused.extend(refused);
        self
    }

    /// Asks again what a refused answer has left open, and returns why it was refused.
    fn refused(&mut self, out: &mut Vec<StreamChunk>) -> Option<Chunk> {
        let refused = std::mem::take(&mut self.refused);
        for answer in &refused {
            if let Some(asked) = self.asked.get(&answer.question) {
                out.push(request(&answer.question, asked, None));
            }
        }
        let texts: Vec<_> = refused.iter().map(|answer| answer.problem.message()).collect();
        (!texts.is_empty()).then(|| Chunk::Error { error_text: texts.join("\n") })
    }

    /// Asks again for the open approvals that the caller may not decide, and says why.
    pub(super) fn ask_refused(&self, projection: &Projection, out: &mut Vec<StreamChunk>) {
        if self.asked.is_empty() {
            return;
        }
        let (viewer, state) = (projection.viewer(), projection.state());
        for item in pending(state) {
            let question = viewer.question(projection.run(), state, &item);
            if let (Some(asked), Some(refused)) = (self.asked.get(&question.id), &question.refused) {
                out.push(request(&question.id, asked, Some(refused)));
            }
        }
    }

    /// Begins a message of the assistant. A new one asks again what is open, since a client sends the answers of its last message.
    pub(super) fn start(&mut self, projection: &Projection) -> Vec<StreamChunk> {
        // What was sent of the step before belongs to another message.
        (self.in_step, self.in_nested_step, self.texts) = (false, false, BTreeMap::new());
        let (run, next) = (projection.run(), projection.state().next);
        let message_id = match self.turn {
            TurnKind::First | TurnKind::Rest => format!("{run}:{}", self.messages),
            TurnKind::Message => format!("{run}:{}", self.messages + 1),
        };
        let message_metadata = json!({ "runId": run.as_str(), "seq": next.0 });
        let mut out = vec![StreamChunk::Plain(Chunk::Start { message_id, message_metadata })];
        if self.turn != TurnKind::Rest {
            self.shown.clear();
            let asked = std::mem::take(&mut self.asked);
            for (question, asked) in asked {
                self.ask(question, asked, &mut out);
            }
        }
        out
    }

    /// Asks for an approval, in a call that the message has.
    fn ask(&mut self, question: String, asked: OpenApproval, out: &mut Vec<StreamChunk>) {
        if self.shown.insert(asked.call.clone()) {
            let (tool_name, input) = self.calls.get(&asked.call).cloned().unwrap_or_default();
            self.begin_nested_step(out);
            let tool_call_id = asked.call.clone();
            out.push(StreamChunk::Plain(Chunk::ToolInputAvailable { tool_call_id, tool_name, input, dynamic: true }));
        }
        out.push(request(&question, &asked, None));
        self.asked.insert(question, asked);
    }

    /// Ends the message where the user sends the next one. `next` is the first event that it does not show.
    pub(super) fn end_turn(&mut self, projection: &Projection, next: Seq, turn: TurnKind) -> Vec<StreamChunk> {
        let mut out = Vec::new();
        self.end_step(&mut out);
        out.push(metadata(projection, next));
        self.turn = turn;
        out
    }

    pub(super) fn item(&mut self, placed: Placed, out: &mut Vec<StreamChunk>) {
        let is_nested = !placed.in_dialogue;
        self.cut_off.item(&placed.item);
        let mut push = |chunk: Chunk| out.push(StreamChunk::Plain(chunk));
        match placed.item {
            Item::BrainStarted { id, title, .. } => {
                out.push(StreamChunk::Data(Data::new("brain", id, json!({ "title": title, "status": "running" }))));
            }
            Item::BrainEnded { id, outcome } => {
                let status = match outcome {
                    BrainOutcome::Completed(_) => "completed",
                    BrainOutcome::Failed(_) => "failed",
                    BrainOutcome::Cancelled => "cancelled",
                };
                out.push(StreamChunk::Data(Data::new("brain", id, json!({ "status": status }))));
            }
            Item::StageStarted { path } if !is_nested => {
                out.push(StreamChunk::Data(Data::new("stage", path.as_str(), json!({ "status": "running" }))));
            }
            Item::StageEnded { path } if !is_nested => {
                self.end_step(out);
                out.push(StreamChunk::Data(Data::new("stage", path.as_str(), json!({ "status": "completed" }))));
            }
            Item::IterationStarted if !is_nested => {
                self.end_step(out);
                self.in_step = true;
                out.push(StreamChunk::Plain(Chunk::StartStep));
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
                self.calls.insert(id.clone(), (tool.clone(), Value::Null));
                if !is_nested {
                    self.shown.insert(id.clone());
                    push(Chunk::ToolInputStart { tool_call_id: id, tool_name: tool, dynamic: true });
                }
            }
            Item::CallArguments { id, text } if !is_nested => {
                push(Chunk::ToolInputDelta { tool_call_id: id, input_text_delta: text });
            }
            Item::CallReady { id, arguments } => {
                let tool_name = self.with_arguments(&id, &arguments);
                if !is_nested {
                    push(Chunk::ToolInputAvailable { tool_call_id: id, tool_name, input: arguments, dynamic: true });
                }
            }
            Item::CallEdited { id, arguments } => {
                let tool_name = self.with_arguments(&id, &arguments);
                if self.shown.contains(&id) {
                    push(Chunk::ToolInputAvailable { tool_call_id: id, tool_name, input: arguments, dynamic: true });
                }
            }
            Item::CallEnded { id, result } if self.shown.contains(&id) => push(ended(id, result)),
            Item::ApprovalRequested { question, call, reason } => {
                self.ask(question, OpenApproval { call, reason }, out);
            }
            Item::ApprovalClosed { question, call, outcome, reason } => {
                self.asked.remove(&question);
                if self.shown.contains(&call) {
                    let approved = outcome == ApprovalOutcome::Approved;
                    push(Chunk::ToolApprovalResponse { approval_id: question, approved, reason });
                }
            }
            Item::WaitEnded { question, text, .. } => {
                self.messages += usize::from(text.is_some());
                out.push(StreamChunk::Data(Data::new("wait", question, json!({ "status": "answered" }))));
            }
            Item::Output { id, output, .. } => {
                let message = self.outputs.message(&id, &output);
                out.push(StreamChunk::Data(shown(&id, &message, output)));
            }
            Item::Progress { call, text } => {
                let data = json!({ "toolCallId": call, "text": text });
                out.push(StreamChunk::Data(Data::transient("progress", data)));
            }
            Item::UserMessage { id, text, is_input } => {
                self.messages += usize::from(!is_input);
                // The client has the message that began the turn.
                if self.in_step && !is_nested {
                    push(Chunk::SteeringMessage { id, parts: vec![TextPart::Text { text }] });
                }
            }
            Item::StateChanged { state } => out.push(StreamChunk::Data(Data::transient("state", state))),
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
            | Item::Notice { .. } => {}
        }
    }

    /// Keeps the arguments of a call, and returns its tool.
    fn with_arguments(&mut self, call: &str, arguments: &Value) -> String {
        let (tool, known) = self.calls.entry(call.to_owned()).or_default();
        known.clone_from(arguments);
        tool.clone()
    }

    /// Begins a step for the calls of nested brains that ask. A client sends its answers by itself once all calls of the last step have
    /// one, and the call that runs the nested brain cannot have one yet.
    fn begin_nested_step(&mut self, out: &mut Vec<StreamChunk>) {
        if !self.in_nested_step {
            self.end_step(out);
            (self.in_step, self.in_nested_step) = (true, true);
            out.push(StreamChunk::Plain(Chunk::StartStep));
        }
    }

    fn end_step(&mut self, out: &mut Vec<StreamChunk>) {
        self.in_nested_step = false;
        for (id, kind) in std::mem::take(&mut self.texts) {
            out.push(StreamChunk::Plain(match kind {
                TextKind::Answer => Chunk::TextEnd { id },
                TextKind::Reasoning => Chunk::ReasoningEnd { id },
            }));
        }
        if std::mem::take(&mut self.in_step) {
            out.push(StreamChunk::Plain(Chunk::FinishStep));
        }
    }
}

impl AiSdk {
    /// Ends the message as its run has settled.
    pub(super) fn finish(&mut self, projection: &Projection, end: LegEnd) -> Vec<StreamChunk> {
        let mut out = self.end_turn(projection, projection.next(), self.turn);
        let refused = self.refused(&mut out);
        self.ask_refused(projection, &mut out);
        let last = match end {
            LegEnd::Completed { result, is_state } => {
                if !is_state && !result.is_null() {
                    out.push(StreamChunk::Data(Data::new("result", "result", result)));
                }
                Chunk::Finish { finish_reason: if self.cut_off.loops().is_empty() { "stop" } else { "length" } }
            }
            LegEnd::Failed(failure) => Chunk::Error { error_text: failure.message },
            LegEnd::Cancelled => Chunk::Abort { reason: "the run was cancelled".to_owned() },
            LegEnd::Waiting(questions) => {
                out.extend(questions.iter().filter_map(asked).map(StreamChunk::Data));
                let is_approval =
                    |question: &OpenQuestion| matches!(question.pending.kind, PendingKind::Approval { .. });
                Chunk::Finish { finish_reason: if questions.iter().any(is_approval) { "tool-calls" } else { "other" } }
            }
            LegEnd::Paused => {
                let data = json!({ "status": "waiting", "reason": "paused", "answerable": false });
                out.push(StreamChunk::Data(Data::new("wait", PAUSED, data)));
                Chunk::Finish { finish_reason: "other" }
            }
            LegEnd::Broken(problem) => Chunk::Error { error_text: problem.message() },
        };
        out.push(StreamChunk::Plain(refused.unwrap_or(last)));
        out
    }
}

impl Encoder for AiSdk {
    type Sent = Frame;

    fn items(&mut self, items: Vec<Placed>) -> Vec<Frame> {
        let mut chunks = Vec::new();
        items.into_iter().for_each(|item| self.item(item, &mut chunks));
        if self.has_begun { frames(&chunks) } else { Vec::new() }
    }

    fn begin(&mut self, projection: &Projection, _: bool) -> Vec<Frame> {
        self.has_begun = true;
        frames(&self.start(projection))
    }

    fn end(&mut self, projection: &Projection, end: LegEnd) -> Vec<Frame> {
        let mut frames = frames(&self.finish(projection, end));
        frames.push(Frame::word("[DONE]"));
        frames
    }
}

fn frames(chunks: &[StreamChunk]) -> Vec<Frame> {
    chunks.iter().map(StreamChunk::frame).collect()
}
