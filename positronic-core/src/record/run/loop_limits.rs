//! Limits of a loop: a budget, and what only loops have.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::budget::Budget;
use crate::record::encoding::skip::{is, is_default};
use crate::record::ids::Timestamp;
use crate::record::money::Money;
use crate::record::path::Path;

/// The limits of one loop: a budget like that of a brain, and what only loops have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Limits {
    /// The limits that loops and brains have in common. Iterations are the loop's own, 50 by default, as in the decision
    /// loop's design; everything else counts for the loop and everything below it. [`OnLimit::Exit`] is the default effect.
    #[serde(flatten)]
    pub budget: Budget,
    /// The maximum number of consecutive failed calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<u32>,
    /// How often in a row the model is asked again after a useless answer that a retry may improve: an empty one,
    /// or cut-off calls; and in an iteration after a guard has refused an answer. The default is 2.
    #[serde(skip_serializing_if = "is::<DEFAULT_ANSWER_RETRIES>")]
    pub answer_retries: u32,
    /// The effect of any other useless answer: fail the brain, the default, or end the loop.
    #[serde(skip_serializing_if = "is_error")]
    pub on_useless_answer: OnLimit,
    /// Whether the model has one more iteration at a limit, to sum up, with only the exit tools.
    #[serde(skip_serializing_if = "is_default")]
    pub wrap_up: bool,
    /// How many calls of a batch run concurrently. The default is 8.
    #[serde(skip_serializing_if = "is::<DEFAULT_PARALLEL>")]
    pub parallel: u32,
    /// How the calls of a batch wait for each other's approvals.
    #[serde(skip_serializing_if = "is_default")]
    pub policy: BatchPolicy,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            budget: Budget::default().max_iterations(50),
            max_failures: None,
            answer_retries: DEFAULT_ANSWER_RETRIES,
            on_useless_answer: OnLimit::Error,
            wrap_up: false,
            parallel: DEFAULT_PARALLEL,
            policy: BatchPolicy::Gated,
        }
    }
}

const DEFAULT_PARALLEL: u32 = 8;

/// An answer that was empty three times will stay empty.
const DEFAULT_ANSWER_RETRIES: u32 = 2;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_error(value: &OnLimit) -> bool {
    *value == OnLimit::Error
}

/// The effect of reaching a limit without a granted extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnLimit {
    /// Ends the loop; the brain continues with its next stage.
    #[default]
    Exit,
    /// Fails the brain.
    Error,
}

/// The kind of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LimitKind {
    /// Tokens of a loop or a brain and everything below it.
    Tokens,
    /// Money spent by a loop or a brain and everything below it, in billionths.
    Money,
    /// Active time, in microseconds.
    Time,
    /// Iterations: a loop's own, or those of a brain and everything below it.
    Iterations,
    /// Consecutive failed calls of the loop.
    Failures,
}

impl LimitKind {
    /// Returns the limited quantity, as a noun.
    #[must_use]
    pub fn noun(self) -> &'static str {
        self.into()
    }

    /// Renders an amount for people: `1200 tokens`, `2.5 EUR`, `90s of active time`, `3 iterations`; `2.5 of money` if
    /// the currency is unknown.
    #[must_use]
    pub fn amount(self, amount: u64, currency: Option<&str>) -> String {
        match self {
            Self::Tokens => format!("{amount} token{}", if amount == 1 { "" } else { "s" }),
            Self::Money => format!("{} {}", Money::of_nanos(amount), currency.unwrap_or("of money")),
            Self::Time => format!("{:?} of active time", Duration::from_micros(amount)),
            Self::Iterations => format!("{amount} iteration{}", if amount == 1 { "" } else { "s" }),
            Self::Failures => format!("{amount} failure{} in a row", if amount == 1 { "" } else { "s" }),
        }
    }
}

/// How the calls of a batch wait for each other's approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BatchPolicy {
    /// All approvals are asked at once; a call after an undecided one waits for it, unless it is read-only.
    #[default]
    Gated,
    /// Everything in call order, one call and one decision at a time.
    Strict,
    /// All approvals are asked at once; every call that needs none runs at once.
    Eager,
}

/// A request to a person for more of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetRequest {
    /// The kind of limit.
    pub kind: LimitKind,
    /// The limit: tokens, billionths of money, microseconds, or iterations.
    pub limit: u64,
    /// The used amount.
    pub used: u64,
    /// Whether it is the budget of the conversation, and not the brain's own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shared: bool,
    /// When the request expires, which counts as a rejection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// A limit that ended a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitReached {
    /// The kind of limit.
    pub kind: LimitKind,
    /// The limit: tokens, billionths of money, microseconds, or iterations.
    pub limit: u64,
    /// The used amount.
    pub used: u64,
    /// The brain whose budget it is, if it is not the loop's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Path>,
    /// Whether it is the budget of the conversation, for which the run's brain is responsible.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shared: bool,
    /// The model whose answer has no known cost, if that is why a limit of money cannot be enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpriced: Option<Arc<str>>,
}
