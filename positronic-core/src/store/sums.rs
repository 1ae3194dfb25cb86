//! What the runs of a list come to.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::record::{Money, RunSummary, Usage};

/// The number of runs, their tokens and their costs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RunSums {
    /// The number of runs.
    pub runs: u64,
    /// Their tokens: only those of requests, of answers, and from caches.
    pub usage: Usage,
    /// Their known costs by currency.
    pub costs: BTreeMap<Arc<str>, Money>,
    /// How many of them have a cost that is not known in full.
    pub partial: u64,
}

impl RunSums {
    /// Adds a run.
    pub fn add(&mut self, row: &RunSummary) {
        let cost = row.cost.as_ref();
        let known = cost.and_then(|cost| Some((&**cost.currency.as_ref()?, cost.known)));
        self.add_runs(1, row.usage, known, u64::from(row.is_partly_priced()));
    }

    /// Adds runs with their tokens, their known cost, and the number of those whose cost is not known in full.
    pub fn add_runs(&mut self, runs: u64, usage: Usage, known: Option<(&str, Money)>, partial: u64) {
        self.runs = self.runs.saturating_add(runs);
        let Usage { input, output, cached, .. } = usage;
        self.usage += Usage { input, output, cached, ..Usage::default() };
        self.partial = self.partial.saturating_add(partial);
        let Some((currency, amount)) = known else { return };
        match self.costs.get_mut(currency) {
            Some(sum) => *sum += amount,
            None => _ = self.costs.insert(currency.into(), amount),
        }
    }
}
