//! Model prices: the table, and the currency of a run.

use std::path::Path;

use positronic_core::prices::PriceTable;
use positronic_core::record::BudgetRequest;
use positronic_core::record::{LimitKind, Pending, PendingKind, RunId, Seq};
use positronic_core::runner::Client;
use positronic_core::store::StoreError;

use crate::app::files::read_table;
use crate::app::{Failure, Settings};

/// The format of a price table, by example.
pub(crate) const PRICE_TABLE: &str = "`as_of = \"2026-11-01\"` and, under `[prices]`, lines such as `\"openai/gpt-5\" = \
                                      { input = 1.25, output = 10 }`";

/// Reads the named table, else the environment's, else the bundled one.
pub(crate) fn price_table(named: Option<&Path>, settings: &Settings) -> Result<PriceTable, Failure> {
    Ok(given_prices(named, settings)?.unwrap_or_else(PriceTable::bundled))
}

/// Reads the named table, else the environment's, if there is one. A file with the extension `.json` is JSON, any
/// other is TOML.
pub(crate) fn given_prices(named: Option<&Path>, settings: &Settings) -> Result<Option<PriceTable>, Failure> {
    named.or(settings.prices.as_deref()).map(|path| read_table(path, "price table", PRICE_TABLE)).transpose()
}

/// Returns the currency of a run's money limits, for a limit question.
pub(crate) async fn currency(client: &Client, run: &RunId, pending: &Pending) -> Result<Option<String>, StoreError> {
    if !matches!(pending.kind, PendingKind::Budget(BudgetRequest { kind: LimitKind::Money, .. })) {
        return Ok(None);
    }
    let log = client.events(run, Seq(0)).await?;
    Ok(log.iter().find_map(|event| event.currency()).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use positronic_core::record::Usage;

    use super::*;

    #[test]
    fn table_with_a_price_for_long_requests_is_read_from_toml() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prices.toml");
        let price = "{ input = 1.25, output = 10, long = { above = 200_000, price = { input = 2.50, output = 15 } } }";
        fs::write(&path, format!("as_of = \"2026-11-01\"\n[prices]\n\"a/b\" = {price}\n")).unwrap();

        let table = price_table(Some(&path), &Settings::default()).unwrap();

        let cost = |input| table.prices["a/b"].of(&Usage { input, ..Usage::default() }).to_string();
        assert_eq!([cost(200_000), cost(400_000)], ["0.25", "1"]);
    }
}
