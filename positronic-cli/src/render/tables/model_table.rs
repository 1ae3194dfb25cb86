//! The tables of providers and of checked models.

use crate::render::{Table, one_line};

const PROVIDER_HEADS: [&str; 4] = ["PROVIDER", "KEY", "DEFAULT MODEL", "BASE URL"];
const CHECK_HEADS: [&str; 5] = ["MODEL", "RESULT", "TIME", "TOKENS", "COST"];

/// Columns that are dropped in this order in a narrow terminal.
const LESS_OF_PROVIDERS: [usize; 2] = [3, 2];
const LESS_OF_CHECKS: [usize; 2] = [3, 2];

/// A provider in words.
#[derive(Debug)]
pub(crate) struct ProviderRow {
    pub(crate) provider: String,
    /// Where its key comes from.
    pub(crate) key: String,
    pub(crate) default_model: String,
    pub(crate) base_url: String,
    /// The tiers that it answers, with their models.
    pub(crate) tiers: String,
}

/// A checked model in words.
#[derive(Debug)]
pub(crate) struct CheckRow {
    pub(crate) model: String,
    pub(crate) result: &'static str,
    pub(crate) time: String,
    pub(crate) tokens: String,
    pub(crate) cost: String,
    /// Why it failed.
    pub(crate) why: String,
}

/// Renders providers as a table of a given width.
pub(crate) fn provider_table(rows: &[ProviderRow], columns: usize) -> String {
    let cells = rows
        .iter()
        .map(|row| [&row.provider, &row.key, &row.default_model, &row.base_url].map(|cell| one_line(cell)).into());
    let mut table = Table::new(&PROVIDER_HEADS, cells, columns);
    table.hide(&LESS_OF_PROVIDERS);
    table.rest("USED BY", rows.iter().map(|row| one_line(&row.tiers)));
    table.to_string()
}

/// Renders checked models as a table of a given width.
pub(crate) fn check_table(rows: &[CheckRow], columns: usize) -> String {
    let cells =
        rows.iter().map(|row| [row.model.as_str(), row.result, &row.time, &row.tokens, &row.cost].map(one_line).into());
    let mut table = Table::new(&CHECK_HEADS, cells, columns);
    table.hide(&LESS_OF_CHECKS);
    table.to_string()
}
