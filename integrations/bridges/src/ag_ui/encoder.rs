//! Items as events of AG-UI.

use std::collections::HashMap;

use positronic_core::projection::result_text;
use positronic_core::record::SideOutput;
use positronic_server::extension::Frame;
use serde_json::{Map, Value, json};

use super::event::{Event, Message, SubagentOutcome};
use super::messages::Messages;
use crate::decisions::RefusedAnswer;
use crate::history::History;
use crate::leg::{Encoder, LegEnd};
use crate::outputs::{Outputs, content, status};
use crate::projection::{BrainOutcome, Item, Open, Placed, Projection, TextKind};

/// The version of the protocol.
const VERSION: &str = "1.0";

/// Encodes a leg.
pub(super) struct AgUi {
    pub(super) thread: String,
    pub(super) leg: String,
    pub(super) messages: Messages,
    /// The text that an answer's calls belong to, by answer.
    parents: HashMap<String, String>,
    /// The texts that are open, with their answers.
    open_texts: Vec<OpenText>,
    /// The calls whose arguments stream, with their answers.
    pub(super) open_calls: Vec<(String, String)>,
    /// The message that the client has sent with this leg: its id and its text.
    own: Option<(String, String)>,
    refused: Vec<RefusedAnswer>,
    /// How many earlier runs of the thread the messages do not have.
    left_out: usize,
    outputs: Outputs,
    state: Option<Value>,
    has_begun: bool,
}

pub(super) struct OpenText {
    id: String,
    answer: String,
    kind: TextKind,
    brain: Option<String>,
}

impl AgUi {
    pub(super) fn new(thread: String, leg: String) -> Self {
        Self {
            thread,
            leg,
            messages: Messages::default(),
            parents: HashMap::new(),
            open_texts: Vec::new(),
            open_calls: Vec::new(),
            own: None,
            refused: Vec::new(),
            left_out: 0,
            outputs: Outputs::default(),
            state: None,
            has_begun: false,
        }
    }

    /// Leaves out the user's message that this leg answers: the client has it under an id of its own. A snapshot at the beginning has it,
    /// since it replaces all messages of the client.
    pub(super) fn own_message(self, id: &str, text: Option<String>) -> Self {
        Self { own: text.map(|text| (id.to_owned(), text)), ..self }
    }

    /// Says at the beginning of the leg which of its answers were not recorded.
    pub(super) fn with_refused_answers(self, refused: Vec<RefusedAnswer>) -> Self {
        Self { refused, ..self }
    }

    /// Begins the messages with those of the runs before.
    pub(super) fn with_history(mut self, History { messages, left_out }: History<Message>) -> Self {
        self.messages.prepend(messages);
        Self { left_out, ..self }
    }

