//! Limits in words: questions for more, usage of budgets, and budgets.

use positronic_core::record::{Budget, BudgetRequest, LimitKind, SharedBudget};

use super::figures::{amount, money, used_of};

/// Describes a limit question, and whether the limit is the conversation's; money has its currency if known.
pub(crate) fn limit_question(request: &BudgetRequest, currency: Option<&str>) -> String {
    let BudgetRequest { kind, limit, used, shared, .. } = *request;
    let whose = if shared { " for the conversation" } else { "" };
    if kind == LimitKind::Money && currency.is_none() {
        return format!("asks for more money{whose}: {} used, {} allowed", money(used, None), money(limit, None));
    }
    format!("asks for more {}{whose}: {} used", kind.noun(), used_of(kind, used, limit, currency))
}

/// The kinds of a budget's limits, in display order.
const LIMITED: [LimitKind; 4] = [LimitKind::Money, LimitKind::Tokens, LimitKind::Iterations, LimitKind::Time];

/// Renders the usage of a conversation's budget including grants, or `None` without a limit. `currency` applies to money
/// before the first payment.
pub(crate) fn budget_usage(shared: &SharedBudget, currency: Option<&str>) -> Option<String> {
    let currency = shared.currency.as_deref().or(currency);
    let used = |kind| Some(used_of(kind, shared.used.of(kind), shared.limit(kind)?, currency));
    let used: Vec<String> = LIMITED.into_iter().filter_map(used).collect();
    if used.is_empty() {
        return None;
    }
    let limits_money = shared.budget.max_money.is_some();
    let uncounted = match (&shared.unpriced, &shared.foreign) {
        (Some(model), _) if limits_money => format!("; the cost of {model} is unknown"),
        (None, Some(foreign)) if limits_money => format!("; payments in {foreign} are not included"),
        _ => String::new(),
    };
    Some(format!("{} used{uncounted}", used.join(", ")))
}

/// Renders a budget's limits, or `None` without a limit.
pub(crate) fn budget_limits(budget: &Budget, currency: Option<&str>) -> Option<String> {
    let allowed = LIMITED.into_iter().filter_map(|kind| Some(amount(kind, budget.limit(kind)?, currency)));
    let allowed: Vec<String> = allowed.collect();
    if allowed.is_empty() { None } else { Some(allowed.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: LimitKind, limit: u64, used: u64) -> BudgetRequest {
        BudgetRequest { kind, limit, used, shared: false, expires: None }
    }

    #[test]
    fn question_names_the_conversations_limit() {
        let (own, shared) = (
            limit_question(&request(LimitKind::Iterations, 3, 3), None),
            limit_question(&BudgetRequest { shared: true, ..request(LimitKind::Iterations, 3, 3) }, None),
        );
        assert!(own.starts_with("asks for more iterations: "), "{own}");
        assert!(shared.starts_with("asks for more iterations for the conversation: "), "{shared}");
    }

    #[test]
    fn requested_money_shows_its_currency_if_known() {
        let asked = |currency| limit_question(&request(LimitKind::Money, 300_000_000, 330_000_000), currency);

        assert_eq!(asked(Some("EUR")), "asks for more money: 0.33 of 0.30 EUR used");
        assert_eq!(asked(None), "asks for more money: 0.33 used, 0.30 allowed");
    }
}
