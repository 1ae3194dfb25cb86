//! Cron expressions in a time zone.

use croner::Cron;
use croner::parser::CronParser;
use jiff::Zoned;
use jiff::civil::DateTime;

use super::clock_change::instant;
use crate::record::Timestamp;

/// The fields of an expression with seconds and years, and their values.
const FIELDS: [(&str, &str); 7] = [
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31"),
    ("month", "1 to 12 or JAN to DEC"),
    ("day of the week", "0 to 7 or SUN to SAT"),
    ("year", "1 to 5000"),
];
const HOUR: usize = 2;
/// The first and the last value of each field, for its steps. Sunday is 0 there.
const RANGES: [(u32, u32); 7] = [(0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6), (1, 5000)];
const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// A parsed cron expression.
///
/// Five fields, with seconds before them six, with years after those seven; names of months and weekdays (`MON`, `JAN`),
/// `L`, `W`, `#`, and `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. If both a day of the month and a day of the
/// week are given, either one is enough; with `+` before the day of the week both are needed.
///
/// On the two days on which the clock changes, an expression with fixed hours has each of its wall-clock times once: a
/// time that the clock skips moves to the end of the gap, and a time that the clock repeats counts the first time only.
/// An expression whose hour begins with `*` follows the elapsed time instead: it has no time in the gap, and repeated
/// times twice.
#[derive(Debug, Clone)]
pub struct CronExpression {
    cron: Cron,
    /// Whether its hour is `*` or `*/n`.
    every_hour: bool,
}

/// The reason why a cron expression is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", field.map_or_else(String::new, |field| format!("the {field} at position {position}: ")))]
#[non_exhaustive]
pub struct CronError {
    /// The byte at which the invalid part begins, counted from 0.
    pub position: usize,
    /// The invalid field; `None` if the whole expression is invalid.
    pub field: Option<&'static str>,
    /// What is invalid.
    pub reason: String,
}

impl CronExpression {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// [`CronError`] with the first invalid field.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let whole = |reason: String| CronError { position: 0, field: None, reason };
        let fields = fields(text);
        if let [(_, nickname)] = fields.as_slice()
            && nickname.starts_with('@')
        {
            let known = ["@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@annually"];
            if !known.iter().any(|known| nickname.eq_ignore_ascii_case(known)) {
                return Err(whole(format!("`{nickname}` is unknown; known are {}", known.join(", "))));
            }
            let cron = CronParser::new().parse(nickname).map_err(|error| whole(error.to_string()))?;
            return Ok(Self { cron, every_hour: nickname.eq_ignore_ascii_case("@hourly") });
        }
        if !(5..=7).contains(&fields.len()) {
            return Err(whole(format!("it has {} fields instead of 5, 6 or 7", fields.len())));
        }
        // Without seconds, the first field is the minute.
        let first = usize::from(fields.len() == 5);
        for (place, (position, field)) in (first..).zip(&fields) {
            let mut alone = ["*"; 7];
            if let Some(own) = alone.get_mut(place) {
                *own = field;
            }
            if let Err(error) = CronParser::new().parse(&alone.join(" ")) {
                let (name, values) = FIELDS.get(place).copied().unzip();
                let reason = format!("{}; the values are {}", reason(&error), values.unwrap_or_default());
                return Err(CronError { position: *position, field: name, reason });
            }
            if let Some(reason) = field.split(',').find_map(|item| useless_step(place, item)) {
                return Err(CronError { position: *position, field: FIELDS.get(place).map(|field| field.0), reason });
            }
        }
        let cron = CronParser::new().parse(text).map_err(|error| whole(reason(&error)))?;
        let hour = fields.get(HOUR - first).map_or("", |(_, field)| field);
        let parsed = Self { cron, every_hour: hour.starts_with('*') };
        // Such as 30 February. Eight years have every date.
        let begin = DateTime::constant(2026, 1, 1, 0, 0, 0, 0);
        match parsed.cron.find_next_occurrence(&begin, true) {
            Ok(_) => Ok(parsed),
            Err(_) => Err(whole("it has no time".to_owned())),
        }
    }

    /// Returns its first time after a given time.
    pub(super) fn next(&self, after: &Zoned) -> Option<Timestamp> {
        if self.every_hour {
            let next = self.cron.find_next_occurrence(after, false).ok()?;
            return Some(Timestamp(next.timestamp().as_microsecond()));
        }
        let (mut wall, zone, after) = (after.datetime(), after.time_zone(), after.timestamp());
        loop {
            wall = self.cron.find_next_occurrence(&wall, false).ok()?;
            // Several wall-clock times in a gap, and the repetition of a time, are one instant.
            let next = instant(zone, wall)?;
            if next > after {
                return Some(Timestamp(next.as_microsecond()));
            }
        }
    }
}

/// Returns what is wrong with a step that reaches no second value: `*/90` minutes would be every hour.
fn useless_step(place: usize, item: &str) -> Option<String> {
    let (range, step) = item.split_once('/')?;
    let (step, &(first, last)) = (step.parse::<u32>().ok()?, RANGES.get(place)?);
    let (name, _) = FIELDS.get(place)?;
    let value = |text: &str| {
        let named = |names: &[&str], from: u32| {
            names.iter().zip(from..).find(|(name, _)| text.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        text.parse().ok().or_else(|| named(&MONTHS, 1)).or_else(|| named(&DAYS, 0))
    };
    let (from, to) = match range.split_once('-') {
        Some((from, to)) => (value(from)?, value(to)?),
        None if matches!(range, "*" | "?") => (first, last),
        // A step after a single value is invalid.
        None => return None,
    };
    if from > to || step <= to - from {
        return None;
    }
    let only = format!("the step {step} leaves only the {name} {from} of `{range}`");
    Some(match ["s", "m", "h", "d"].get(place) {
        Some(unit) => {
            format!("{only}; write `{from}`, or use an interval of `{step}{unit}` instead of a cron expression")
        }
        None => format!("{only}; write `{from}`"),
    })
}

/// Returns the fields of an expression, with their positions in bytes.
fn fields(text: &str) -> Vec<(usize, &str)> {
    let begins = |field: &str| (field.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    text.split_whitespace().map(|field| (begins(field), field)).collect()
}

/// Returns croner's message as a part of a sentence.
fn reason(error: &croner::errors::CronError) -> String {
    use croner::errors::CronError as E;
    let text = match error {
        E::InvalidPattern(reason) | E::IllegalCharacters(reason) | E::ComponentError(reason) => reason.clone(),
        other => other.to_string(),
    };
    let text = text.trim_end_matches('.');
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
