//! Parser for a server's requested wait.

use std::time::Duration;

/// Reads `retry-after-ms`, or `retry-after` in seconds or as a date. A date is compared to the answer's own `date` header,
/// since the server's clock may be wrong, and without one to `now`, in seconds since 1970.
pub(super) fn retry_after<'h>(header: impl Fn(&str) -> Option<&'h str>, now: impl FnOnce() -> i64) -> Option<Duration> {
    if let Some(millis) = header("retry-after-ms").and_then(|text| text.trim().parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let text = header("retry-after")?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let due = http_date(text)?;
    let now = header("date").and_then(|date| http_date(date.trim())).unwrap_or_else(now);
    Some(Duration::from_secs(u64::try_from(due.saturating_sub(now)).unwrap_or(0)))
}

/// Reads a date such as `Sun, 06 Nov 1994 08:49:37 GMT` into seconds since 1970.
fn http_date(text: &str) -> Option<i64> {
    let mut words = text.split_once(", ")?.1.split_ascii_whitespace();
    let day: i64 = words.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month = match words.next()? {
        "Jan" => 1,
        "Feb" => 2,
        "Mar" => 3,
        "Apr" => 4,
        "May" => 5,
        "Jun" => 6,
        "Jul" => 7,
        "Aug" => 8,
        "Sep" => 9,
        "Oct" => 10,
        "Nov" => 11,
        "Dec" => 12,
        _ => return None,
    };
    let year: i64 = words.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut clock =
        words.next()?.split(':').map(|part| part.parse::<i64>().ok().filter(|part| (0..=60).contains(part)));
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    // Days since 0000-03-01, with years that begin in March, so that the leap day is the last day of a year.
    let (shifted_year, shifted_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = shifted_year / 4 - shifted_year / 100 + shifted_year / 400;
    let days = shifted_year * 365 + leap_days + (shifted_month * 153 + 2) / 5 + day - 1 - 719_468;
    Some(days * 86_400 + hours * 3600 + minutes * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT
    const NOW: i64 = 784_111_777;

    fn read(headers: &[(&str, &'static str)]) -> Option<Duration> {
        retry_after(|name| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value), || NOW)
    }

    #[test]
    fn reads_seconds_milliseconds_and_dates() {
        assert_eq!(read(&[("retry-after", "20")]), Some(Duration::from_secs(20)));
        assert_eq!(read(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
        assert_eq!(read(&[("retry-after", "20"), ("retry-after-ms", "150")]), Some(Duration::from_millis(150)));
        assert_eq!(
            read(&[("retry-after", "Wed, 01 Mar 2028 00:00:30 GMT"), ("date", "Tue, 29 Feb 2028 23:59:30 GMT")]),
            Some(Duration::from_mins(1))
        );
    }

    #[test]
    fn date_is_compared_to_the_clock_without_a_date_header() {
        let due = ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT");

        assert_eq!(read(&[due]), Some(Duration::from_secs(30)));
        assert_eq!(read(&[due, ("date", "today")]), Some(Duration::from_secs(30)));
        assert_eq!(read(&[due, ("date", "Sun, 06 Nov 1994 08:50:00 GMT")]), Some(Duration::from_secs(7)));
    }

    #[test]
    fn past_date_means_no_wait_and_invalid_text_is_ignored() {
        let past = [("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), ("date", "Sun, 06 Nov 1994 08:49:38 GMT")];
        assert_eq!(read(&past), Some(Duration::ZERO));
        for text in [
            "soon",
            "-1",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 06 Nov 99999999999 08:49:37 GMT",
            "Sun, 9223372036854775807 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(read(&[("retry-after", text), ("date", "Sun, 06 Nov 1994 08:49:38 GMT")]), None, "{text}");
        }
    }

    #[test]
    fn reads_a_date() {
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
    }
}
