//! The remaining budget of a conversation, computed before its next run begins.

use std::sync::Arc;

use super::conversation::Conversation;
use super::error::ConversationError;
use crate::machine::{RunState, add_up};
use crate::prices::PriceTable;
use crate::projection::{CallCost, Cost, Costs};
use crate::record::{Budget, Event, EventKind, Money, RunSummary, Seq, SharedBudget};
use crate::runner::worker::load;
use crate::store::{EventStore, RunFilter, StoreError};

/// Adds up the usage of a conversation's runs, of which `last` is the state of the last one.
pub(super) async fn standing(
    store: &dyn EventStore,
    conversation: &str,
    last: &RunState,
    instead: Option<&Budget>,
) -> Result<Option<SharedBudget>, StoreError> {
    let known = last.start.shared_budget.as_ref();
    let Some(budget) = instead.or(known.map(|known| &known.budget)) else { return Ok(None) };
    let mut shared = SharedBudget { budget: budget.clone(), ..known.cloned().unwrap_or_default() };
    if known.is_none() {
        // The first run with a budget has counted all runs before it.
        let runs = store.runs(&RunFilter::builder().conversation(conversation).build()).await?;
        for row in runs.iter().skip(1) {
            add_up(&mut shared, &load::state(store, &row.run).await?);
        }
    }
    add_up(&mut shared, last);
    Ok(Some(shared))
}

impl Conversation {
    /// Checks the budget before the open run is cancelled for a message. The rest of that run's usage counts when
    /// the next one begins.
    pub(super) async fn may_begin(&self, last: &RunSummary) -> Result<(), ConversationError> {
        let last = load::state(&*self.runner.store, &last.run).await?;
        self.shared_budget(&last).await?;
        Ok(())
    }

    /// Returns the budget with its usage, or refuses to begin a run if nothing is left and no person is asked for
    /// more.
    pub(super) async fn shared_budget(&self, last: &RunState) -> Result<Option<SharedBudget>, ConversationError> {
        let Some(mut shared) = standing(&*self.runner.store, &self.id, last, self.budget.as_ref()).await? else {
            return Ok(None);
        };
        let conversation = || self.id.clone();
        if shared.budget.max_money.is_some()
            && let Some(what) = self.unknown_cost(&mut shared).await?
        {
            return Err(ConversationError::Prices { conversation: conversation(), what });
        }
        match shared.spent().filter(|_| shared.budget.ask.is_none()) {
            Some(kind) => Err(ConversationError::Spent {
                conversation: conversation(),
                kind,
                limit: shared.limit(kind).unwrap_or_default(),
                used: shared.used.of(kind),
                currency: shared.currency,
            }),
            None => Ok(Some(shared)),
        }
    }

    /// Computes with the runner's current prices the cost of answers that had no price or were paid in another
    /// currency, and returns what stays unknown.
    async fn unknown_cost(&self, shared: &mut SharedBudget) -> Result<Option<String>, ConversationError> {
        let prices = self.runner.models.prices.as_ref();
        if let (Some(counted), Some(prices)) = (&shared.currency, prices)
            && *counted != prices.currency
        {
            return Ok(Some(format!("it counts in {counted}, and this runner's prices are in {}", prices.currency)));
        }
        let unknown = match (&shared.unpriced, &shared.foreign) {
            (None, None) => return Ok(None),
            (Some(model), _) => format!("the cost of `{model}` in it is unknown"),
            (None, Some(foreign)) => format!("a part of it was paid in {foreign} and is not in the sum"),
        };
        let Some(prices) = prices else {
            return Ok(Some(format!("{unknown}, and this runner has no prices; give it a table that has one for it")));
        };
        let mut repriced = Money::default();
        for row in self.runs().await? {
            let log = self.runner.store.read(&row.run, Seq(0), usize::MAX).await?;
            let costs = Costs::of(log.iter().map(|event| &**event), prices);
            // The usage of a run in another currency is not in the sum.
            let is_counted = costs.limits_in.as_ref() == Some(&prices.currency);
            for call in &costs.calls {
                match (&call.counted, call.cost) {
                    (Some(charge), _) if charge.currency == prices.currency => {
                        repriced += if is_counted { Money::default() } else { charge.amount };
                    }
                    (_, Cost::Known(cost)) => repriced += cost,
                    (_, Cost::Unknown) => return Ok(Some(without_price(call, prices))),
                }
            }
            // A run that began with every cost known has settled those before it.
            let is_known = |known: &SharedBudget| known.unpriced.is_none() && known.foreign.is_none();
            if log.first().and_then(known_before).is_some_and(is_known) {
                break;
            }
        }
        shared.used.money += repriced;
        shared.currency = Some(prices.currency.clone());
        (shared.unpriced, shared.foreign) = (None, None);
        Ok(None)
    }
}

/// Returns the shared budget in a run's first event.
fn known_before(first: &Arc<Event>) -> Option<&SharedBudget> {
    let EventKind::BrainStart(begun) = &first.kind else { return None };
    begun.start.as_ref()?.shared_budget.as_ref()
}

fn without_price(call: &CallCost, prices: &PriceTable) -> String {
    let why = match call.usage.total() {
        0 => "an answer has no token counts; limit something else".to_owned(),
        _ => format!("the prices of {} have none for it; give the runner a table that has one", prices.as_of),
    };
    format!("the cost of `{}` in it is unknown: {why}", call.model)
}
