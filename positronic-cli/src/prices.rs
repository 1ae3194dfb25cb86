//! What models cost: the table, found and read, and a run's cost in words.

use std::fs;
use std::path::Path;

use positronic_core::projection::{Cost, Costs};
use positronic_core::record::PriceTable;

use crate::display::figures::many;
use crate::failure::Failure;
use crate::ui::Ui;

/// Reads the table that is named, else the environment's, else takes the bundled one. A file whose name ends with `.json` is
/// JSON, every other one TOML.
pub(crate) fn prices(named: Option<&Path>, ui: &Ui) -> Result<PriceTable, Failure> {
    let Some(path) = named.or(ui.settings.prices.as_deref()) else { return Ok(PriceTable::bundled()) };
    let text = fs::read_to_string(path);
    let text = text.map_err(|source| Failure::File { path: path.to_owned(), doing: "cannot be read", source })?;
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    let table = if is_json {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else {
        toml::from_str(&text).map_err(|error| error.to_string())
    };
    table.map_err(|reason| Failure::Prices { path: path.to_owned(), reason: reason.trim_end().to_owned() })
}

/// Writes what a run cost, in a few words.
pub(crate) fn total(costs: &Costs) -> String {
    let total = costs.total();
    match total.total() {
        Cost::Known(cost) => format!("cost {cost} {}", costs.currency),
        Cost::Unknown if total.unpriced == total.calls => "cost unknown".to_owned(),
        Cost::Unknown => format!("cost {} {} and more", total.known, costs.currency),
    }
}

/// Writes what a run cost, by which prices, and what has none.
pub(crate) fn told(costs: &Costs) -> String {
    let total = costs.total();
    let unknown = || {
        let models = costs.unpriced().join(", ");
        format!("unknown price of {} ({models})", many(total.unpriced, "answer"))
    };
    let known = format!("{} {}", total.known, costs.currency);
    let as_of = format!("by the prices of {}", costs.as_of);
    match total.total() {
        Cost::Known(_) => format!("cost {known}, {as_of}"),
        Cost::Unknown if total.unpriced == total.calls => format!("cost: {}", unknown()),
        Cost::Unknown => {
            let priced = many(total.calls - total.unpriced, "answer");
            format!("cost {known} for {priced}, {as_of}; {}", unknown())
        }
    }
}
