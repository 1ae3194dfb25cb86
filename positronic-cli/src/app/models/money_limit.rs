//! Money limits: whether the price table can enforce them.

use positronic_core::model::Model as _;
use positronic_core::record::Budget;

use crate::app::{CassetteSession, Failure, Models, PRICE_TABLE};
use crate::render::figures::many;

/// Refuses the first budget with a money limit that cannot be enforced, before the run begins; each comes with a sentence that
/// names it. Limits of loops are known when they begin.
pub(crate) fn check_enforceable(budgets: &[(&str, Option<&Budget>)], models: &Models) -> Result<(), Failure> {
    let limits_money = |budget: Option<&Budget>| budget.is_some_and(|budget| budget.max_money.is_some());
    let Some((limited, _)) = budgets.iter().find(|(_, budget)| limits_money(*budget)) else { return Ok(()) };
    let Some(prices) = &models.prices else {
        let hint = format!("name a table with --prices FILE or in POSITRONIC_PRICES: {PRICE_TABLE}");
        return Err(Failure::usage(format!("{limited}, but there is no price table")).hint(hint));
    };
    let CassetteSession::Plays(cassette) = &models.cassette else { return Ok(()) };
    let metadata = cassette.metadata();
    let unknown = metadata.iter().filter(|metadata| prices.charge(metadata).is_none());
    let (silent, unpriced): (Vec<_>, Vec<_>) = unknown.partition(|metadata| metadata.usage.total() == 0);
    if let Some(first) = unpriced.first() {
        let (as_of, name) = (&prices.as_of, cassette.name());
        let model = if first.model.is_empty() { name } else { format!("{}/{}", first.provider, first.model) };
        let message =
            format!("{limited}, but the price table of {as_of} has no price for the cassette's model `{model}`");
        return Err(Failure::usage(message).hint("add it to the table, or play the cassette without a money limit"));
    }
    if silent.is_empty() {
        return Ok(());
    }
    let silent = many(silent.len(), "answer");
    Err(Failure::usage(format!("{limited}, but the cassette lacks the token counts of {silent}"))
        .hint("play it without a money limit; a cassette of --record has the token counts of its answers"))
}
