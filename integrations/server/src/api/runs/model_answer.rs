//! Answers of models as JSON: those of the log, and those of the playground.

use positronic_core::prices::PriceTable;
use positronic_core::record::{Charge, ModelRequest, ModelResponse, Part};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::api::run_item::{CostItem, value};

/// An answer of a model.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AnswerItem {
    /// The model that answered, as `provider/model`.
    model: String,
    /// Its text.
    text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    reasoning: String,
    /// Its refusal, if it refused to answer.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    refusal: String,
    /// The calls that it asks for, in order.
    calls: Vec<ProposedCallItem>,
    /// The names of the files that it made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    files: Vec<String>,
    /// Why it ended: `stop`, `calls`, `length`, …
    finish: Value,
    /// The tokens of the request and the answer.
    pub(super) usage: Value,
    /// What it cost; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<CostItem>,
    /// The time from the request to the end of the answer, in milliseconds.
    duration_ms: u64,
}

/// A call that a model asks for.
#[derive(Debug, Serialize, JsonSchema)]
struct ProposedCallItem {
    tool: String,
    /// The arguments; the text of the model if that is no JSON.
    arguments: Value,
}

impl AnswerItem {
    /// Describes the answer to a request that `asked` a model. Its cost is the recorded one, or follows from prices.
    pub(super) fn of(
        asked: &str,
        request: &ModelRequest,
        response: &ModelResponse,
        prices: Option<&PriceTable>,
        duration: std::time::Duration,
    ) -> Self {
        let ModelResponse { parts, calls, metadata } = response;
        let joined = |text: fn(&Part) -> Option<&str>| parts.iter().filter_map(text).collect::<Vec<_>>().join("\n\n");
        let tool = |name: &str| request.tools.find(name).map_or_else(|| name.to_owned(), |tool| tool.id.to_string());
        let calls = calls.iter().map(|call| ProposedCallItem {
            tool: tool(&call.name),
            arguments: serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.as_str().into()),
        });
        let cost = metadata.cost.as_deref().cloned().or_else(|| prices.and_then(|prices| prices.charge(metadata)));
        let model = metadata.answered_by.as_ref().unwrap_or(&metadata.model);
        let model = if model.is_empty() { asked.to_owned() } else { format!("{}/{model}", metadata.provider) };
        Self {
            model,
            text: joined(|part| match part {
                Part::Text { text } => Some(text),
                _ => None,
            }),
            reasoning: joined(|part| match part {
                Part::Reasoning { text, .. } => Some(text),
                _ => None,
            }),
            refusal: joined(|part| match part {
                Part::Refusal { text } => Some(text),
                _ => None,
            }),
            calls: calls.collect(),
            files: response.files().map(|file| file.file().name.clone()).collect(),
            finish: value(&metadata.finish),
            usage: value(&metadata.usage),
            cost: cost.as_ref().map(cost_item),
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Returns a known cost.
pub(super) fn cost_item(charge: &Charge) -> CostItem {
    CostItem { amount: charge.amount.to_string(), currency: Some(charge.currency.clone()), partial: false }
}

/// Returns what an answer says, without its calls.
pub(crate) fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } | Part::Refusal { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
