//! Budgets of brains, and the additional amounts that a person grants.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::loop_limits::{LimitKind, OnLimit};
use crate::record::encoding::micros::micros;
use crate::record::encoding::skip::is_default;
use crate::record::money::{Money, MoneyError};

/// The common limits of a brain, or of a loop, and everything below it: loops, questions of steps and plugins, nested
/// brains. A limit that is `None` does not exist.
///
/// A budget limits model calls, like the limits of a loop. When it is used up, it ends the outermost open loop of
/// the brain, and a question of a step gets an error. [`OnLimit::Error`], the default, fails that loop's brain;
/// with [`OnLimit::Exit`] the brain continues with its next stage, whose loops end before they call a model.
///
/// ```
/// use positronic_core::prelude::*;
///
/// let careful = brain("Careful").budget(|budget| budget.max_money("2").max_tokens(500_000).ask_for_more());
/// # let _ = careful;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Budget {
    /// The maximum number of iterations: of a loop, or of all loops of a brain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    /// The maximum number of tokens, of requests and answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The maximum cost of model answers, in the currency of the runner's prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_money: Option<Money>,
    /// The maximum active time, stored in microseconds; time spent suspended does not count.
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::record::encoding::micros::optional")]
    pub max_time: Option<Duration>,
    /// The effect of using it up; [`OnLimit::Error`] by default, and [`OnLimit::Exit`] for a loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_limit: Option<OnLimit>,
    /// Whether a person is asked for more first; `on_limit` applies when they reject it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<AskForMore>,
}

/// Asks a person for more when a limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AskForMore {
    /// How long the request is valid, stored in microseconds; without limit if not set. An expired request counts as
    /// rejected.
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::record::encoding::micros::optional")]
    pub valid_for: Option<Duration>,
}

impl AskForMore {
    /// Sets how long the request is valid.
    #[must_use]
    pub const fn within(time: Duration) -> Self {
        Self { valid_for: Some(time) }
    }
}

/// The amounts that a person grants in addition to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Amounts {
    /// Iterations.
    #[serde(skip_serializing_if = "is_default")]
    pub iterations: u64,
    /// Tokens.
    #[serde(skip_serializing_if = "is_default")]
    pub tokens: u64,
    /// Money.
    #[serde(skip_serializing_if = "is_default")]
    pub money: Money,
    /// Active time, stored in microseconds.
    #[serde(skip_serializing_if = "is_default", with = "crate::record::encoding::micros")]
    pub time: Duration,
}

impl Amounts {
    /// Creates an amount of iterations.
    #[must_use]
    pub fn iterations(iterations: u64) -> Self {
        Self { iterations, ..Self::default() }
    }

    /// Creates an amount of tokens.
    #[must_use]
    pub fn tokens(tokens: u64) -> Self {
        Self { tokens, ..Self::default() }
    }

    /// Creates an amount of money.
    #[must_use]
    pub fn money(money: Money) -> Self {
        Self { money, ..Self::default() }
    }

    /// Creates an amount of active time.
    #[must_use]
    pub fn time(time: Duration) -> Self {
        Self { time, ..Self::default() }
    }

    /// Returns the amount of one kind: iterations, tokens, billionths of money, microseconds.
    #[must_use]
    pub fn of(&self, kind: LimitKind) -> u64 {
        match kind {
            LimitKind::Iterations => self.iterations,
            LimitKind::Failures => 0,
            LimitKind::Tokens => self.tokens,
            LimitKind::Money => self.money.nanos(),
            LimitKind::Time => micros(self.time),
        }
    }

    /// Renders the amounts for people: `2.5 EUR and 3 iterations`, with the currency of money if it is known.
    #[must_use]
    pub fn amounts(&self, currency: Option<&str>) -> String {
        let amounts: Vec<_> = self.kinds().map(|kind| kind.amount(self.of(kind), currency)).collect();
        if amounts.is_empty() { "nothing".to_owned() } else { amounts.join(" and ") }
    }

    /// Lists the kinds with an amount.
    pub fn kinds(&self) -> impl Iterator<Item = LimitKind> {
        let kinds = [LimitKind::Iterations, LimitKind::Tokens, LimitKind::Money, LimitKind::Time];
        let more = *self;
        kinds.into_iter().filter(move |kind| more.of(*kind) > 0)
    }
}

