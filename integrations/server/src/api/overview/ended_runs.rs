//! Sums over groups of runs that are over.

use std::collections::BTreeMap;

use positronic_core::record::{Money, Status, Timestamp, Usage};
use positronic_core::store::EndedRuns;
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::sums::{CostSum, TokenSum};

/// The time during which runs were running and claimed by a worker: of all that have a time, the middle one and the one that
/// 95 of 100 do not exceed.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(super) struct ActiveTime {
    /// Microseconds.
    p50: u64,
    /// Microseconds.
    p95: u64,
}

/// What runs that are over come to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct RunsSum {
    completed: u64,
    failed: u64,
    cancelled: u64,
    /// What they have cost from their beginning on, by currency.
    costs: Vec<CostSum>,
    /// How many of them have a known cost.
    priced: u64,
    /// How many of them have a cost that is not known in full.
    partly_priced: u64,
    /// Their tokens from their beginning on.
    tokens: TokenSum,
    /// `null` if no active time is known.
    active: Option<ActiveTime>,
}

/// Adds up groups of runs that are over.
#[derive(Debug, Default)]
pub(super) struct RunsFold<'a> {
    counts: [u64; 3],
    costs: BTreeMap<&'a str, Money>,
    priced: u64,
    partial: u64,
    usage: Usage,
    active: Vec<u64>,
    pub(super) last_completed: Option<Timestamp>,
}

impl<'a> RunsFold<'a> {
    pub(super) fn add(&mut self, group: &'a EndedRuns) {
        let [completed, failed, cancelled] = &mut self.counts;
        match group.status {
            Status::Completed => {
                *completed += group.runs;
                self.last_completed = self.last_completed.max(Some(group.last));
            }
            Status::Failed => *failed += group.runs,
            Status::Cancelled => *cancelled += group.runs,
            Status::Running | Status::Waiting | Status::Paused => {}
        }
        if let Some(currency) = group.currency.as_deref() {
            *self.costs.entry(currency).or_default() += group.cost;
            self.priced += group.runs;
        }
        self.partial += group.partial;
        self.usage += group.usage;
        self.active.extend_from_slice(&group.active);
    }

    /// Returns the number of the runs.
    pub(super) fn runs(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the largest cost in any currency.
    pub(super) fn largest_cost(&self) -> Money {
        self.costs.values().copied().max().unwrap_or_default()
    }

    pub(super) fn sum(mut self) -> RunsSum {
        let [completed, failed, cancelled] = self.counts;
        let (p50, p95) = (quantile(&mut self.active, 50), quantile(&mut self.active, 95));
        RunsSum {
            completed,
            failed,
            cancelled,
            costs: self.costs.iter().map(|(currency, amount)| CostSum::new(currency, *amount)).collect(),
            priced: self.priced,
            partly_priced: self.partial,
            tokens: self.usage.into(),
            active: p50.zip(p95).map(|(p50, p95)| ActiveTime { p50, p95 }),
        }
    }
}

/// Returns the smallest value that so many of a hundred values do not exceed; `None` without values. Their order changes.
fn quantile(values: &mut [u64], percent: usize) -> Option<u64> {
    let rank = (values.len() * percent).div_ceil(100).checked_sub(1)?;
    Some(*values.select_nth_unstable(rank).1)
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantile_is_the_nearest_rank() {
        let mut values: Vec<u64> = (1..=20).rev().collect();

        assert_eq!(quantile(&mut values, 50), Some(10));
        assert_eq!(quantile(&mut values, 95), Some(19));
        assert_eq!(quantile(&mut [7], 95), Some(7));
        assert_eq!(quantile(&mut [], 50), None);
    }
}
