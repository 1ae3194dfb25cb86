//! What a model is asked, and what streams back while it answers.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::{ToolDecl, ToolId};
use super::message::{Transcript, WireCache, WireText};
use super::path::Path;
use super::signal::Named;
use super::structured::StructuredActions;

/// One request to a model. It is a pure function of the log, so it can be rebuilt byte for byte.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The iteration that asks, or the step with the number of its question.
    pub path: Path,
    /// Counts the tries of this request, from 0.
    pub attempt: u32,
    /// The system prompt, which stands before the messages.
    pub system: Arc<str>,
    /// What plugins and the author add for this request, in order. It stands behind the messages.
    pub context: Arc<[ContextItem]>,
    /// The tools of this request.
    pub tools: Arc<ToolSet>,
    /// The messages before.
    pub messages: Transcript,
    /// How the model is to answer.
    pub settings: Arc<Settings>,
}

/// One item of context: a named piece that the model reads behind the messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextItem {
    /// What the item is about; items keep the order in which they were added.
    pub name: String,
    /// What the model reads.
    pub text: String,
}

/// The tools of one request, with their encoded form once there is one.
#[derive(Default)]
pub struct ToolSet {
    tools: Vec<ToolDecl>,
    wire: WireCache,
}

impl ToolSet {
    /// Makes a set; the order is the order in which a model sees the tools.
    #[must_use]
    pub fn new(tools: Vec<ToolDecl>) -> Self {
        Self { tools, wire: WireCache::default() }
    }

    /// Returns the tools in order.
    #[must_use]
    pub fn tools(&self) -> &[ToolDecl] {
        &self.tools
    }

    /// Finds the tool that a model means by `name`: its wire name, or its id.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&ToolDecl> {
        self.tools.iter().find(|tool| tool.id.as_str() == name || tool.id.wire_name() == name)
    }

    /// Finds the first two tools that a provider could not tell apart.
    #[must_use]
    pub fn collision(&self) -> Option<(&ToolId, &ToolId)> {
        let mut seen = std::collections::HashMap::new();
        self.tools.iter().find_map(|tool| seen.insert(tool.id.wire_name(), &tool.id).map(|earlier| (earlier, &tool.id)))
    }

    /// Returns the set as a provider's dialect encodes it; the first dialect that asks is remembered.
    pub fn wire(&self, dialect: &'static str, encode: impl FnOnce(&[ToolDecl]) -> Box<RawValue>) -> WireText<'_> {
        self.wire.get(dialect, || encode(&self.tools))
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tools.iter().map(|tool| &tool.id)).finish()
    }
}

impl PartialEq for ToolSet {
    fn eq(&self, other: &Self) -> bool {
        self.tools == other.tools
    }
}

/// How a model is to answer. What is `None` is left to the provider.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, typed_builder::TypedBuilder)]
#[serde(default)]
#[builder(field_defaults(default))]
pub struct Settings {
    /// Which of the runner's models answers.
    #[serde(skip_serializing_if = "is_default")]
    pub tier: Tier,
    /// The model's name, where it is not the adapter's own.
    #[builder(setter(strip_option, into))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The sampling temperature, from 0 to 2.
    #[builder(setter(strip_option))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How many tokens the answer may have.
    #[builder(setter(strip_option))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Whether the model has to call a tool.
    #[serde(skip_serializing_if = "is_default")]
    pub tool_choice: ToolChoice,
    /// Whether the model may ask for several calls at once.
    #[builder(setter(strip_option))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// The form of the answer.
    #[serde(skip_serializing_if = "is_default")]
    pub output: OutputFormat,
    /// How the model decides, where it answers in decisions. The request that is sent has none: it says in words and with
    /// `output` what a decision is.
    #[builder(setter(strip_option))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_actions: Option<StructuredActions>,
    /// Fields that are sent to the provider as they are.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub extra: Named,
    /// Whether the loop's code answers in the place of a model, as [`Loop::scripted`](crate::dsl::Loop::scripted) says.
    #[serde(skip_serializing_if = "is_default")]
    pub in_code: bool,
}

/// The model and the provider of an answer that code gives in the place of a model.
pub const CODE: &str = "code";

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Which of the runner's models answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The model for most work.
    #[default]
    Normal,
    /// The model for hard work.
    High,
}

/// Whether a model has to call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It has to call at least one.
    Required,
    /// It must not call any.
    None,
}

/// The form of a model's answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputFormat {
    /// Natural language.
    #[default]
    Text,
    /// JSON that fits a schema.
    JsonSchema {
        /// The schema's name.
        name: String,
        /// The schema.
        schema: Arc<Value>,
    },
    /// JSON that fits a schema which is sent as it is written: models fill fields in the order of the schema.
    JsonText {
        /// The schema's name.
        name: String,
        /// The schema, as JSON text.
        schema: Arc<str>,
    },
}

/// A piece of an answer while it streams. It is shown, never logged. A higher `attempt`, or within it a higher `generation`, voids
/// what had streamed before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delta {
    /// The iteration, or for progress the call, that it belongs to.
    pub path: Path,
    /// The try of the request.
    #[serde(default)]
    pub attempt: u32,
    /// Counts how often the answer began anew within this try, since the model that gave it failed and another one was
    /// asked: what came with a smaller number is void.
    #[serde(default, skip_serializing_if = "is_default")]
    pub generation: u32,
    /// Which part of the answer, from 0.
    #[serde(default)]
    pub part: u32,
    /// What kind of part it is.
    pub kind: DeltaKind,
    /// For a call: its place among the answer's calls, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// For a call: the tool's name, with its first piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Counts the pieces of this attempt and take, from 0.
    #[serde(default)]
    pub n: u32,
    /// The piece.
    pub text: String,
}

/// What a [`Delta`] is a piece of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeltaKind {
    /// The answer's text.
    Text,
    /// The model's thoughts.
    Reasoning,
    /// A call's arguments.
    Arguments,
    /// What a running tool says of itself.
    Progress,
}

impl Serialize for ToolSet {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.tools.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolSet {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::new)
    }
}
