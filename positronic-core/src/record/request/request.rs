//! Requests to a model, and the pieces of a streaming answer.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use derive_where::derive_where;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::provider_tool::ProviderTool;
use super::structured_action_settings::StructuredActions;
use crate::record::encoding::skip::is_default;
use crate::record::path::Path;
use crate::record::prompt::call::ToolDecl;
use crate::record::prompt::message::{Transcript, WireCache, WireText};
use crate::record::prompt::tool_id::ToolId;
use crate::record::run::signal::Named;

/// A request to a model. It is a pure function of the log, so it can be rebuilt byte for byte.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The iteration, or the step with the number of its question.
    pub path: Path,
    /// The number of the try, from 0.
    pub attempt: u32,
    /// The system prompt.
    pub system: Arc<str>,
    /// The context of this request from plugins and the author, in order. It follows the messages.
    pub context: Arc<[ContextItem]>,
    /// The tools of this request.
    pub tools: Arc<ToolSet>,
    /// The previous messages.
    pub messages: Transcript,
    /// The model settings.
    pub settings: Arc<Settings>,
}

impl ModelRequest {
    /// Renders the context as text for the model, each item with its name; `None` if there is none.
    #[must_use]
    pub fn context_text(&self) -> Option<String> {
        let items = self.context.iter().filter(|item| !item.text.is_empty());
        let items: Vec<_> = items
            .map(|ContextItem { name, text }| {
                format!("<context name=\"{}\">\n{text}\n</context>", name.replace('"', "'"))
            })
            .collect();
        (!items.is_empty()).then(|| items.join("\n\n"))
    }
}

/// A context item: a named text that follows the messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextItem {
    /// The name; items keep the order in which they were added.
    pub name: String,
    /// The text.
    pub text: String,
}

/// The tools of a request, with their cached encoding.
#[derive(Default, Serialize, Deserialize)]
#[derive_where(PartialEq)]
#[serde(transparent)]
pub struct ToolSet {
    tools: Vec<ToolDecl>,
    #[serde(skip)]
    #[derive_where(skip)]
    wire: WireCache,
    #[serde(skip)]
    #[derive_where(skip)]
    memo: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl ToolSet {
    /// Creates a set; the model sees the tools in this order.
    #[must_use]
    pub fn new(tools: Vec<ToolDecl>) -> Self {
        Self { tools, wire: WireCache::default(), memo: OnceLock::new() }
    }

    /// Returns the tools in order.
    #[must_use]
    pub fn tools(&self) -> &[ToolDecl] {
        &self.tools
    }

    /// Finds a tool by the name that a model wrote: its wire name or its id.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&ToolDecl> {
        self.tools.iter().find(|tool| tool.id.as_str() == name || tool.id.wire_name() == name)
    }

    /// Returns the first two tools with the same wire name.
    #[must_use]
    pub fn collision(&self) -> Option<(&ToolId, &ToolId)> {
        Self::collision_of(self.tools.iter())
    }

    /// Returns the first two of these tools with the same wire name.
    pub(crate) fn collision_of<'a>(
        mut tools: impl ExactSizeIterator<Item = &'a ToolDecl>,
    ) -> Option<(&'a ToolId, &'a ToolId)> {
        if tools.len() < 2 {
            return None;
        }
        let mut seen = std::collections::HashMap::new();
        tools.find_map(|tool| seen.insert(tool.id.wire_name(), &tool.id).map(|earlier| (earlier, &tool.id)))
    }

    /// Returns the encoded set; the encoding of the first dialect is cached.
    pub fn wire(&self, dialect: &'static str, encode: impl FnOnce(&[ToolDecl]) -> Box<str>) -> WireText<'_> {
        self.wire.get(dialect, || encode(&self.tools))
    }

    /// Returns the length in bytes of the cached encoding, if there is one.
    pub fn wire_len(&self) -> Option<usize> {
        self.wire.len()
    }

    /// Returns what an adapter computes of the tools, such as the names of their fields for its API. The first type's value is
    /// cached.
    pub fn memo<T: Any + Send + Sync>(&self, compute: impl Fn(&[ToolDecl]) -> T) -> Arc<T> {
        let cached = self.memo.get_or_init(|| Arc::new(compute(&self.tools)));
        Arc::clone(cached).downcast().unwrap_or_else(|_| Arc::new(compute(&self.tools)))
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tools.iter().map(|tool| &tool.id)).finish()
    }
}

