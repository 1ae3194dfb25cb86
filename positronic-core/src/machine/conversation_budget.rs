//! The budget of a conversation, in the run of one of its prompts.
//!
//! The run's brain has it in addition to its own budget. Each has its own limits, grants, and consequences;
//! the first one that is reached applies. Usage of previous prompts only counts for the conversation's.

use std::sync::Arc;
use std::time::Duration;

use super::grants::{Grants, SharedLimits};
use super::state::RunState;
use crate::record::{Amounts, BrainStart, Budget, Money, SharedBudget};

/// Returns a new brain's own budget. The budget of the run's start takes precedence over the author's.
pub(super) fn budget_of(start: &BrainStart) -> Option<Arc<Budget>> {
    let given = start.start.as_ref().and_then(|start| start.budget.as_ref());
    let own = match (given, &start.budget) {
        (Some(given), Some(own)) => Some(given.or(own)),
        (given, own) => given.or(own.as_ref()).cloned(),
    };
    own.map(Arc::new)
}

/// Returns a new brain's share of the conversation's budget.
pub(super) fn shared_of(start: &BrainStart) -> Option<Arc<SharedLimits>> {
    let budget = start.start.as_ref()?.shared_budget.clone()?;
    Some(Arc::new(SharedLimits { budget, grants: Grants::default() }))
}

/// Adds a run's usage and grants to those of its conversation. Money in another currency is not added.
pub(crate) fn add_up(shared: &mut SharedBudget, run: &RunState) {
    let Some(root) = run.root.as_deref() else { return };
    let (tokens, time) = (root.usage.total(), root.active);
    let mut money = root.spent.known;
    if let Some(own) = run.currency.as_deref() {
        let counted = shared.currency.get_or_insert_with(|| own.to_owned());
        if *counted != own {
            money = Money::default();
            shared.foreign.get_or_insert_with(|| own.to_owned());
        }
    }
    shared.used += Amounts { iterations: root.iterations, tokens, money, time: Duration::from_micros(time) };
    if let Some(limits) = &root.shared {
        shared.granted += limits.grants.more;
    }
    if shared.unpriced.is_none() {
        shared.unpriced = root.spent.unpriced.as_deref().map(str::to_owned);
    }
}
