//! A run as a task: its artifacts as far as they have come, its messages, and the events that change them.

use positronic_core::record::{Failure, RunSummary, SideOutput};
use positronic_server::{Problem, REDACTED};
use serde_json::{Value, json};

use super::task_status::{TaskState, TaskStatus, data, file, questions, text};
use crate::caller_result::{CallerResult, as_text};
use crate::cut_off::CutOff;
use crate::leg::{Encoder, LegEnd, settled};
use crate::outputs::Outputs;
use crate::projection::{Item, Placed, Projection, TextKind};

/// Encodes a leg.
#[derive(Debug)]
pub(super) struct TaskEncoder {
    row: RunSummary,
    context: String,
    rule: CallerResult,
    /// The address of the server, for the links of files.
    address: String,
    artifacts: Vec<Artifact>,
    history: Vec<Value>,
    outputs: Outputs,
    cut_off: CutOff,
    /// Whether the client was told that the run waits for a person.
    asks: bool,
    /// Whether the client has just answered, so that the leg does not begin with the question.
    has_answered: bool,
    history_length: Option<usize>,
}

#[derive(Debug)]
struct Artifact {
    id: String,
    name: String,
    parts: Vec<Value>,
    /// The answer that the text belongs to, while it streams.
    answer: Option<String>,
    text: String,
}

impl Artifact {
    fn value(&self) -> Value {
        let parts = if self.parts.is_empty() { vec![text(&self.text)] } else { self.parts.clone() };
        json!({ "artifactId": self.id, "name": self.name, "parts": parts })
    }

    fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.text.is_empty()
    }
}

impl TaskEncoder {
    pub(super) fn new(row: RunSummary, rule: CallerResult, address: String) -> Self {
        let context = context_of(&row);
        Self {
            row,
            context,
            rule,
            address,
            artifacts: Vec::new(),
            history: Vec::new(),
            outputs: Outputs::default(),
            cut_off: CutOff::default(),
            asks: false,
            has_answered: false,
            history_length: None,
        }
    }

    /// Says that the client has just answered what the run asked.
    pub(super) fn answered(self, has_answered: bool) -> Self {
        Self { has_answered, ..self }
    }

    /// Limits the messages of the task to the last ones.
    pub(super) fn history_length(self, history_length: Option<usize>) -> Self {
        Self { history_length, ..self }
    }

    /// Returns the task as it is now.
    pub(super) fn task(&mut self, projection: &Projection) -> Value {
        let end = settled(projection.viewer(), projection.run(), projection.state(), false);
        let has_answered = std::mem::take(&mut self.has_answered);
        let status = match end {
            Some(end) if !(has_answered && matches!(end, LegEnd::Waiting(_))) => {
                self.status(projection, end).unwrap_or(TaskStatus::new(TaskState::Working))
            }
            _ => TaskStatus::new(TaskState::Working),
        };
        self.asks = status.state == TaskState::InputRequired;
        let skipped = self.history_length.map_or(0, |length| self.history.len().saturating_sub(length));
        let history: Vec<_> = self.history.iter().skip(skipped).collect();
        let artifacts: Vec<_> =
            self.artifacts.iter().filter(|artifact| !artifact.is_empty()).map(Artifact::value).collect();
        json!({
            "id": self.row.run.as_str(),
            "contextId": self.context,
            "status": self.status_value(projection, &status),
            "artifacts": artifacts,
            "history": history,
            "metadata": { "skill": &*self.row.brain },
        })
    }

    fn status_value(&self, projection: &Projection, status: &TaskStatus) -> Value {
        let id = format!("{}:status:{}", self.row.run, projection.state().next);
        status.value(self.row.run.as_str(), &self.context, &id)
    }

    fn status_event(&self, projection: &Projection, status: &TaskStatus) -> Value {
        self.event("statusUpdate", json!({ "status": self.status_value(projection, status) }))
    }

    fn event(&self, kind: &str, mut event: Value) -> Value {
        if let Some(fields) = event.as_object_mut() {
            fields.insert("taskId".to_owned(), self.row.run.as_str().into());
            fields.insert("contextId".to_owned(), self.context.as_str().into());
        }
        json!({ kind: event })
    }

