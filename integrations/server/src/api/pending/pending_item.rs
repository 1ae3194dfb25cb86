//! What waits for a person or a program, as JSON.

use std::sync::Arc;

use positronic_core::machine::RunState;
use positronic_core::record::{OlderAnswer, Path, PendingKind, RunId, Seq, WaitSpec, sha256};
use positronic_core::store::PendingItem as StoredItem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::run_item::value;
use crate::app::App;
use crate::auth::{Caller, Question, Scope};
use crate::time::Time;

/// The length of an id, in hexadecimal digits.
const ID: usize = 20;

/// What kind of item waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PendingItemKind {
    /// A person's approval of a call.
    Approval,
    /// A person's decision about more of a limit.
    Budget,
    /// A person's reply, or a webhook.
    Answer,
}

impl PendingItemKind {
    pub(crate) const fn of(kind: &PendingKind) -> Self {
        match kind {
            PendingKind::Approval { .. } => Self::Approval,
            PendingKind::Budget(_) => Self::Budget,
            PendingKind::Answer { .. } => Self::Answer,
        }
    }
}

/// A pending item.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PendingItem {
    /// The id of this question: safe in a URL, and another one if the same call asks again.
    pub(crate) id: String,
    pub(crate) run: String,
    /// The title of the run's brain.
    pub(crate) brain: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// The path of the call, or of the loop or brain that asks for more; empty for the run's own brain.
    pub(crate) call: String,
    /// The tool; empty if there is none.
    pub(crate) tool: String,
    #[schemars(with = "Value")]
    pub(crate) arguments: Arc<Value>,
    pub(crate) since: Time,
    /// The event that began the wait.
    pub(crate) seq: u64,
    pub(crate) kind: PendingItemKind,
    /// The reason of an approval, or the question to the person who replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expires: Option<Time>,
    /// Whether a person may edit the arguments.
    pub(crate) editable: bool,
    /// The JSON schema of the arguments of an approval; a list of the items of all runs has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) arguments_schema: Option<Value>,
    /// The request for more of a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<Value>,
    /// The possible answers; the first one counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits: Option<Vec<WaitItem>>,
    /// The latest answers in the run that are older than their questions: what is asked now may follow from the answer to another
    /// question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) older_answers: Vec<OlderAnswerItem>,
    /// What the run is about, in one line: the message that began it, or its options. Only if one item is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<String>,
    /// The last entries of the transcript before it, if one item is read and the query asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<Vec<ContextEntry>>,
    /// Whether the caller may decide or answer it. A list of the items of all runs does not look at the code: a decision may still
    /// get `code-differs`.
    pub(crate) allowed: Allowed,
}

/// An answer that is older than its question.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct OlderAnswerItem {
    /// The path of the call that it answered.
    call: String,
    tool: String,
    received: Time,
    /// The event that gave it to the call.
    seq: u64,
}

impl OlderAnswerItem {
    fn of(answer: &OlderAnswer) -> Self {
        let (call, tool) = (answer.call.to_string(), answer.tool.clone());
        Self { call, tool, received: answer.received.into(), seq: answer.seq.0 }
    }
}

/// A possible answer to a call that waits.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct WaitItem {
    /// The webhook's name; `reply` for a reply to the call itself.
    webhook: String,
    identifier: String,
    /// Whether a person answers, and not a program.
    person: bool,
    /// The question to the person who answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    /// The JSON schema of the answer.
    schema: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<Time>,
}

impl WaitItem {
    fn of(wait: &WaitSpec) -> Self {
        Self {
            webhook: wait.webhook.clone(),
            identifier: wait.identifier.clone(),
            person: wait.person,
            prompt: wait.prompt.clone(),
            schema: Value::clone(&wait.schema),
            expires: wait.expires.map(Time),
        }
    }
}

/// An entry of a transcript.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ContextEntry {
    /// `user`, `assistant`, `call` or `result`.
    pub(crate) kind: String,
    pub(crate) text: String,
}

