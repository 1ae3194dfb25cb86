//! Parsers for the values of flags.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use positronic_core::record::{LimitKind, Money, Status, Timestamp};

use crate::cli::limits::read;

/// Parses the status of a finished run.
pub(super) fn over() -> impl TypedValueParser<Value = Status> {
    let known = Status::ALL.into_iter().filter(|status| status.is_over());
    let words = PossibleValuesParser::new(known.map(Status::as_str));
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

/// Parses a number of entries.
pub(super) fn limit(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a whole number from 1 on".to_owned())
}

/// Parses a text that is not blank.
pub(super) fn text(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Parses a name: not empty, one line.
pub(super) fn name(text: &str) -> Result<String, String> {
    crate::cli::check_name("it", text).map(|()| text.to_owned())
}

/// Parses the id of a new run.
pub(super) fn run_id(text: &str) -> Result<String, String> {
    crate::cli::valid_names::check_run_id(text).map(|()| text.to_owned())
}

/// Returns the moment that lies `age` before `now`.
pub(crate) fn earlier(now: Timestamp, age: Duration) -> Timestamp {
    Timestamp(now.0.saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_at_least_one() {
        assert_eq!(limit("7").unwrap().get(), 7);
        for wrong in ["0", "-1", "", "x", "1.5", "99999999999999999999"] {
            assert_eq!(limit(wrong).unwrap_err(), "expected a whole number from 1 on", "{wrong}");
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
