//! Structured actions: answers as one JSON object with an action, its input and the reasoning.

use crate::record::encoding::skip::{is, is_default};
use serde::{Deserialize, Serialize};

/// Settings for answers with structured actions, `{reasoning, action, input}`, instead of tool calls. The
/// actions are the loop's tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, typed_builder::TypedBuilder)]
#[serde(default)]
#[builder(field_defaults(default))]
pub struct StructuredActions {
    /// Whether an answer may contain several actions: `{reasoning, actions: [{action, input}, …]}`.
    #[serde(skip_serializing_if = "is_default")]
    pub batches: bool,
    /// How the request describes the format to the model. `None` uses the model's own setting, which is filled in before an
    /// iteration is logged.
    #[builder(setter(strip_option))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<ActionFormat>,
    /// How often the model is asked again after an invalid answer; 3.
    #[builder(default = DEFAULT_RETRIES)]
    #[serde(skip_serializing_if = "is::<DEFAULT_RETRIES>")]
    pub retries: u32,
}

/// As in the design of structured actions.
const DEFAULT_RETRIES: u32 = 3;

impl Default for StructuredActions {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// How a request describes the format of actions to the model. The system prompt lists the actions in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActionFormat {
    /// As a structured output format whose root is one object, which every provider with such formats accepts. It does not
    /// relate inputs to actions: the system prompt names the fields of each, and the input is checked after the
    /// answer.
    #[default]
    Schema,
    /// As a structured output format with one object per action, for servers that convert it to a grammar (llama.cpp,
    /// vLLM): every answer that matches the format matches its action. OpenAI rejects it.
    Grammar,
    /// In words, for models without structured output.
    Plain,
}