/// Whether the caller may do something now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Allowed {
    pub(crate) allowed: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl Allowed {
    pub(crate) const fn yes() -> Self {
        Self { allowed: true, reason: None }
    }

    pub(crate) fn no(reason: &impl std::fmt::Display) -> Self {
        Self { allowed: false, reason: Some(reason.to_string()) }
    }

    /// Says whether a caller has the scope for something on this server.
    pub(crate) fn to(app: &App, caller: &Caller, scope: Scope) -> Self {
        if app.settings.read_only {
            Self::no(&"the server is read-only")
        } else if caller.may(scope) {
            Self::yes()
        } else {
            Self::no(&format!("the caller lacks the scope `{scope}`"))
        }
    }
}

/// Returns the id of a question: of its run, its path and the event that began the wait.
pub(crate) fn question_id(run: &RunId, call: &Path, since: Seq) -> String {
    let mut id = sha256(format!("{run}\n{call}\n{since}").as_bytes());
    id.truncate(ID);
    id
}

impl App {
    /// Returns a pending item as lists show it: with what the store keeps.
    pub(crate) fn listed_item(&self, caller: &Caller, item: &StoredItem) -> PendingItem {
        let (run, pending, about) = (&item.run, &item.pending, &item.about);
        let (message, expires, editable) = match &pending.kind {
            PendingKind::Approval { gate, expires } => (Some(gate.reason.clone()), *expires, gate.editable),
            PendingKind::Budget(request) => (None, request.expires, false),
            PendingKind::Answer { waits } => {
                let prompt = waits.iter().find_map(|wait| wait.prompt.clone());
                (prompt, waits.iter().filter_map(|wait| wait.expires).min(), false)
            }
        };
        let scope = if pending.kind.is_for_person() { Scope::Decide } else { Scope::Operate };
        PendingItem {
            id: question_id(run, &pending.call, pending.since),
            run: run.to_string(),
            brain: item.brain.to_string(),
            user: about.user.clone(),
            call: pending.call.to_string(),
            tool: pending.tool.clone(),
            arguments: Arc::clone(&pending.arguments),
            since: item.at.into(),
            seq: pending.since.0,
            kind: PendingItemKind::of(&pending.kind),
            message,
            expires: expires.map(Time),
            editable,
            arguments_schema: None,
            request: match &pending.kind {
                PendingKind::Budget(request) => Some(value(request)),
                PendingKind::Approval { .. } | PendingKind::Answer { .. } => None,
            },
            waits: match &pending.kind {
                PendingKind::Answer { waits } => Some(waits.iter().map(WaitItem::of).collect()),
                PendingKind::Approval { .. } | PendingKind::Budget(_) => None,
            },
            older_answers: about.older_answers.iter().map(OlderAnswerItem::of).collect(),
            input: None,
            context: None,
            allowed: match Allowed::to(self, caller, scope) {
                allowed if !allowed.allowed => allowed,
                allowed => match self.settings.deciders.may_decide(caller, &Question::listed(item)) {
                    Ok(()) => allowed,
                    Err(reason) => Allowed::no(&reason),
                },
            },
        }
    }

    /// Returns a pending item with the schema of its arguments, and whether the code still has what the run's open calls need;
    /// `lacks` says what it does not have.
    pub(crate) fn pending_item(
        &self,
        caller: &Caller,
        item: &StoredItem,
        (state, lacks): (&RunState, Option<&str>),
    ) -> PendingItem {
        let mut shown = self.listed_item(caller, item);
        if shown.kind == PendingItemKind::Approval {
            shown.arguments_schema = arguments_schema(state, &item.pending.call, &item.pending.tool);
        }
        if let Some(difference) = lacks.filter(|_| shown.allowed.allowed) {
            shown.allowed = Allowed::no(&difference);
        }
        shown
    }
}

/// Returns the schema of the arguments of an open call, as its loop has declared it.
pub(crate) fn arguments_schema(state: &RunState, call: &Path, tool: &str) -> Option<Value> {
    let tools = &state.loop_at(call)?.prepared.tools;
    let declared = tools.tools().iter().find(|declared| declared.id.as_str() == tool)?;
    Some(Value::clone(&declared.parameters))
}
