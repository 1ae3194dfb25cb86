//! The structured fields of events.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::repair::Repair;
use crate::record::encoding::content_hash::ContentHash;
use crate::record::encoding::document;
use crate::record::encoding::skip::is_default;
use crate::record::plugin::{PluginChange, PluginStates};
use crate::record::prompt::call::{CallFlags, Gate, ToolDecl};
use crate::record::prompt::continued::HandedOver;
use crate::record::prompt::file::FileRef;
use crate::record::prompt::made_by::MadeBy;
use crate::record::prompt::part::Part;
use crate::record::prompt::tool_id::ToolId;
use crate::record::request::request::{ContextItem, Settings};
use crate::record::run::budget::Budget;
use crate::record::run::loop_limits::Limits;
use crate::record::run::signal::Start;
use crate::record::shape::Shape;

/// The content of `BRAIN_START`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BrainStart {
    /// The brain's title.
    pub title: String,
    /// The author's version.
    #[serde(default, skip_serializing_if = "is_default")]
    pub version: u32,
    /// The hash that identifies the brain's version; see [`Shape::fingerprint`].
    pub fingerprint: ContentHash,
    /// Its stages; left out where an earlier event of the log has them.
    #[serde(default, skip_serializing_if = "Shape::is_empty")]
    pub stages: Shape,
    /// Its options.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub options: Value,
    /// The initial state.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub state: Value,
    /// The states of its plugins from the conversation before.
    #[serde(default, skip_serializing_if = "PluginStates::is_empty")]
    pub plugins: PluginStates,
    /// The budget set by its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The brain with which the conversation before stays; only for the root brain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_over: Option<Box<HandedOver>>,
    /// How the run was started; only for the root brain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
}

/// The content of `LOOP_ITERATION`: the result of `prepare`. Absent fields are as in the previous iteration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Iteration {
    /// The system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<Content<Arc<str>>>,
    /// The context items, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Vec<Content<ContextItem>>>,
    /// The tools, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolEntry>>,
    /// The model settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Content<Settings>>,
    /// The limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Whether a text answer does not end the loop: it has an exit tool, or requires an exit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exits: Option<bool>,
    /// The changes of the plugins' states.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub plugins: IndexMap<String, PluginChange>,
}

impl Iteration {
    /// Returns whether the request differs from that of the previous iteration in more than its messages.
    pub(crate) const fn changes_request(&self) -> bool {
        self.system.is_some() || self.context.is_some() || self.tools.is_some() || self.settings.is_some()
    }
}

/// A content by its hash; the body is in the first event of the loop with that hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Content<T> {
    /// The hash.
    pub hash: ContentHash,
    /// The body, if it is new.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub body: Option<T>,
}

const fn none<T>() -> Option<T> {
    None
}

/// A tool of an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolEntry {
    /// The tool's id.
    pub id: ToolId,
    /// The hash of its declaration.
    pub hash: ContentHash,
    /// The declaration, if it is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<ToolDecl>,
}

/// What the model reads in place of a message that a guard has replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacedInput {
    /// The number of the message among those of people in the loop, from 0.
    pub message: u32,
    /// Whether it is a message of an earlier run of the conversation, which no loop has read, and the number is one among those.
    #[serde(default, skip_serializing_if = "is_default")]
    pub earlier: bool,
    /// The text.
    pub text: String,
    /// The files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
    /// Why the guard refused the message; `None` if it let a text pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
}

/// A question of a step to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The system prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// The text.
    pub text: String,
    /// The files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
    /// The model settings.
    #[serde(default)]
    pub settings: Settings,
    /// The model's earlier answers that did not match, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misfits: Vec<Misfit>,
    /// The beginning of the answer, one entry for each pause of the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub so_far: Vec<PausedAnswer>,
}

/// The beginning of an answer that a model interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PausedAnswer {
    /// The parts.
    pub parts: Vec<Part>,
    /// The model, which alone gets the private data of the parts back.
    #[serde(default, skip_serializing_if = "MadeBy::is_unknown")]
    pub by: MadeBy,
}

/// An answer to a question that did not match the requested form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misfit {
    /// The answer.
    pub answer: String,
    /// The mismatch, which the model reads.
    pub message: String,
}

/// The content of `LOOP_TOOL_CALL`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The tool, or the name that the model wrote if the tool does not exist.
    pub tool: String,
    /// The arguments; a string if the model did not write JSON.
    pub arguments: Arc<Value>,
    /// The provider's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Provider data that is sent back unchanged.
    #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The tool's flags.
    #[serde(default, skip_serializing_if = "is_default")]
    pub flags: CallFlags,
    /// The required approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// What was repaired in what the model wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<Box<Repair>>,
}

/// A person's decision on a call, or on more for a loop or a brain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Approved.
    Approved,
    /// Rejected.
    Rejected,
}

/// The reason why a waiting call resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResumeCause {
    /// An answer arrived.
    #[default]
    Answered,
    /// The wait expired.
    Expired,
}

/// The sender of a message to a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// A person.
    #[default]
    Person,
    /// The engine, for instance to tell the model that it has to call an exit tool.
    Engine,
    /// A child run that a call has started in the background: the message reports its end, and its id is that of the message.
    Child,
}
