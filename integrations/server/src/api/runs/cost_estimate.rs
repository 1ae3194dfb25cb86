//! What a request is expected to cost before it is sent.

use positronic_core::prices::PriceTable;
use positronic_core::record::{Charge, ModelRequest, ResponseMetadata, Usage};
use schemars::JsonSchema;
use serde::Serialize;

use super::model_answer::cost_item;
use super::requests::document;
use crate::api::run_item::CostItem;

/// About how many bytes a token has, where no recorded answer says it.
const BYTES_PER_TOKEN: u64 = 4;
/// How many models with a price are suggested.
const MAX_MODELS: usize = 60;

/// What a changed request is expected to cost.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EstimateItem {
    /// The model that will be asked, as `provider/model`.
    model: String,
    /// The expected tokens of the request, without what the provider has cached.
    input_tokens: u64,
    /// The expected tokens of the answer: those of the recorded one. Absent if the log has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    /// Whether the tokens follow from the recorded answer, by the lengths of both requests; otherwise from the length alone.
    from_record: bool,
    /// The expected cost; without `output_tokens` that of the request alone. Absent if the model has no price.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<CostItem>,
    /// The cost if the answer has as many tokens as the settings allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_cost: Option<CostItem>,
    /// The date of the prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<String>,
    /// Models of this provider that have a price.
    models: Vec<String>,
    /// Whether marks stand in the place of secrets in what is sent, since this server redacts.
    redacted: bool,
}

impl EstimateItem {
    /// Estimates the cost of a request to a model by the recorded request and the tokens of its answer.
    pub(super) fn of(
        (provider, model): (&str, &str),
        request: &ModelRequest,
        (recorded, usage): (&ModelRequest, Option<Usage>),
        prices: Option<&PriceTable>,
        redacted: bool,
    ) -> Self {
        let usage = usage.filter(|usage| usage.input > 0);
        let length = |request: &ModelRequest| u64::try_from(document(request).to_string().len()).unwrap_or(u64::MAX);
        let input_tokens = match usage {
            Some(usage) => {
                let scaled =
                    u128::from(usage.input) * u128::from(length(request)) / u128::from(length(recorded).max(1));
                u64::try_from(scaled).unwrap_or(u64::MAX)
            }
            None => length(request).div_ceil(BYTES_PER_TOKEN),
        };
        let output_tokens = usage.map(|usage| usage.output);
        let named = |model: &str| ResponseMetadata {
            provider: provider.into(),
            model: model.into(),
            ..ResponseMetadata::default()
        };
        let cost = |output: u64| {
            let prices = prices?;
            let usage = Usage { input: input_tokens, output, ..Usage::default() };
            let amount = prices.price(&named(model))?.of(&usage);
            Some(cost_item(&Charge { amount, currency: prices.currency.clone(), as_of: None }))
        };
        Self {
            model: format!("{provider}/{model}"),
            input_tokens,
            output_tokens,
            from_record: usage.is_some(),
            cost: cost(output_tokens.unwrap_or_default()),
            max_cost: request.settings.max_output_tokens.and_then(|most| cost(most.into())),
            as_of: prices.map(|prices| prices.as_of.clone()),
            models: prices.map(|prices| priced(prices, provider)).unwrap_or_default(),
            redacted,
        }
    }
}

/// Lists the models of a provider that a table names.
pub(super) fn priced(prices: &PriceTable, provider: &str) -> Vec<String> {
    let names = prices.prices.keys().filter(|key| !key.ends_with('*'));
    let own = names.filter_map(|key| match key.split_once('/') {
        Some((of, name)) => (of == provider).then_some(name),
        None => Some(key.as_str()),
    });
    own.take(MAX_MODELS).map(str::to_owned).collect()
}
