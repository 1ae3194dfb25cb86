//! What the prompts of a conversation may still use, reckoned before the next one begins.

use super::conversation::{Conversation, ConversationError};
use super::load;
use crate::machine::{RunState, add_up};
use crate::record::{RunSummary, SharedBudget};

impl Conversation {
    /// Refuses what the budget does not let begin, while the last run is not over: it is cancelled only for what may begin.
    /// What that run still uses until then counts when the next one begins.
    pub(super) async fn may_begin(&self, runs: &[RunSummary]) -> Result<(), ConversationError> {
        let Some(last) = runs.first() else { return Ok(()) };
        let last = load::state(&*self.runner.store, &last.run).await?;
        self.shared_budget(runs, &last).await?;
        Ok(())
    }

    /// Returns the budget of its prompts with what they have used, and refuses to begin one where nothing is left and nobody
    /// is to be asked.
    pub(super) async fn shared_budget(
        &self,
        runs: &[RunSummary],
        last: &RunState,
    ) -> Result<Option<SharedBudget>, ConversationError> {
        let known = last.start.shared_budget.clone();
        let Some(budget) = self.budget.clone().or_else(|| known.as_ref().map(|known| known.budget.clone())) else {
            return Ok(None);
        };
        let mut shared = known.clone().unwrap_or_default();
        shared.budget = budget;
        if known.is_none() {
            // The first prompt with a budget counts all before it.
            for row in runs.iter().skip(1) {
                add_up(&mut shared, &load::state(&*self.runner.store, &row.run).await?);
            }
        }
        add_up(&mut shared, last);
        let conversation = || self.id.clone();
        if shared.budget.max_money.is_some() {
            let own = self.runner.prices.as_ref().map(|prices| prices.currency.as_str());
            let what = match (&shared.unpriced, shared.currency.as_deref(), own) {
                (Some(model), _, _) => Some(format!("nobody knows what `{model}` has cost in it")),
                (None, Some(counted), Some(own)) if counted != own => {
                    Some(format!("it counts in {counted}, and this runner's prices are in {own}"))
                }
                _ => None,
            };
            if let Some(what) = what {
                return Err(ConversationError::Prices { conversation: conversation(), what });
            }
        }
        match shared.spent().filter(|_| shared.budget.ask.is_none()) {
            Some(kind) => Err(ConversationError::Spent {
                conversation: conversation(),
                kind,
                limit: shared.limit(kind).unwrap_or_default(),
                used: shared.used.of(kind),
            }),
            None => Ok(Some(shared)),
        }
    }
}
