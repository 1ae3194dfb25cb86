//! How much more a person grants: written as the limit is counted, whichever it is.

use std::time::Duration;

use positronic_core::record::{LimitKind, Money, More};

use crate::display::figures::used_of;

/// Reads an amount: `20000` of tokens, `10` rounds, `2.50` of money, `90s`, `10m` or `2h` of active time.
///
/// # Errors
///
/// What is expected instead.
pub(crate) fn read(kind: LimitKind, text: &str) -> Result<More, String> {
    // A comma may stand before thousands or before a part of one: nobody is to get ten times what was meant.
    if text.contains(',') {
        return Err(format!("expected {}, without a comma", expected(kind)));
    }
    let text = text.trim().replace('_', "");
    let expected = || format!("expected {}", expected(kind));
    let more = match kind {
        LimitKind::Tokens => More::tokens(text.parse().map_err(|_| expected())?),
        LimitKind::Rounds => More::rounds(text.parse().map_err(|_| expected())?),
        LimitKind::Money => More::money(text.parse::<Money>().map_err(|_| expected())?),
        LimitKind::Time => More::time(time(&text).ok_or_else(expected)?),
        LimitKind::Failures => return Err(expected()),
    };
    if more.of(kind) == 0 { Err(expected()) } else { Ok(more) }
}

/// Reads a length of time, in seconds where no unit is said.
pub(crate) fn time(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let seconds = match text.get(digits.len()..)? {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(seconds).map(Duration::from_secs)
}

/// Says how an amount is written.
pub(crate) const fn expected(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::Tokens => "a number of tokens, such as 20000",
        LimitKind::Rounds => "a number of rounds, such as 10",
        LimitKind::Money => "an amount of money, such as 2.50",
        LimitKind::Time => "a time, such as 90s, 10m or 2h",
        LimitKind::Failures => "nothing: failures are not granted",
    }
}

/// Writes as much as there was in the first place, as a person would write it.
pub(crate) fn same_again(kind: LimitKind, limit: u64, used: u64) -> String {
    let more = limit.max((used.saturating_sub(limit)).saturating_add(1));
    match kind {
        LimitKind::Tokens | LimitKind::Rounds | LimitKind::Failures => more.to_string(),
        LimitKind::Money => Money::of_nanos(more).to_string(),
        LimitKind::Time => format!("{}s", Duration::from_micros(more).as_secs().saturating_add(1)),
    }
}

/// Says what is asked for.
pub(crate) fn asks(kind: LimitKind, limit: u64, used: u64) -> String {
    format!("asks for more {}: used {}", kind.noun(), used_of(kind, used, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_read_as_its_limit_is_counted() {
        assert_eq!(read(LimitKind::Tokens, "20_000").unwrap(), More::tokens(20_000));
        assert_eq!(read(LimitKind::Rounds, "10").unwrap(), More::rounds(10));
        assert_eq!(read(LimitKind::Money, "2.50").unwrap(), More::money("2.5".parse().unwrap()));
        for (text, seconds) in [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200)] {
            assert_eq!(read(LimitKind::Time, text).unwrap(), More::time(Duration::from_secs(seconds)));
        }
        for (kind, text) in [
            (LimitKind::Tokens, "2.5"),
            (LimitKind::Rounds, "0"),
            (LimitKind::Money, "-1"),
            (LimitKind::Money, "0"),
            (LimitKind::Time, "soon"),
        ] {
            assert_eq!(read(kind, text).unwrap_err(), format!("expected {}", expected(kind)));
        }
        for (kind, text) in [(LimitKind::Money, "2,5"), (LimitKind::Tokens, "20,000"), (LimitKind::Time, "1,5h")] {
            assert_eq!(read(kind, text).unwrap_err(), format!("expected {}, without a comma", expected(kind)));
        }
    }

    #[test]
    fn what_is_suggested_is_enough() {
        for (kind, limit, used) in [
            (LimitKind::Tokens, 100, 110),
            (LimitKind::Tokens, 100, 300),
            (LimitKind::Rounds, 3, 3),
            (LimitKind::Money, 30_000, 90_000),
            (LimitKind::Time, 1_500_000, 9_000_000),
        ] {
            let more = read(kind, &same_again(kind, limit, used)).unwrap();
            assert!(limit + more.of(kind) > used, "{kind:?}");
        }
    }
}
