//! What a whole brain may use, and how much more a person grants.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limits::{LimitKind, OnLimit};
use super::price::{Money, MoneyError};

/// What a brain and all below it may use together: every loop, every question of a step or a plugin, every nested brain.
/// A limit that is `None` does not exist.
///
/// A budget binds model calls, as the limits of a loop do. Once it is used up, it ends the outermost loop that is open in
/// the brain, and a question of a step gets an error. [`OnLimit::Error`], the default, fails the brain of that loop;
/// [`OnLimit::Exit`] lets it go on with its next stage, whose loops end before they ask a model.
///
/// ```
/// use positronic_core::prelude::*;
///
/// let careful = brain("Careful").budget(|budget| budget.max_money("2").max_tokens(500_000).ask_for_more());
/// # let _ = careful;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// How many iterations all loops may have together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    /// How many tokens, of requests and answers together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// What the answers of models may cost, in the currency of the runner's prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_money: Option<Money>,
    /// How long the brain may be active, in microseconds; time spent suspended does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time: Option<u64>,
    /// What using it up does; [`OnLimit::Error`] where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_limit: Option<OnLimit>,
    /// Whether a person is asked for more first; `on_limit` is what refusing does then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<AskForMore>,
}

/// Says that a person is asked for more where a limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AskForMore {
    /// How long the question stands, in microseconds; for ever where it is not given. No answer in time refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_for: Option<u64>,
}

impl AskForMore {
    /// Lets the question stand for so long.
    #[must_use]
    pub fn within(time: Duration) -> Self {
        Self { valid_for: Some(micros(time)) }
    }
}

/// How much more a person grants, on top of what there was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Amounts {
    /// Iterations.
    #[serde(skip_serializing_if = "is_none")]
    pub iterations: u64,
    /// Tokens.
    #[serde(skip_serializing_if = "is_none")]
    pub tokens: u64,
    /// Money.
    #[serde(skip_serializing_if = "is_no_money")]
    pub money: Money,
    /// Active time, in microseconds.
    #[serde(skip_serializing_if = "is_none")]
    pub time: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
const fn is_none(amount: &u64) -> bool {
    *amount == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_no_money(amount: &Money) -> bool {
    *amount == Money::default()
}

impl Amounts {
    /// Grants iterations.
    #[must_use]
    pub fn iterations(iterations: u64) -> Self {
        Self { iterations, ..Self::default() }
    }

    /// Grants tokens.
    #[must_use]
    pub fn tokens(tokens: u64) -> Self {
        Self { tokens, ..Self::default() }
    }

    /// Grants money.
    #[must_use]
    pub fn money(money: Money) -> Self {
        Self { money, ..Self::default() }
    }

    /// Grants active time.
    #[must_use]
    pub fn time(time: Duration) -> Self {
        Self { time: micros(time), ..Self::default() }
    }

    /// Returns how much is granted of one kind: iterations, tokens, billionths of money, microseconds.
    #[must_use]
    pub const fn of(&self, kind: LimitKind) -> u64 {
        match kind {
            LimitKind::Iterations => self.iterations,
            LimitKind::Failures => 0,
            LimitKind::Tokens => self.tokens,
            LimitKind::Money => self.money.nanos(),
            LimitKind::Time => self.time,
        }
    }

    /// Returns what is granted, for people: `2.5 EUR and 3 iterations`, with money in its currency where that is known.
    #[must_use]
    pub fn amounts(&self, currency: Option<&str>) -> String {
        let amounts: Vec<_> = self.kinds().map(|kind| kind.amount(self.of(kind), currency)).collect();
        if amounts.is_empty() { "nothing".to_owned() } else { amounts.join(" and ") }
    }

    /// Lists the kinds of which something is granted.
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
    /// Sets how many iterations all loops may have together.
    #[must_use]
    pub const fn max_iterations(mut self, iterations: u64) -> Self {
        self.max_iterations = Some(iterations);
        self
    }

    /// Sets how many tokens may be used, of requests and answers.
    #[must_use]
    pub const fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets what the answers of models may cost, such as `"2.50"`, in the currency of the runner's prices.
    ///
    /// # Panics
    ///
    /// When this is no amount of money.
    #[must_use]
    #[track_caller]
    pub fn max_money<M: TryInto<Money, Error: Into<MoneyError>>>(mut self, amount: M) -> Self {
        self.max_money = Some(Money::written(amount));
        self
    }

    /// Sets how long the brain may be active; time spent waiting for people does not count.
    #[must_use]
    pub fn max_time(mut self, time: Duration) -> Self {
        self.max_time = Some(micros(time));
        self
    }

    /// Sets what using it up does: fail (the default), or end the open loop and go on.
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

    /// Asks a person for more first, who has to answer within this time.
    #[must_use]
    pub fn ask_for_more_within(mut self, time: Duration) -> Self {
        self.ask = Some(AskForMore::within(time));
        self
    }

    /// Returns the limit of one kind, in the units of [`Amounts::of`]; `None` where there is none.
    #[must_use]
    pub const fn limit(&self, kind: LimitKind) -> Option<u64> {
        match kind {
            LimitKind::Iterations => self.max_iterations,
            LimitKind::Tokens => self.max_tokens,
            LimitKind::Money => match self.max_money {
                Some(money) => Some(money.nanos()),
                None => None,
            },
            LimitKind::Time => self.max_time,
            LimitKind::Failures => None,
        }
    }

    /// Returns this budget with what it leaves open taken from another one. Where it says what using it up does, it says by
    /// that, too, whether a person is asked for more.
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

/// A budget over all prompts of a conversation, as it is when one of them begins: with what those before have used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedBudget {
    /// What all prompts may use together.
    pub budget: Budget,
    /// What those before have used.
    #[serde(skip_serializing_if = "is_nothing")]
    pub used: Amounts,
    /// What people have granted on top of the budget.
    #[serde(skip_serializing_if = "is_nothing")]
    pub granted: Amounts,
    /// The currency in which costs count, once one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The first model whose answer had no known cost, and has not been reckoned since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unpriced: Option<String>,
    /// Another currency in which a prompt was paid. What it has cost is not among what was used until it is reckoned in the
    /// currency that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<String>,
}

fn is_nothing(more: &Amounts) -> bool {
    *more == Amounts::default()
}

impl SharedBudget {
    /// Returns the limit of one kind with what was granted, in the units of [`Amounts::of`]; `None` where there is none.
    #[must_use]
    pub fn limit(&self, kind: LimitKind) -> Option<u64> {
        Some(self.budget.limit(kind)?.saturating_add(self.granted.of(kind)))
    }

    /// Returns the currency in which its limit of money counts, where it has one and that is known.
    #[must_use]
    pub fn currency_of_limit(&self) -> Option<&str> {
        self.currency.as_deref().filter(|_| self.budget.max_money.is_some())
    }

    /// Returns the first kind of which nothing is left.
    #[must_use]
    pub fn spent(&self) -> Option<LimitKind> {
        let kinds = [LimitKind::Tokens, LimitKind::Money, LimitKind::Time, LimitKind::Iterations];
        kinds.into_iter().find(|kind| self.limit(*kind).is_some_and(|limit| self.used.of(*kind) >= limit))
    }
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
