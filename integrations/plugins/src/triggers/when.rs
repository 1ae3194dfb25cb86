//! Times and durations in the words of a model.

use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};
use positronic_core::record::Timestamp;
use positronic_core::{Error, Result};

/// Parses a future time.
pub(super) fn moment(text: &str, now: Timestamp) -> Result<Timestamp> {
    let moment: jiff::Timestamp = text.trim().parse().map_err(|_| {
        Error::new(format!("`{text}` is no moment with its offset, such as 2026-03-01T09:00:00+01:00; it is {now} now"))
    })?;
    let moment = Timestamp(moment.as_microsecond());
    if moment < now {
        return Err(Error::new(format!("`{text}` has passed: it is {now} now")));
    }
    Ok(moment)
}

/// Parses a duration, with days of 24 hours.
pub(super) fn duration(text: &str) -> Result<Duration> {
    let wrong = || Error::new(format!("`{text}` is no duration, such as 10 minutes, 1 day 12 hours or 2 weeks"));
    let span: Span = text.trim().parse().map_err(|_| wrong())?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    Duration::try_from(length).ok().filter(|length| !length.is_zero()).ok_or_else(wrong)
}

/// Formats a duration in the units that a model uses.
pub(super) fn pause(length: Duration) -> String {
    let seconds = length.as_secs();
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (size, name) in units {
        let count = rest / size;
        rest %= size;
        match count {
            0 => {}
            1 => parts.push(format!("1 {name}")),
            count => parts.push(format!("{count} {name}s")),
        }
    }
    if parts.is_empty() {
        format!("{:#}", SignedDuration::try_from(length).unwrap_or_default())
    } else {
        parts.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_a_model_writes_them() {
        let read = |text: &str| duration(text).map(pause).map_err(|error| error.to_string());
        for (text, length) in [
            ("10 minutes", "10 minutes"),
            (" 1 day 12 hours ", "1 day 12 hours"),
            ("2 weeks", "14 days"),
            ("1h30m", "1 hour 30 minutes"),
            ("PT90S", "1 minute 30 seconds"),
            ("1 hour, 1 second", "1 hour 1 second"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(length), "{text}");
        }
        for text in ["", "soon", "10", "1 month", "1 year", "-5 minutes", "0 seconds", "999999999999 weeks"] {
            assert!(read(text).is_err_and(|error| error.contains("is no duration, such as 10 minutes")), "{text}");
        }
    }

    #[test]
    fn moments_have_an_offset_and_are_still_to_come() {
        let now = Timestamp(1_767_225_600_000_000);
        assert_eq!(now.to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(moment("2026-01-01T09:30:00+01:00", now).unwrap().to_string(), "2026-01-01T08:30:00Z");
        assert_eq!(moment("2026-01-01 00:00Z", now).unwrap(), now);

        let wrong = |text| moment(text, now).unwrap_err().to_string();
        assert_eq!(wrong("2025-12-31T23:59:59Z"), "`2025-12-31T23:59:59Z` has passed: it is 2026-01-01T00:00:00Z now");
        for text in ["tomorrow", "2026-01-01T09:30:00", ""] {
            assert!(wrong(text).ends_with("; it is 2026-01-01T00:00:00Z now"), "{text}");
        }
    }
}
