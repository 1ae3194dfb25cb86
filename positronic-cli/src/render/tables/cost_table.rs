//! The table of costs over runs.

use positronic_core::projection::{Cost, Spent};

use crate::render::figures::{count, money};
use crate::render::{Table, one_line};

/// The sum of a group: its values, and what its answers cost.
#[derive(Debug)]
pub(crate) struct CostRow {
    pub(crate) key: Vec<String>,
    pub(crate) runs: u64,
    pub(crate) spent: Spent,
}

/// Renders sums as a table of a given width. A sum that lacks answers with an unknown cost says how many.
pub(crate) fn cost_table(keys: &[&str], rows: &[CostRow], currency: &str, columns: usize) -> String {
    let keys: Vec<String> = keys.iter().map(|key| key.to_uppercase()).collect();
    let heads: Vec<&str> =
        keys.iter().map(String::as_str).chain(["RUNS", "ANSWERS", "INPUT", "OUTPUT", "COST"]).collect();
    let cells = rows.iter().map(|row| {
        let key = (0..keys.len()).map(|index| row.key.get(index).map_or_else(String::new, |value| one_line(value)));
        let spent = &row.spent;
        let figures = [row.runs, spent.calls, spent.usage.input, spent.usage.output].map(count);
        key.chain(figures).chain([cost(spent, currency)]).collect()
    });
    let mut table = Table::new(&heads, cells, columns);
    // Tokens are dropped first in a narrow terminal.
    table.hide(&[keys.len() + 2, keys.len() + 3, keys.len(), keys.len() + 1]);
    table.to_string()
}

fn cost(spent: &Spent, currency: &str) -> String {
    let known = money(spent.known.nanos(), Some(currency));
    match spent.total() {
        Cost::Known(_) => known,
        Cost::Unknown if spent.unpriced == spent.calls => "unknown".to_owned(),
        Cost::Unknown => format!("{known} and {} unknown", count(spent.unpriced)),
    }
}
