//! Costs in words.

use positronic_core::projection::timeline::Timeline;
use positronic_core::projection::{Cost, Costs, Counted};

use super::figures::many;

/// Renders a run's cost, with its price table and unpriced answers.
pub(crate) fn cost_line(costs: &Costs) -> String {
    let total = costs.total();
    let counted = match costs.counted() {
        Some(Counted { currency, spent, .. }) if spent.known != total.known || currency != costs.currency => {
            let some = if spent.unpriced == 0 {
                String::new()
            } else {
                format!(" for {}", many(spent.calls - spent.unpriced, "answer"))
            };
            format!("; {} {currency}{some} at the time of the answers, which its limits count", spent.known)
        }
        _ => String::new(),
    };
    current_cost(costs) + &counted
}

/// Renders the cost by the price table, with unpriced answers.
pub(crate) fn current_cost(costs: &Costs) -> String {
    let total = costs.total();
    let unknown = || format!("unknown price of {} ({})", many(total.unpriced, "answer"), costs.unpriced().join(", "));
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

/// Renders what a run has cost so far.
pub(crate) fn cost(timeline: &Timeline) -> String {
    let currency = timeline.costs.as_ref().map_or("", |costs| costs.currency.as_str());
    let spent = timeline.spent();
    match spent.total() {
        Cost::Known(cost) if spent.calls > 0 => format!("cost {cost} {currency}"),
        Cost::Unknown if spent.unpriced < spent.calls => format!("cost {} {currency} and more", spent.known),
        Cost::Known(_) | Cost::Unknown => "cost unknown".to_owned(),
    }
}
