//! A budget over the prompts of a conversation, in the run that is one of them.
//!
//! The run's brain has it beside a budget of its own. Each has its own limits, grants, and say about what happens at a limit;
//! what is reached first binds. What the prompts before have used counts as used, of the conversation's alone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::limits::{Grants, is_default};
use super::state::{BrainFrame, RunState};
use crate::record::{Amounts, BrainStart, Budget, Money, SharedBudget};

/// What the prompts of a conversation may use together, in the run's brain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SharedLimits {
    /// The budget, as it was when the run began.
    pub budget: SharedBudget,
    /// What people have said about it in this run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub grants: Grants,
}

/// Says what a brain that begins may use by itself. What the run was started with goes before what its author says.
pub(super) fn budget_of(start: &BrainStart) -> Option<Arc<Budget>> {
    let given = start.start.as_ref().and_then(|start| start.budget.as_ref());
    let own = match (given, &start.budget) {
        (Some(given), Some(own)) => Some(given.or(own)),
        (given, own) => given.or(own.as_ref()).cloned(),
    };
    own.map(Arc::new)
}

/// Says what the conversation lets a brain that begins use.
pub(super) fn shared_of(start: &BrainStart) -> Option<Arc<SharedLimits>> {
    let budget = start.start.as_ref()?.shared_budget.clone()?;
    Some(Arc::new(SharedLimits { budget, grants: Grants::default() }))
}

impl BrainFrame {
    /// Says whether a person is asked for more, of its own budget or of the conversation's.
    pub(super) fn waits_for_more(&self) -> bool {
        let shared = self.shared.as_ref().is_some_and(|shared| shared.grants.asked.is_some());
        shared || self.grants.asked.is_some()
    }
}

/// Adds what a run has used, and what was granted to its conversation in it, to what its conversation has used before it.
/// Money in another currency is no part of the sum.
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
    shared.used += Amounts { iterations: root.iterations, tokens, money, time };
    if let Some(limits) = &root.shared {
        shared.granted += limits.grants.more;
    }
    if shared.unpriced.is_none() {
        shared.unpriced = root.spent.unpriced.as_deref().map(str::to_owned);
    }
}
