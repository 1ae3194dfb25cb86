//! The statuses of tasks: their states, what the agent says with them, and the questions of a run; and the parts of messages and artifacts.

use positronic_core::record::{FileRef, PendingKind, RunId};
use positronic_server::REDACTED;
use positronic_server::extension::{OpenQuestion, Viewer};
use serde_json::{Value, json};

use crate::answer_form::response_schema;
use crate::caller_result::file_url;
use crate::open_questions::prompt;

/// The states of a task that runs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskState {
    Working,
    InputRequired,
    Completed,
    Failed,
    Canceled,
}

impl TaskState {
    /// Returns the name of the state in the protocol.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "TASK_STATE_WORKING",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Canceled => "TASK_STATE_CANCELED",
        }
    }
}

/// A state with the parts of the agent's message about it.
#[derive(Debug, Clone)]
pub(super) struct TaskStatus {
    pub(super) state: TaskState,
    pub(super) parts: Vec<Value>,
}

impl TaskStatus {
    /// Creates a status without a message.
    pub(super) const fn new(state: TaskState) -> Self {
        Self { state, parts: Vec::new() }
    }

    /// Creates a status whose message is a text.
    pub(super) fn says(state: TaskState, words: impl Into<String>) -> Self {
        Self { state, parts: vec![text(&words.into())] }
    }

    /// Returns the status as a value. `id` is that of its message.
    pub(super) fn value(&self, task: &str, context: &str, id: &str) -> Value {
        let mut status = json!({ "state": self.state.as_str() });
        if let (false, Some(fields)) = (self.parts.is_empty(), status.as_object_mut()) {
            let message = json!({
                "messageId": id,
                "taskId": task,
                "contextId": context,
                "role": "ROLE_AGENT",
                "parts": self.parts,
            });
            fields.insert("message".to_owned(), message);
        }
        status
    }
}

/// Returns a part with a text.
pub(super) fn text(text: &str) -> Value {
    json!({ "text": text, "mediaType": "text/plain" })
}

/// Returns a part with a value.
pub(super) fn data(value: &Value) -> Value {
    json!({ "data": value, "mediaType": "application/json" })
}

/// Returns a part with the address of a file of a run.
pub(super) fn file(address: &str, run: &RunId, file: &FileRef) -> Value {
    let url = match file.sha256.as_str() {
        "" => file.uri.clone(),
        _ => file_url(address, run, file),
    };
    json!({ "url": url, "filename": file.name, "mediaType": file.media_type })
}

/// Returns what a run asks: a text and a value for each question.
pub(super) fn questions(viewer: &Viewer, questions: &[OpenQuestion]) -> Vec<Value> {
    let asked = questions.iter().filter(|question| question.pending.kind.is_for_person());
    asked.flat_map(|question| [text(&prompt(viewer, question)), data(&described(viewer, question))]).collect()
}

fn described(viewer: &Viewer, question: &OpenQuestion) -> Value {
    let pending = &question.pending;
    let (kind, arguments) = match &pending.kind {
        PendingKind::Approval { .. } => {
            let arguments = viewer.redacted(&*pending.arguments).unwrap_or_else(|| REDACTED.into());
            ("approval", Some(arguments))
        }
        PendingKind::Budget(_) => ("limit", None),
        PendingKind::Answer { .. } => ("answer", None),
    };
    let mut described = json!({
        "question": question.id,
        "kind": kind,
        "path": pending.call.as_str(),
        "responseSchema": response_schema(question),
        "answerable": question.refused.is_none(),
    });
    if let Some(fields) = described.as_object_mut() {
        let tool = (!pending.tool.is_empty()).then(|| pending.tool.as_str().into());
        let expires = question.expires.map(|at| at.to_string().into());
        let refused = question.refused.as_deref().map(Value::from);
        let optional = [("tool", tool), ("arguments", arguments), ("expiresAt", expires), ("refused", refused)];
        fields.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    }
    described
}