    fn item(&mut self, placed: Placed, out: &mut Vec<Event>) {
        let Placed { brain: subagent_run_id, item, .. } = placed;
        let first = out.len();
        match item {
            Item::BrainStarted { id, title, call } => {
                let parent_message_id = call.as_ref().and_then(|call| self.parents.get(call)).cloned();
                out.push(Event::SubagentStarted {
                    subagent_run_id: id,
                    name: title,
                    parent_subagent_run_id: subagent_run_id,
                    parent_tool_call_id: call,
                    parent_message_id,
                });
            }
            Item::BrainEnded { id: subagent_run_id, outcome } => out.push(match outcome {
                BrainOutcome::Completed(result) => Event::SubagentFinished {
                    subagent_run_id,
                    result: Some(result).filter(|result| !result.is_null()),
                    outcome: SubagentOutcome::Success,
                },
                BrainOutcome::Failed(failure) => Event::SubagentError { subagent_run_id, message: failure.message },
                BrainOutcome::Cancelled => {
                    Event::SubagentError { subagent_run_id, message: "it was cancelled".to_owned() }
                }
            }),
            Item::StageStarted { path } => {
                out.push(Event::StepStarted { step_name: path.to_string(), subagent_run_id });
            }
            Item::StageEnded { path } => out.push(Event::StepFinished { step_name: path.to_string(), subagent_run_id }),
            Item::IterationStarted => {}
            Item::TextStarted { id, answer, kind } => {
                let message_id = id.clone();
                match kind {
                    TextKind::Answer => {
                        self.parents.insert(answer.clone(), id.clone());
                        let subagent_run_id = subagent_run_id.clone();
                        out.push(Event::TextMessageStart { message_id, role: "assistant", subagent_run_id });
                    }
                    TextKind::Reasoning => out.extend([
                        Event::ReasoningStart { message_id: id.clone(), subagent_run_id: subagent_run_id.clone() },
                        Event::ReasoningMessageStart {
                            message_id,
                            role: "reasoning",
                            subagent_run_id: subagent_run_id.clone(),
                        },
                    ]),
                }
                self.open_texts.push(OpenText { id, answer, kind, brain: subagent_run_id });
            }
            Item::TextDelta { id: message_id, text: delta } => {
                let kind = self.open_texts.iter().find(|open| open.id == message_id).map(|open| open.kind);
                out.push(match kind {
                    Some(TextKind::Reasoning) => Event::ReasoningMessageContent { message_id, delta, subagent_run_id },
                    Some(TextKind::Answer) | None => Event::TextMessageContent { message_id, delta, subagent_run_id },
                });
            }
            Item::TextEnded { id } => self.end_texts(|open| open.id == id, out),
            Item::Discarded { answer } => return self.discard(&answer, out),
            Item::Sources { id, sources } => {
                let value = json!({ "messageId": id, "sources": sources });
                out.push(Event::Custom { name: "positronic.sources".to_owned(), value, subagent_run_id });
            }
            Item::CallStarted { id, answer, tool } => {
                let parent_message_id = self.parents.get(&answer).unwrap_or(&answer).clone();
                self.parents.insert(id.clone(), parent_message_id.clone());
                self.open_calls.push((id.clone(), answer));
                let (tool_call_id, tool_call_name) = (id, tool);
                out.push(Event::ToolCallStart { tool_call_id, tool_call_name, parent_message_id, subagent_run_id });
            }
            Item::CallArguments { id: tool_call_id, text: delta } => {
                out.push(Event::ToolCallArgs { tool_call_id, delta, subagent_run_id });
            }
            Item::CallReady { id, arguments } => {
                self.open_calls.retain(|(open, _)| *open != id);
                out.push(Event::ToolCallEnd { tool_call_id: id.clone(), subagent_run_id });
                // The arguments were repaired after they had streamed, or are redacted.
                if self.messages.set_arguments(&id, &arguments) {
                    out.push(self.snapshot());
                }
            }
            Item::CallEdited { id, arguments } => {
                if self.messages.set_arguments(&id, &arguments) {
                    out.push(self.snapshot());
                }
            }
            Item::CallEnded { id, result } => out.push(Event::ToolCallResult {
                message_id: format!("{id}:result"),
                tool_call_id: id,
                content: result_text(&result),
                role: "tool",
                metadata: json!({ "positronic": { "status": status(&result) } }),
                subagent_run_id,
            }),
            Item::ApprovalRequested { .. } | Item::WaitStarted { .. } | Item::WaitEnded { .. } => {}
            Item::ApprovalClosed { question, call, outcome, reason } => {
                let value = json!({ "interruptId": question, "toolCallId": call, "outcome": outcome.as_str(), "reason": reason });
                out.push(Event::Custom { name: "positronic.approval".to_owned(), value, subagent_run_id });
            }
            Item::Output { id, call, output } => {
                let message = self.outputs.message(&id, &output);
                out.push(activity(message, &id, &call, output, subagent_run_id));
            }
            Item::Progress { call, text } => {
                let value = json!({ "toolCallId": call, "text": text });
                out.push(Event::Custom { name: "positronic.progress".to_owned(), value, subagent_run_id });
            }
            Item::UserMessage { id: message_id, text: delta, .. } => {
                let is_own = self.has_begun && self.own.as_ref().is_some_and(|(_, text)| *text == delta);
                if is_own {
                    self.own = None;
                    self.messages.add_user(&message_id, &delta);
                    return;
                }
                let start = Event::TextMessageStart {
                    message_id: message_id.clone(),
                    role: "user",
                    subagent_run_id: subagent_run_id.clone(),
                };
                let content = Event::TextMessageContent {
                    message_id: message_id.clone(),
                    delta,
                    subagent_run_id: subagent_run_id.clone(),
                };
                let end = Event::TextMessageEnd { message_id, subagent_run_id };
                out.extend([start, content, end]);
            }
            Item::StateChanged { state } => out.extend(self.state_event(state)),
            Item::Notice { name, value } => {
                out.push(Event::Custom { name: format!("positronic.{name}"), value, subagent_run_id });
            }
        }
        out.iter().skip(first).for_each(|event| self.messages.apply(event));
    }

    fn state_event(&mut self, state: Value) -> Option<Event> {
        let event = match &self.state {
            None => Some(Event::StateSnapshot { snapshot: state.clone() }),
            Some(known) => {
                let delta = json_patch::diff(known, &state);
                (!delta.0.is_empty()).then(|| Event::StateDelta { delta: json!(delta) })
            }
        };
        self.state = Some(state);
        event
    }

    pub(super) fn end_texts(&mut self, is_meant: impl Fn(&OpenText) -> bool, out: &mut Vec<Event>) {
        let (ended, open) = std::mem::take(&mut self.open_texts).into_iter().partition(is_meant);
        self.open_texts = open;
        let ended: Vec<OpenText> = ended;
        for OpenText { id: message_id, kind, brain, .. } in ended {
            let subagent_run_id = brain.clone();
            match kind {
                TextKind::Answer => out.push(Event::TextMessageEnd { message_id, subagent_run_id }),
                TextKind::Reasoning => out.extend([
                    Event::ReasoningMessageEnd { message_id: message_id.clone(), subagent_run_id },
                    Event::ReasoningEnd { message_id, subagent_run_id: brain },
                ]),
            }
        }
    }

