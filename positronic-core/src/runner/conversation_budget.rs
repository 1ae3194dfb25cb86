//! What the prompts of a conversation may still use, reckoned before the next one begins.

use std::sync::Arc;

use super::conversation::{Conversation, ConversationError};
use super::{Client, load};
use crate::machine::{RunState, add_up};
use crate::projection::{CallCost, Cost, Costs};
use crate::record::{Budget, Event, EventKind, Money, PriceTable, RunSummary, Seq, SharedBudget};
use crate::store::{EventStore, StoreError};

impl Client {
    /// Returns what the prompts of a conversation may use together, with what they have used by now, one that is not over
    /// included; none where they have no budget. With `instead`, another budget stands in the place of the one that is
    /// recorded, as with [`Conversation::budget`].
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn budget(
        &self,
        conversation: &str,
        instead: Option<&Budget>,
    ) -> Result<Option<SharedBudget>, StoreError> {
        let (runs, store) = (self.conversation(conversation).await?, self.store());
        let last = match runs.first() {
            Some(last) => load::state(store, &last.run).await?,
            None => RunState::default(),
        };
        standing(store, &runs, &last, instead).await
    }
}

/// Adds up what the prompts of a conversation have used, the last one first in `runs`, with its state beside it.
async fn standing(
    store: &dyn EventStore,
    runs: &[RunSummary],
    last: &RunState,
    instead: Option<&Budget>,
) -> Result<Option<SharedBudget>, StoreError> {
    let known = last.start.shared_budget.as_ref();
    let Some(budget) = instead.or(known.map(|known| &known.budget)) else { return Ok(None) };
    let mut shared = SharedBudget { budget: budget.clone(), ..known.cloned().unwrap_or_default() };
    if known.is_none() {
        // The first prompt with a budget counts all before it.
        for row in runs.iter().skip(1) {
            add_up(&mut shared, &load::state(store, &row.run).await?);
        }
    }
    add_up(&mut shared, last);
    Ok(Some(shared))
}

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
        let Some(mut shared) = standing(&*self.runner.store, runs, last, self.budget.as_ref()).await? else {
            return Ok(None);
        };
        let conversation = || self.id.clone();
        if shared.budget.max_money.is_some()
            && let Some(what) = self.unknown_cost(runs, &mut shared).await?
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

    /// Reckons, by the prices that the runner has now, the answers that had none when they came, or were paid in another
    /// currency, and says what is still unknown.
    async fn unknown_cost(
        &self,
        runs: &[RunSummary],
        shared: &mut SharedBudget,
    ) -> Result<Option<String>, ConversationError> {
        let prices = self.runner.prices.as_deref();
        if let (Some(counted), Some(prices)) = (&shared.currency, prices)
            && *counted != prices.currency
        {
            return Ok(Some(format!("it counts in {counted}, and this runner's prices are in {}", prices.currency)));
        }
        let unknown = match (&shared.unpriced, &shared.foreign) {
            (None, None) => return Ok(None),
            (Some(model), _) => format!("nobody knows what `{model}` has cost in it"),
            (None, Some(foreign)) => format!("a part of it was paid in {foreign}, which is no part of the sum"),
        };
        let Some(prices) = prices else {
            return Ok(Some(format!("{unknown}, and this runner has no prices; give it a table that has one for it")));
        };
        let mut reckoned = Money::default();
        for row in runs {
            let log = self.runner.store.read(&row.run, Seq(0), usize::MAX).await?;
            let costs = Costs::of(log.iter().map(|event| &**event), prices);
            // Of a run that counts in another currency nothing is among what was used.
            let is_counted = costs.limits_in.as_ref() == Some(&prices.currency);
            for call in &costs.calls {
                match (&call.counted, call.cost) {
                    (Some(charge), _) if charge.currency == prices.currency => {
                        reckoned += if is_counted { Money::default() } else { charge.amount };
                    }
                    (_, Cost::Known(cost)) => reckoned += cost,
                    (_, Cost::Unknown) => return Ok(Some(without_price(call, prices))),
                }
            }
            // What was before a prompt that began with every cost known has been reckoned then.
            let is_known = |known: &SharedBudget| known.unpriced.is_none() && known.foreign.is_none();
            if log.first().and_then(known_before).is_some_and(is_known) {
                break;
            }
        }
        shared.used.money += reckoned;
        shared.currency = Some(prices.currency.clone());
        (shared.unpriced, shared.foreign) = (None, None);
        Ok(None)
    }
}

/// Returns what a run's first event says of the prompts before.
fn known_before(first: &Arc<Event>) -> Option<&SharedBudget> {
    let EventKind::BrainStart(begun) = &first.kind else { return None };
    begun.start.as_ref()?.shared_budget.as_ref()
}

fn without_price(call: &CallCost, prices: &PriceTable) -> String {
    let why = match call.usage.total() {
        0 => "an answer of it came without its tokens; give it a budget of something else".to_owned(),
        _ => format!("the prices of {} have none for it; give the runner a table that has one", prices.as_of),
    };
    format!("nobody knows what `{}` has cost in it, and {why}", call.model)
}
