//! Values of flags that are more than a text.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use positronic_core::record::Status;
use serde_json::Value;

/// Reads a run's status.
pub(super) fn status() -> impl TypedValueParser<Value = Status> {
    let words = PossibleValuesParser::new(Status::ALL.map(Status::as_str));
    words.map(|word| Status::ALL.into_iter().find(|status| status.as_str() == word).unwrap_or(Status::Running))
}

/// Reads an age: `30s`, `10m`, `12h`, `2d`, `3w`.
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

/// Reads JSON.
pub(super) fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        assert_eq!(age("2d"), Ok(Duration::from_hours(48)));
        assert_eq!(age("90s"), Ok(Duration::from_secs(90)));
        for wrong in ["", "d", "2", "2y", "-1d", "1.5h", "99999999999999999999w"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}