impl std::ops::AddAssign for Amounts {
    fn add_assign(&mut self, other: Self) {
        self.iterations = self.iterations.saturating_add(other.iterations);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.money += other.money;
        self.time = self.time.saturating_add(other.time);
    }
}

impl Budget {
    /// Sets the maximum number of iterations: of a loop, or of all loops of a brain.
    #[must_use]
    pub const fn max_iterations(mut self, iterations: u64) -> Self {
        self.max_iterations = Some(iterations);
        self
    }

    /// Sets the maximum number of tokens, of requests and answers.
    #[must_use]
    pub const fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets the maximum cost of model answers, such as `"2.50"`, in the currency of the runner's prices.
    ///
    /// # Panics
    ///
    /// If the amount is invalid.
    #[must_use]
    #[track_caller]
    pub fn max_money<M: TryInto<Money, Error: Into<MoneyError>>>(mut self, amount: M) -> Self {
        self.max_money = Some(Money::written(amount));
        self
    }

    /// Sets the maximum active time of the brain; time spent waiting for people does not count.
    #[must_use]
    pub const fn max_time(mut self, time: Duration) -> Self {
        self.max_time = Some(time);
        self
    }

    /// Sets the effect of using it up: fail (the default), or end the open loop and continue.
    #[must_use]
    pub const fn on_limit(mut self, on_limit: OnLimit) -> Self {
        self.on_limit = Some(on_limit);
        self
    }

    /// Asks a person for more first.
    #[must_use]
    pub const fn ask_for_more(mut self) -> Self {
        self.ask = Some(AskForMore { valid_for: None });
        self
    }

    /// Asks a person for more first; the request expires after this time.
    #[must_use]
    pub const fn ask_for_more_within(mut self, time: Duration) -> Self {
        self.ask = Some(AskForMore::within(time));
        self
    }

    /// Returns the limit of one kind, in the units of [`Amounts::of`].
    #[must_use]
    pub fn limit(&self, kind: LimitKind) -> Option<u64> {
        match kind {
            LimitKind::Iterations => self.max_iterations,
            LimitKind::Tokens => self.max_tokens,
            LimitKind::Money => self.max_money.map(Money::nanos),
            LimitKind::Time => self.max_time.map(micros),
            LimitKind::Failures => None,
        }
    }

    /// Fills in the unset limits from another budget. If `on_limit` is set, `ask` is not taken from the other budget.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            max_iterations: self.max_iterations.or(other.max_iterations),
            max_tokens: self.max_tokens.or(other.max_tokens),
            max_money: self.max_money.or(other.max_money),
            max_time: self.max_time.or(other.max_time),
            on_limit: self.on_limit.or(other.on_limit),
            ask: if self.on_limit.is_some() { self.ask } else { self.ask.or(other.ask) },
        }
    }
}

/// A budget of all prompts of a conversation at the start of one, including the previous usage.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SharedBudget {
    /// The common limits.
    pub budget: Budget,
    /// The usage of previous prompts.
    #[serde(skip_serializing_if = "is_default")]
    pub used: Amounts,
    /// The amounts that people have granted in addition.
    #[serde(skip_serializing_if = "is_default")]
    pub granted: Amounts,
    /// The currency of costs, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The first model whose answer had no known cost and was not priced later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unpriced: Option<String>,
    /// Another currency in which a prompt was paid. Its cost is not part of `used` until it is priced in the budget's
    /// currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<String>,
}

impl SharedBudget {
    /// Returns the limit of one kind including granted amounts, in the units of [`Amounts::of`].
    #[must_use]
    pub fn limit(&self, kind: LimitKind) -> Option<u64> {
        Some(self.budget.limit(kind)?.saturating_add(self.granted.of(kind)))
    }

    /// Returns the currency of its money limit, if there is one and the currency is known.
    #[must_use]
    pub fn currency_of_limit(&self) -> Option<&str> {
        self.currency.as_deref().filter(|_| self.budget.max_money.is_some())
    }

    /// Returns the first kind that is used up.
    #[must_use]
    pub fn spent(&self) -> Option<LimitKind> {
        let kinds = [LimitKind::Tokens, LimitKind::Money, LimitKind::Time, LimitKind::Iterations];
        kinds.into_iter().find(|kind| self.limit(*kind).is_some_and(|limit| self.used.of(*kind) >= limit))
    }
}
