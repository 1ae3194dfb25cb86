//! Amounts of limits: parsing grants, and suggesting them.

use std::time::Duration;

use positronic_core::record::{Amounts, LimitKind, Money};

/// Parses an amount: `20000` or `20k` tokens, `10` iterations, `2.50` of money, `90s`, `10m` or `2h` of active time.
///
/// # Errors
///
/// The expected format.
pub(crate) fn read(kind: LimitKind, text: &str) -> Result<Amounts, String> {
    let text = text.trim().replace('_', "");
    let amount = match kind {
        LimitKind::Tokens => tokens(&text).map(Amounts::tokens),
        LimitKind::Iterations => text.parse().ok().map(Amounts::iterations),
        LimitKind::Money => text.parse().ok().map(Amounts::money),
        LimitKind::Time => time(&text).map(Amounts::time),
        LimitKind::Failures => None,
    };
    // A duration of as many microseconds overflows.
    let is_valid = |more: &Amounts| (1..u64::MAX).contains(&more.of(kind));
    amount.filter(is_valid).ok_or_else(|| format!("expected {}", expected(kind)))
}

/// Parses a number of tokens, also in thousands or millions: `1500`, `1.5k`, `2M`.
fn tokens(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1_000_000)),
    };
    if unit == 1 {
        return digits.parse().ok();
    }
    let number = u128::from(digits.parse::<Money>().ok()?.nanos()) * unit;
    let one = u128::from(ONE.nanos());
    if number.is_multiple_of(one) { u64::try_from(number / one).ok() } else { None }
}

/// One, as a fixed-point number.
const ONE: Money = Money::of_nanos(1_000_000_000);

/// Parses a duration; the default unit is seconds.
fn time(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match text.get(digits.len()..)? {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(seconds).map(Duration::from_secs)
}

/// Describes the expected format of an amount.
pub(crate) const fn expected(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::Tokens => "a positive number of tokens, such as 20000 or 20k",
        LimitKind::Iterations => "a positive number of iterations, such as 10",
        LimitKind::Money => "a positive amount of money without its currency, such as 2.50",
        LimitKind::Time => "a positive time, such as 90s, 10m or 2h",
        LimitKind::Failures => "nothing: failures are not granted",
    }
}

/// Suggests a grant: as much again as was used so far, as a round number, so that the next iteration does not ask
/// again.
pub(crate) fn suggested(kind: LimitKind, limit: u64, used: u64) -> String {
    let more = limit.max(used.saturating_mul(2).saturating_sub(limit)).max(1);
    match kind {
        LimitKind::Tokens | LimitKind::Iterations | LimitKind::Failures => rounded(more).to_string(),
        LimitKind::Money => Money::of_nanos(rounded(more)).to_string(),
        LimitKind::Time => match Duration::from_micros(more).as_secs().saturating_add(1) {
            seconds @ ..60 => format!("{}s", rounded(seconds)),
            seconds => format!("{}m", rounded(seconds.div_ceil(60))),
        },
    }
}

/// Rounds up to 1, 2, 3 or 5 times a power of ten.
fn rounded(number: u64) -> u64 {
    let mut unit = 1_u64;
    while number / unit >= 10 {
        unit = unit.saturating_mul(10);
    }
    [1, 2, 3, 5, 10]
        .into_iter()
        .map(|step| unit.saturating_mul(step))
        .find(|round| *round >= number)
        .unwrap_or(u64::MAX)
}

/// Returns a round grant of money with which the work can continue.
pub(crate) fn enough_money(limit: u64, used: u64) -> u64 {
    rounded(used.saturating_sub(limit).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amount_is_parsed_in_the_unit_of_its_limit() {
        for (text, tokens) in [("20_000", 20_000), (" 7 ", 7), ("20k", 20_000), ("1.5k", 1_500), ("2M", 2_000_000)] {
            assert_eq!(read(LimitKind::Tokens, text).unwrap(), Amounts::tokens(tokens));
        }
        assert_eq!(read(LimitKind::Iterations, "10").unwrap(), Amounts::iterations(10));
        assert_eq!(read(LimitKind::Money, "2.50").unwrap(), Amounts::money("2.5".parse().unwrap()));
        for (text, seconds) in [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200)] {
            assert_eq!(read(LimitKind::Time, text).unwrap(), Amounts::time(Duration::from_secs(seconds)));
        }
        for (kind, text) in [
            (LimitKind::Tokens, "2.5"),
            (LimitKind::Tokens, "0.0001k"),
            (LimitKind::Tokens, "20,000"),
            (LimitKind::Tokens, "-20k"),
            (LimitKind::Tokens, "99999999999999999M"),
            (LimitKind::Iterations, "2k"),
            (LimitKind::Iterations, "0"),
            (LimitKind::Iterations, "99999999999999999999"),
            (LimitKind::Money, "2,5"),
            (LimitKind::Money, "2 EUR"),
            (LimitKind::Money, "0.00"),
            (LimitKind::Money, "0.0000000001"),
            (LimitKind::Money, "18446744074"),
            (LimitKind::Time, "soon"),
            (LimitKind::Time, ""),
            (LimitKind::Time, "0m"),
            (LimitKind::Time, "99999999999999"),
        ] {
            assert_eq!(read(kind, text).unwrap_err(), format!("expected {}", expected(kind)), "{text}");
        }
    }

    #[test]
    fn sufficient_money_is_a_round_amount() {
        for (limit, used, least) in [
            (300_000_000, 330_000_000, "0.05"),
            (300_000_000, 300_000_000, "0.000000001"),
            (10_000, 15_000, "0.00001"),
            (1_000_000_000, 3_456_789_012, "3"),
        ] {
            let more = enough_money(limit, used);
            assert_eq!(Money::of_nanos(more).to_string(), least);
            assert!(limit + more > used);
        }
    }

    #[test]
    fn suggestion_is_round_and_covers_as_much_work_again() {
        for (kind, limit, used, suggestion) in [
            (LimitKind::Tokens, 20, 20, "20"),
            (LimitKind::Tokens, 10_000, 10_432, "20000"),
            (LimitKind::Tokens, 100, 300, "500"),
            (LimitKind::Tokens, 0, 0, "1"),
            (LimitKind::Iterations, 3, 3, "3"),
            (LimitKind::Iterations, 4, 4, "5"),
            (LimitKind::Money, 30_000, 90_000, "0.0002"),
            (LimitKind::Money, 500_000_000, 512_345_678, "1"),
            (LimitKind::Time, 1_500_000, 9_000_000, "20s"),
            (LimitKind::Time, 60_000_000, 61_000_000, "2m"),
            (LimitKind::Time, 3_600_000_000, 3_700_000_000, "100m"),
        ] {
            let text = suggested(kind, limit, used);
            assert_eq!(text, suggestion, "{kind:?} {limit} {used}");
            let more = read(kind, &text).unwrap();
            assert!(limit + more.of(kind) >= 2 * used, "{kind:?}");
        }
        assert_eq!(suggested(LimitKind::Tokens, 7, u64::MAX), u64::MAX.to_string());
    }
}
