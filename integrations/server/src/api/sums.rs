//! Tokens and costs of many runs, as JSON.

use positronic_core::record::{Money, Usage};
use positronic_core::store::RunSums;
use schemars::JsonSchema;
use serde::Serialize;

/// Tokens of model calls.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub(super) struct TokenSum {
    /// Tokens of requests, those from a cache included.
    input: u64,
    /// Tokens of answers.
    output: u64,
    /// The part of `input` that the provider has read from its cache.
    cached: u64,
}

impl From<Usage> for TokenSum {
    fn from(Usage { input, output, cached, .. }: Usage) -> Self {
        Self { input, output, cached }
    }
}

/// A cost in one currency.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct CostSum {
    /// The currency.
    currency: String,
    /// The known cost, as a decimal number.
    amount: String,
}

impl CostSum {
    pub(super) fn new(currency: &str, amount: Money) -> Self {
        Self { currency: currency.to_owned(), amount: amount.to_string() }
    }

    /// Returns the costs of runs.
    pub(super) fn all(sums: &RunSums) -> Vec<Self> {
        sums.costs.iter().map(|(currency, amount)| Self::new(currency, *amount)).collect()
    }
}
