//! Usage and cost of several runs together.

use indexmap::{IndexMap, IndexSet};
use serde::Serialize;

use super::cost::{Costs, Spent};
use crate::prices::PriceTable;
use crate::record::{Event, EventKind, RunId};

/// The usage and cost of several runs, such as those of a conversation.
///
/// | number | where it is found |
/// |---|---|
/// | an answer of a model | [`Costs::calls`](Costs), by event number |
/// | an iteration, or a question of a step | [`Costs::iterations`], by path |
/// | a prompt: a loop without what is below it | [`Costs::prompt`], by the loop's path; its tokens also in [`Prompt::usage`] |
/// | a loop or a nested brain with all below it | [`Costs::within`], by its path |
/// | a run | [`Costs::total`]; its tokens also in [`RunSummary::usage`] |
/// | a conversation | [`Bill::total`], of [`Conversations::bill`] |
/// | what limits of money have counted | [`Costs::counted`]; as of now in the frames of [`RunState`] |
///
/// [`Prompt::usage`]: crate::record::Prompt::usage
/// [`RunSummary::usage`]: crate::record::RunSummary::usage
/// [`Conversations::bill`]: ../runner/struct.Conversations.html#method.bill
/// [`RunState`]: crate::machine::RunState
///
/// ```
/// use positronic_core::projection::Bill;
/// use positronic_core::prices::PriceTable;
///
/// let prices = PriceTable::bundled();
/// let mut bill = Bill::new(&prices);
/// # let logs: Vec<(positronic_core::record::RunId, Vec<positronic_core::record::Event>)> = Vec::new();
/// for (run, log) in &logs {
///     bill.add(run.clone(), log, &prices);
/// }
/// assert_eq!(bill.total().calls, 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Bill {
    /// The currency of all amounts.
    pub currency: String,
    /// The day of the prices.
    pub as_of: String,
    /// The usage and cost of each run, in order of addition.
    pub runs: IndexMap<RunId, Costs>,
}

impl Bill {
    /// Creates an empty bill with a price table.
    #[must_use]
    pub fn new(prices: &PriceTable) -> Self {
        Self { currency: prices.currency.clone(), as_of: prices.as_of.clone(), runs: IndexMap::new() }
    }

    /// Adds a run by its log. Events that a fork shares with a run on the bill are counted once.
    pub fn add<'a>(&mut self, run: RunId, log: impl IntoIterator<Item = &'a Event>, prices: &PriceTable) {
        let mut shared = None;
        let mut events = log.into_iter().inspect(|event| {
            if let EventKind::BrainStart(start) = &event.kind
                && let Some((origin, at)) = start.start.as_ref().and_then(|start| start.forked_from.as_ref())
                && self.runs.contains_key(origin)
            {
                shared = Some(*at);
            }
        });
        let mut costs = Costs::of(&mut events, prices);
        drop(events);
        costs.calls.retain(|call| shared.is_none_or(|at| call.seq > at));
        self.runs.insert(run, costs);
    }

    /// Sums up all runs.
    #[must_use]
    pub fn total(&self) -> Spent {
        self.runs.values().flat_map(|costs| &costs.calls).collect()
    }

    /// Lists the models whose answers have an unknown cost, each once.
    #[must_use]
    pub fn unpriced(&self) -> Vec<&str> {
        self.runs.values().flat_map(Costs::unpriced).collect::<IndexSet<_>>().into_iter().collect()
    }
}
