//! A budget over the prompts of a conversation, in the run that is one of them.
//!
//! The run's brain has one budget. Of each kind, it is that of the conversation where less is left of it than the run alone
//! may use: then what the prompts before have used counts as used, and what people grant is the conversation's.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::state::{BrainFrame, RunState};
use crate::record::{BrainStart, Budget, LimitKind, Money, More, SharedBudget};

/// What the prompts before have used, of each kind that the conversation limits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SpentBefore {
    #[serde(skip_serializing_if = "Option::is_none")]
    rounds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    money: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<u64>,
}

impl SpentBefore {
    /// Returns what was used of a kind before the run, in the units of [`More::of`]; `None` where the limit is the run's own.
    #[must_use]
    pub const fn of(&self, kind: LimitKind) -> Option<u64> {
        match kind {
            LimitKind::Rounds => self.rounds,
            LimitKind::Tokens => self.tokens,
            LimitKind::Money => self.money,
            LimitKind::Time => self.time,
            LimitKind::Failures => None,
        }
    }
}

/// Says what a brain that begins may use, and what of it the conversation has used before.
pub(super) fn budget_of(start: &BrainStart) -> (Option<Arc<Budget>>, Option<Arc<SpentBefore>>) {
    let given = start.start.as_ref();
    // What the run was started with goes before what its author says.
    let own = match (given.and_then(|start| start.budget.as_ref()), &start.budget) {
        (Some(given), Some(own)) => Some(given.or(own)),
        (given, own) => given.or(own.as_ref()).cloned(),
    };
    let Some(shared) = given.and_then(|start| start.shared_budget.as_ref()) else { return (own.map(Arc::new), None) };
    let own = own.unwrap_or_default();
    let tighter = |kind, own: Option<u64>| match shared.limit(kind) {
        None => (own, None),
        Some(limit) => {
            let used = shared.used.of(kind);
            let left = limit.saturating_sub(used);
            match own.filter(|own| *own < left) {
                Some(own) => (Some(own), None),
                None => (Some(limit), Some(used)),
            }
        }
    };
    let (max_rounds, rounds) = tighter(LimitKind::Rounds, own.max_rounds);
    let (max_tokens, tokens) = tighter(LimitKind::Tokens, own.max_tokens);
    let (max_money, money) = tighter(LimitKind::Money, own.max_money.map(Money::nanos));
    let (max_time, time) = tighter(LimitKind::Time, own.max_time);
    let max_money = max_money.map(Money::of_nanos);
    let budget = Budget { max_rounds, max_tokens, max_money, max_time, ..shared.budget.or(&own) };
    (Some(Arc::new(budget)), Some(Arc::new(SpentBefore { rounds, tokens, money, time })))
}

impl BrainFrame {
    /// Returns what the conversation has used of a kind before the run; `None` where the limit is the run's own.
    pub(super) fn before(&self, kind: LimitKind) -> Option<u64> {
        self.before.as_ref()?.of(kind)
    }
}

/// Adds what a run has used, and what was granted in it, to what its conversation has used before it.
pub(crate) fn add_up(shared: &mut SharedBudget, run: &RunState) {
    let Some(root) = run.root.as_deref() else { return };
    let (tokens, money, time) = (root.usage.total(), root.spent.known, root.active);
    shared.used += More { rounds: root.rounds, tokens, money, time };
    let granted = root.allowance.more;
    let of = |kind| if root.before(kind).is_some() { granted.of(kind) } else { 0 };
    shared.granted += More {
        rounds: of(LimitKind::Rounds),
        tokens: of(LimitKind::Tokens),
        money: Money::of_nanos(of(LimitKind::Money)),
        time: of(LimitKind::Time),
    };
    if shared.currency.is_none() {
        shared.currency = run.currency.as_deref().map(str::to_owned);
    }
    if shared.unpriced.is_none() {
        shared.unpriced = root.spent.unpriced.as_deref().map(str::to_owned);
    }
}
