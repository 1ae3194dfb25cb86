//! The values of a search: costs and times.

use std::str::FromStr as _;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};

use super::error::RefusedValue;
use super::parse::QueryClock;
use positronic_core::record::{Money, Timestamp};

/// The smallest and the largest cost.
pub(super) type CostRange = (Option<Money>, Option<Money>);

/// Reads a range of costs: `>0.1`, `<=5`, `0.1..5`, or one cost.
pub(super) fn costs(text: &str) -> Result<CostRange, RefusedValue> {
    let refused = || ("expected a cost such as >0.1, <=5 or 0.1..5".to_owned(), None);
    let money = |text: &str| Money::from_str(text.trim()).map_err(|_| refused());
    let next = |money: Money| Money::of_nanos(money.nanos().saturating_add(1));
    if let Some((least, most)) = text.split_once("..") {
        let bound = |text: &str| (!text.is_empty()).then(|| money(text)).transpose();
        return match (bound(least)?, bound(most)?) {
            (None, None) => Err(refused()),
            (Some(least), Some(most)) if least > most => {
                Err((format!("{least} is more than {most}"), Some(format!("write {most}..{least}"))))
            }
            range => Ok(range),
        };
    }
    if let Some(least) = text.strip_prefix(">=") {
        return Ok((Some(money(least)?), None));
    }
    if let Some(most) = text.strip_prefix("<=") {
        return Ok((None, Some(money(most)?)));
    }
    if let Some(below) = text.strip_prefix('>') {
        return Ok((Some(next(money(below)?)), None));
    }
    if let Some(above) = text.strip_prefix('<') {
        let nanos = money(above)?.nanos();
        return match nanos.checked_sub(1) {
            Some(most) => Ok((None, Some(Money::of_nanos(most)))),
            None => Err(("no run costs less than nothing".to_owned(), None)),
        };
    }
    let exact = money(text)?;
    Ok((Some(exact), Some(exact)))
}

/// Reads a time: `today`, `yesterday`, an age such as `24h`, a date, or a time with its zone.
pub(super) fn time(text: &str, clock: QueryClock) -> Result<Timestamp, RefusedValue> {
    let refused =
        || ("expected an age such as 24h or 7d, today, yesterday, or a date such as 2026-11-27".to_owned(), None);
    let zone = TimeZone::fixed(Offset::from_seconds(clock.utc_offset).unwrap_or(Offset::UTC));
    let day = |date: Date| {
        let midnight = date.to_zoned(zone.clone()).map_err(|_| refused())?;
        Ok(Timestamp(midnight.timestamp().as_microsecond()))
    };
    let today = || {
        let now = jiff::Timestamp::from_microsecond(clock.now.0).map_err(|_| refused())?;
        Ok(now.to_zoned(zone.clone()).date())
    };
    match text {
        "today" => return day(today()?),
        "yesterday" => return day(today()?.yesterday().map_err(|_| refused())?),
        _ => {}
    }
    if let Some(age) = age(text) {
        let micros = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
        return Ok(Timestamp(clock.now.0.saturating_sub(micros)));
    }
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Ok(Timestamp(at.as_microsecond()));
    }
    match text.parse::<Date>() {
        Ok(date) if !text.contains('T') => day(date),
        _ => Err(refused()),
    }
}

/// Reads an age: a number and `s`, `m`, `h`, `d` or `w`.
fn age(text: &str) -> Option<Duration> {
    let seconds: u64 = match text.chars().next_back()? {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return None,
    };
    let number: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    number.checked_mul(seconds).map(Duration::from_secs)
}
