//! How a loop asks for decisions: one JSON object with an action, its input and the reason for it.

use serde::{Deserialize, Serialize};

/// A loop whose model answers in decisions, `{reasoning, action, input}`, and calls no tools of its own accord. The
/// actions are the loop's tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, typed_builder::TypedBuilder)]
#[serde(default)]
#[builder(field_defaults(default))]
pub struct StructuredActions {
    /// Whether one decision may name several actions: `{reasoning, actions: [{action, input}, …]}`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub batches: bool,
    /// How the form of the answer is told to the model. `None` is as the model says that it can: it is filled in before an
    /// iteration is logged.
    #[builder(setter(strip_option))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<ActionFormat>,
    /// How often the model is asked again that gave no decision that fits; 3.
    #[builder(default = DEFAULT_RETRIES)]
    #[serde(skip_serializing_if = "is_default_retries")]
    pub retries: u32,
}

/// As in the decision loop's design.
const DEFAULT_RETRIES: u32 = 3;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
const fn is_default_retries(retries: &u32) -> bool {
    *retries == DEFAULT_RETRIES
}

impl Default for StructuredActions {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// How the form of a decision is told to a model. The model reads the actions in its system prompt in every form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionFormat {
    /// As a structured output format whose root is one object, which every provider with such formats takes. It does not say
    /// which input belongs to which action: the system prompt names the fields of each, and the rest is checked when the answer
    /// is there.
    #[default]
    Schema,
    /// As a structured output format with one object for each action, for servers that make a grammar of it (llama.cpp,
    /// vLLM): what fits the format fits the action. OpenAI refuses it.
    Grammar,
    /// In words alone, for models that have no structured output.
    Plain,
}