/// Model settings. `None` leaves a setting to the provider.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, typed_builder::TypedBuilder)]
#[serde(default)]
#[builder(field_defaults(default))]
#[non_exhaustive]
pub struct Settings {
    /// The tier of the model.
    #[serde(skip_serializing_if = "is_default")]
    pub tier: Tier,
    /// The model's name, if it is not the adapter's own.
    #[builder(setter(strip_option, into))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The sampling temperature, from 0 to 2.
    #[builder(setter(strip_option))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The maximum number of tokens in the answer.
    #[builder(setter(strip_option))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Whether the model must call a tool.
    #[serde(skip_serializing_if = "is_default")]
    pub tool_choice: ToolChoice,
    /// Whether the model may request several calls at once.
    #[builder(setter(strip_option))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// The form of the answer.
    #[serde(skip_serializing_if = "is_default")]
    pub output: OutputFormat,
    /// How the model answers with structured actions. A sent request has none: its words and
    /// `output` describe the format.
    #[builder(setter(strip_option))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_actions: Option<StructuredActions>,
    /// Tools of the provider that the model may use beside the brain's own.
    #[builder(setter(into))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provider_tools: Vec<ProviderTool>,
    /// Additional fields for the provider, sent unchanged.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub extra: Named,
    /// Whether the loop's code answers instead of a model; see [`Loop::scripted`](crate::dsl::Loop::scripted).
    #[serde(skip_serializing_if = "is_default")]
    pub in_code: bool,
}

/// The tier of a model of the runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The model for most work.
    #[default]
    Normal,
    /// The model for hard work.
    High,
}

/// Whether a model must call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It must call at least one.
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
    /// JSON that matches a schema.
    JsonSchema {
        /// The schema's name.
        name: String,
        /// The schema. It is sent in the order of [`OrderedJson::of_schema`](super::super::OrderedJson::of_schema).
        schema: Arc<Value>,
    },
}

/// A piece of a streaming answer. It is shown, never logged. A higher `attempt`, or within it a higher `generation`, discards
/// the earlier pieces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delta {
    /// The iteration, or for progress the call, that it belongs to.
    pub path: Path,
    /// The try of the request.
    #[serde(default)]
    pub attempt: u32,
    /// Counts how often the answer restarted within this try, because its model failed and another one was
    /// asked: pieces with a lower number are discarded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub generation: u32,
    /// The index of the part in the answer, from 0.
    #[serde(default)]
    pub part: u32,
    /// The kind of the part.
    pub kind: DeltaKind,
    /// For a call: its index among the answer's calls, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// For a call: the tool's name, with its first piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Counts the pieces of this attempt and generation, from 0.
    #[serde(default)]
    pub n: u32,
    /// The piece.
    pub text: String,
}

/// The pieces of a streaming answer so far, joined: one for each of its parts.
#[derive(Debug, Clone, Default)]
pub struct PartialAnswer {
    /// The try of the request.
    pub attempt: u32,
    /// How often the answer has restarted within the try.
    pub generation: u32,
    /// The number of the next piece.
    pub next: u32,
    /// The text of each part so far.
    pub pieces: Vec<Delta>,
}

/// The kind of content of a [`Delta`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeltaKind {
    /// The answer's text.
    Text,
    /// The model's reasoning.
    Reasoning,
    /// A call's arguments.
    Arguments,
    /// The progress of a running tool.
    Progress,
}
