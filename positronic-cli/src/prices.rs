//! What models cost: the table, found and read, and a run's cost in words.

use std::fs;
use std::path::Path;

use positronic_core::projection::{Cost, Costs, Counted};
use positronic_core::record::PriceTable;

use crate::display::figures::many;
use crate::failure::Failure;
use crate::settings::Settings;

/// Reads the table that is named, else the environment's, else takes the bundled one.
pub(crate) fn prices(named: Option<&Path>, settings: &Settings) -> Result<PriceTable, Failure> {
    Ok(given(named, settings)?.unwrap_or_else(PriceTable::bundled))
}

/// Reads the table that is named, else the environment's, if there is one. A file whose name ends with `.json` is JSON, every
/// other one TOML.
pub(crate) fn given(named: Option<&Path>, settings: &Settings) -> Result<Option<PriceTable>, Failure> {
    let Some(path) = named.or(settings.prices.as_deref()) else { return Ok(None) };
    let text = fs::read_to_string(path);
    let text = text.map_err(|source| Failure::File { path: path.to_owned(), doing: "cannot be read", source })?;
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    let table = if is_json {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else {
        toml::from_str(&text).map_err(|error| error.to_string())
    };
    table.map(Some).map_err(|reason| Failure::Prices { path: path.to_owned(), reason: reason.trim_end().to_owned() })
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
    let counted = match costs.counted() {
        Some(Counted { currency, spent, .. }) if spent.known != total.known || currency != costs.currency => {
            format!("; {} {currency} when the answers came, which is what its limits count", spent.known)
        }
        _ => String::new(),
    };
    let told = match total.total() {
        Cost::Known(_) => format!("cost {known}, {as_of}"),
        Cost::Unknown if total.unpriced == total.calls => format!("cost: {}", unknown()),
        Cost::Unknown => {
            let priced = many(total.calls - total.unpriced, "answer");
            format!("cost {known} for {priced}, {as_of}; {}", unknown())
        }
    };
    told + &counted
}
