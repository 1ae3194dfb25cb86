//! Parsers for the values of flags.

use std::num::{IntErrorKind, ParseIntError};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use positronic_core::record::{LimitKind, Money, Status, Timestamp};

use crate::cli::limits::read;

/// Parses the status of a finished run.
pub(super) fn over() -> impl TypedValueParser<Value = Status> {
    statuses(Status::ALL.into_iter().filter(|status| status.is_over()).collect())
}

/// Parses a run's status.
pub(super) fn status() -> impl TypedValueParser<Value = Status> {
    statuses(Status::ALL.into())
}

fn statuses(known: Vec<Status>) -> impl TypedValueParser<Value = Status> {
    let words = PossibleValuesParser::new(known.into_iter().map(Status::as_str));
    words.map(|word| Status::ALL.into_iter().find(|status| status.as_str() == word).unwrap_or(Status::Running))
}

/// Parses an amount of money, as `--more` does.
pub(super) fn money(text: &str) -> Result<Money, String> {
    read(LimitKind::Money, text).map(|more| more.money)
}

/// Parses a number of tokens: `20000`, `20k`.
pub(super) fn tokens(text: &str) -> Result<u64, String> {
    read(LimitKind::Tokens, text).map(|more| more.tokens)
}

/// Parses the maximum tokens of an answer.
pub(super) fn output_tokens(text: &str) -> Result<u32, String> {
    let tokens = tokens(text)?;
    u32::try_from(tokens).map_err(|_| format!("expected at most {} tokens", u32::MAX))
}

/// Parses a number of iterations.
pub(super) fn iterations(text: &str) -> Result<u64, String> {
    read(LimitKind::Iterations, text).map(|more| more.iterations)
}

/// Parses a duration: `90s`, `10m`, `2h`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    read(LimitKind::Time, text).map(|more| more.time)
}

/// Parses an age: `30s`, `10m`, `12h`, `2d`, `3w`.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    let expected = || "expected a number and s, m, h, d or w, such as 2d".to_owned();
    let unit = text.chars().next_back().ok_or_else(expected)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return Err(expected()),
    };
    let number = text.strip_suffix(unit).unwrap_or_default();
    let number: u64 = number.parse().map_err(|_| expected())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(expected)
}

/// Parses a non-negative number; the error states the valid range.
pub(super) fn number(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => format!("expected a whole number, at most {}", u64::MAX),
        _ => "expected a whole number, at least 0".to_owned(),
    })
}

/// Parses a maximum.
pub(super) fn count(text: &str) -> Result<usize, String> {
    let count = number(text)?;
    usize::try_from(count).map_err(|_| format!("expected a whole number, at most {}", usize::MAX))
}

/// Parses a positive maximum.
pub(super) fn most(text: &str) -> Result<usize, String> {
    match count(text) {
        Ok(most) if most > 0 => Ok(most),
        Err(expected) if expected.contains("at most") => Err(expected),
        Ok(_) | Err(_) => Err("expected a whole number, at least 1".to_owned()),
    }
}

/// Parses a text that is not blank.
pub(super) fn text(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Parses a name: not empty, one line.
pub(super) fn name(text: &str) -> Result<String, String> {
    crate::cli::names::sound("it", text).map(|()| text.to_owned())
}

/// Parses a message that is not blank.
pub(super) fn message(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("the message is empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Returns the moment that lies `age` before `now`.
pub(crate) fn earlier(now: Timestamp, age: Duration) -> Timestamp {
    Timestamp(now.0.saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_page_is_refused() {
        assert_eq!((most("1"), most("20")), (Ok(1), Ok(20)));
        for wrong in ["0", "-1", "many", ""] {
            assert_eq!(most(wrong).unwrap_err(), "expected a whole number, at least 1", "{wrong}");
        }
        let too_large = "99999999999999999999";
        for expected in [number(too_large).unwrap_err(), most(too_large).unwrap_err()] {
            assert_eq!(expected, "expected a whole number, at most 18446744073709551615");
        }
    }

    #[test]
    fn age_is_a_number_and_a_unit() {
        assert_eq!(age("2d"), Ok(Duration::from_hours(48)));
        assert_eq!(age("90s"), Ok(Duration::from_secs(90)));
        for wrong in ["", "d", "2", "2y", "-1d", "1.5h", "99999999999999999999w"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}