    /// Returns the event that changes an artifact.
    fn artifact_event(&self, id: &str, name: &str, parts: &[Value], (append, last): (bool, bool)) -> Value {
        let artifact = json!({ "artifactId": id, "name": name, "parts": parts });
        self.event("artifactUpdate", json!({ "artifact": artifact, "append": append, "lastChunk": last }))
    }

    /// Adds an artifact, or replaces the one with the same id.
    fn put(&mut self, id: String, name: String, parts: Vec<Value>) -> Value {
        let event = self.artifact_event(&id, &name, &parts, (false, true));
        self.artifacts.retain(|known| known.id != id);
        self.artifacts.push(Artifact { id, name, parts, answer: None, text: String::new() });
        event
    }

    /// Returns how a run stands that has settled, and adds its result to the artifacts.
    ///
    /// # Errors
    ///
    /// The problem that ends the leg.
    fn status(&mut self, projection: &Projection, end: LegEnd) -> Result<TaskStatus, Problem> {
        let viewer = projection.viewer();
        Ok(match end {
            LegEnd::Completed { result, is_state } => {
                let shown = self.rule.shown(viewer, &result, is_state);
                let said = self.artifacts.iter().rev().find(|artifact| artifact.parts.is_empty());
                let is_said = |shown: &Value| said.is_some_and(|said| said.text.trim() == as_text(shown).trim());
                if let Some(result) = shown.filter(|shown| !is_said(shown)) {
                    let part = result.as_str().map_or_else(|| data(&result), text);
                    self.put(format!("{}:result", self.row.run), "result".to_owned(), vec![part]);
                }
                self.completed()
            }
            LegEnd::Failed(Failure { message, .. }) => {
                let message = viewer.redacted(&message).unwrap_or_else(|| REDACTED.to_owned());
                TaskStatus::says(TaskState::Failed, message)
            }
            LegEnd::Cancelled => TaskStatus::new(TaskState::Canceled),
            LegEnd::Waiting(open) => match questions(viewer, &open) {
                parts if parts.is_empty() => {
                    TaskStatus::says(TaskState::Working, "The run waits for another program or a time.")
                }
                parts => TaskStatus { state: TaskState::InputRequired, parts },
            },
            LegEnd::Paused => TaskStatus::says(TaskState::Working, "A person has paused the run."),
            LegEnd::Broken(problem) => return Err(problem),
        })
    }

    /// Returns the status of a run with a result, which says whether a loop did not come to its end.
    fn completed(&self) -> TaskStatus {
        let Some(words) = self.cut_off.text() else { return TaskStatus::new(TaskState::Completed) };
        let loops = self.cut_off.loops().iter();
        let loops: Vec<_> = loops.map(|(path, why)| json!({ "loop": path, "reached": why })).collect();
        TaskStatus { state: TaskState::Completed, parts: vec![text(&words), data(&json!({ "cutOff": loops }))] }
    }