    /// Ends what streams of an answer, and sends the messages without it.
    fn discard(&mut self, answer: &str, out: &mut Vec<Event>) {
        let texts = self.open_texts.iter().filter(|open| open.answer == answer).map(|open| open.id.clone());
        let texts: Vec<_> = texts.collect();
        self.end_texts(|open| open.answer == answer, out);
        let (void, open) = std::mem::take(&mut self.open_calls).into_iter().partition(|(_, of)| of == answer);
        self.open_calls = open;
        let void: Vec<(String, String)> = void;
        let calls: Vec<_> = void.into_iter().map(|(id, _)| id).collect();
        out.extend(calls.iter().map(|id| Event::ToolCallEnd { tool_call_id: id.clone(), subagent_run_id: None }));
        self.parents.remove(answer);
        self.messages.remove(&texts, &calls);
        out.push(self.snapshot());
    }

    fn snapshot(&self) -> Event {
        Event::MessagesSnapshot { messages: self.messages.list() }
    }

    fn started(&self) -> Event {
        Event::RunStarted { thread_id: self.thread.clone(), run_id: self.leg.clone(), protocol_version: VERSION }
    }
}

fn frames(events: &[Event]) -> Vec<Frame> {
    events.iter().map(Frame::json).collect()
}

impl Encoder for AgUi {
    type Sent = Frame;

    fn items(&mut self, items: Vec<Placed>) -> Vec<Frame> {
        let mut events = Vec::new();
        items.into_iter().for_each(|item| self.item(item, &mut events));
        if self.has_begun { frames(&events) } else { Vec::new() }
    }

    fn begin(&mut self, projection: &Projection, is_late: bool) -> Vec<Frame> {
        self.has_begun = true;
        let mut events = vec![self.started()];
        if is_late {
            if let Some((id, text)) = &self.own {
                self.messages.add_user(id, text);
            }
            events.push(self.snapshot());
            if self.left_out > 0 {
                let (name, value) = ("positronic.left_out".to_owned(), json!({ "runs": self.left_out }));
                events.push(Event::Custom { name, value, subagent_run_id: None });
            }
            events.extend(projection.public().map(|state| Event::StateSnapshot { snapshot: state.clone() }));
        }
        for (index, answer) in self.refused.drain(..).enumerate() {
            events.extend(not_recorded(format!("{}:refused:{index}", self.leg), &answer));
        }
        for open in projection.open() {
            let parent = projection.brain_of(open.path());
            events.push(match open {
                Open::Stage { path } => Event::StepStarted { step_name: path.to_string(), subagent_run_id: parent },
                Open::Brain { path, id, title } => {
                    let call = Some(projection.call_id(path)).filter(|call| self.parents.contains_key(call));
                    Event::SubagentStarted {
                        subagent_run_id: id.clone(),
                        name: title.clone(),
                        parent_subagent_run_id: parent,
                        parent_message_id: call.as_ref().and_then(|call| self.parents.get(call)).cloned(),
                        parent_tool_call_id: call,
                    }
                }
            });
        }
        frames(&events)
    }

    fn end(&mut self, projection: &Projection, end: LegEnd) -> Vec<Frame> {
        frames(&self.finish(projection, end))
    }
}

/// Says why an answer was not recorded, to people and to a program. The log has no such message, so the next snapshot has none.
fn not_recorded(message_id: String, RefusedAnswer { question: interrupt, problem }: &RefusedAnswer) -> [Event; 4] {
    let (message, code) = (problem.message(), problem.kind().slug());
    let value = json!({ "interruptId": interrupt, "code": code, "message": message });
    let (id, subagent_run_id) = (message_id.clone(), None);
    [
        Event::TextMessageStart { message_id: message_id.clone(), role: "assistant", subagent_run_id: None },
        Event::TextMessageContent { message_id: id, delta: message, subagent_run_id: None },
        Event::TextMessageEnd { message_id, subagent_run_id: None },
        Event::Custom { name: "positronic.refused".to_owned(), value, subagent_run_id },
    ]
}

/// Returns a side output as an activity.
fn activity(message_id: String, id: &str, call: &str, output: SideOutput, subagent_run_id: Option<String>) -> Event {
    let (kind, content) = content(id, output);
    let mut fields = Map::new();
    fields.insert("toolCallId".to_owned(), call.into());
    if let Value::Object(content) = content {
        fields.extend(content);
    }
    let activity_type = format!("positronic.{kind}");
    Event::ActivitySnapshot { message_id, activity_type, content: fields, replace: true, subagent_run_id }
}