    fn item(&mut self, placed: Placed) -> Vec<Value> {
        let is_own = placed.in_dialogue;
        self.cut_off.item(&placed.item);
        match placed.item {
            Item::UserMessage { id, text: said, .. } if is_own => {
                self.history.push(json!({
                    "messageId": id,
                    "taskId": self.row.run.as_str(),
                    "contextId": self.context,
                    "role": "ROLE_USER",
                    "parts": [text(&said)],
                }));
                Vec::new()
            }
            Item::TextStarted { id, answer, kind: TextKind::Answer } if is_own => {
                let name = "answer".to_owned();
                self.artifacts.push(Artifact {
                    id,
                    name,
                    parts: Vec::new(),
                    answer: Some(answer),
                    text: String::new(),
                });
                Vec::new()
            }
            Item::TextDelta { id, text: piece } => {
                let Some(known) = self.artifacts.iter_mut().find(|known| known.id == id) else { return Vec::new() };
                let append = !known.text.is_empty();
                known.text.push_str(&piece);
                vec![self.artifact_event(&id, "answer", &[text(&piece)], (append, false))]
            }
            Item::TextEnded { id } if self.artifacts.iter().any(|known| known.id == id && !known.is_empty()) => {
                vec![self.artifact_event(&id, "answer", &[text("")], (true, true))]
            }
            Item::Discarded { answer } => {
                let is_void = |known: &Artifact| known.answer.as_ref() == Some(&answer);
                let void: Vec<_> = self.artifacts.extract_if(.., |known| is_void(known)).collect();
                void.iter()
                    .filter(|known| !known.is_empty())
                    .map(|known| {
                        let mut event = self.artifact_event(&known.id, &known.name, &[text("")], (false, true));
                        if let Some(fields) = event.pointer_mut("/artifactUpdate").and_then(Value::as_object_mut) {
                            fields.insert("metadata".to_owned(), json!({ "discarded": true }));
                        }
                        event
                    })
                    .collect()
            }
            Item::Output { id, output, .. } => {
                let known = self.outputs.message(&id, &output);
                let (name, parts) = match output {
                    SideOutput::File(output) => {
                        let part = file(&self.address, &self.row.run, &output.file);
                        (output.file.name, vec![part])
                    }
                    SideOutput::Widget(widget) => (widget.kind, vec![data(&widget.data), text(&widget.fallback)]),
                    SideOutput::Custom(custom) => (custom.kind, vec![data(&custom.data), text(&custom.fallback)]),
                    _ => return Vec::new(),
                };
                vec![self.put(known, name, parts)]
            }
            Item::ApprovalClosed { .. } | Item::WaitEnded { .. } if self.asks => {
                self.asks = false;
                vec![self.working(Vec::new())]
            }
            Item::Progress { text: words, .. } if !self.asks => vec![self.working(vec![text(&words)])],
            // A task has no counterpart of the rest, and shows what nested brains do by their results alone.
            Item::BrainStarted { .. }
            | Item::BrainEnded { .. }
            | Item::StageStarted { .. }
            | Item::StageEnded { .. }
            | Item::IterationStarted
            | Item::TextStarted { .. }
            | Item::TextEnded { .. }
            | Item::Sources { .. }
            | Item::CallStarted { .. }
            | Item::CallArguments { .. }
            | Item::CallReady { .. }
            | Item::CallEdited { .. }
            | Item::CallEnded { .. }
            | Item::ApprovalRequested { .. }
            | Item::ApprovalClosed { .. }
            | Item::WaitStarted { .. }
            | Item::WaitEnded { .. }
            | Item::Progress { .. }
            | Item::UserMessage { .. }
            | Item::StateChanged { .. }
            | Item::Notice { .. } => Vec::new(),
        }
    }

    fn working(&self, parts: Vec<Value>) -> Value {
        let status = TaskStatus { state: TaskState::Working, parts };
        let id = format!("{}:status:working", self.row.run);
        self.event("statusUpdate", json!({ "status": status.value(self.row.run.as_str(), &self.context, &id) }))
    }
}

/// Returns the context of a run: its conversation, or itself.
pub(super) fn context_of(row: &RunSummary) -> String {
    row.conversation.clone().unwrap_or_else(|| row.run.to_string())
}

impl Encoder for TaskEncoder {
    type Sent = Result<Value, Problem>;

    fn items(&mut self, items: Vec<Placed>) -> Vec<Self::Sent> {
        items.into_iter().flat_map(|placed| self.item(placed)).map(Ok).collect()
    }

    fn begin(&mut self, projection: &Projection, _: bool) -> Vec<Self::Sent> {
        vec![Ok(json!({ "task": self.task(projection) }))]
    }

    fn end(&mut self, projection: &Projection, end: LegEnd) -> Vec<Self::Sent> {
        let before = self.artifacts.len();
        let status = match self.status(projection, end) {
            Ok(status) => status,
            Err(problem) => return vec![Err(problem)],
        };
        let result = self.artifacts.get(before..).unwrap_or_default().iter();
        let mut events: Vec<_> =
            result.map(|known| self.artifact_event(&known.id, &known.name, &known.parts, (false, true))).collect();
        events.push(self.status_event(projection, &status));
        events.into_iter().map(Ok).collect()
    }
}
