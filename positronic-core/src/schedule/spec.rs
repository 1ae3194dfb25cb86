//! The times of a schedule, as an author writes them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::cron::CronError;
use crate::record::Timestamp;
use crate::record::encoding::skip::is_default;

/// The times at which a schedule starts runs: the union of cron expressions, intervals and single times, within a
/// range and without excluded dates.
///
/// ```
/// use positronic_core::schedule::ScheduleSpec;
///
/// let spec = ScheduleSpec::default().cron("0 9 * * MON-FRI").zone("Europe/Berlin");
/// assert!(spec.check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ScheduleSpec {
    /// Cron expressions of five fields (minute, hour, day of the month, month, day of the week), with seconds before
    /// them six, with years after those seven. See [`CronExpression`](super::CronExpression).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cron: Vec<String>,
    /// Intervals, which count from 1970-01-01 UTC.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub every: Vec<Interval>,
    /// Single times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<Timestamp>,
    /// The IANA time zone of cron expressions and excluded dates, such as `Europe/Berlin`; UTC without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// No time before this one counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// No time after this one counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// No time on these dates counts. A schedule has ended if they exclude all times of the next hundred years.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<DateRange>,
    /// Each run starts at a random but fixed delay below this one. The delay depends on the schedule's id and the
    /// nominal time, so it is the same on every server.
    #[serde(with = "crate::record::encoding::micros", skip_serializing_if = "is_default")]
    pub jitter: Duration,
}

/// An interval: all times that are `offset` after a multiple of `every` since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// The length, at least a second.
    #[serde(with = "crate::record::encoding::micros")]
    pub every: Duration,
    /// The offset.
    #[serde(default, with = "crate::record::encoding::micros", skip_serializing_if = "is_default")]
    pub offset: Duration,
}

/// One date or several in a row, written as `2026-12-24` or `2026-12-24/2026-12-31`; both ends count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DateRange {
    /// The first date.
    pub first: Date,
    /// The last date.
    pub last: Date,
}

/// The reason why a specification has no times.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A cron expression is invalid.
    #[error("the cron expression `{expression}` is invalid: {error}")]
    Cron {
        /// Its place among the cron expressions.
        index: usize,
        /// The expression.
        expression: String,
        /// What is invalid, and where.
        error: CronError,
    },
    /// The time zone is not in the IANA database.
    #[error("unknown time zone `{zone}`; use a name of the IANA database, such as `Europe/Berlin` or `UTC`")]
    Zone {
        /// The name.
        zone: String,
    },
    /// An interval is shorter than a second.
    #[error("the interval is shorter than a second")]
    Interval,
    /// The jitter is longer than a day.
    #[error("the jitter is longer than a day")]
    Jitter,
    /// A date or a range of dates cannot be read.
    #[error("cannot read the dates `{text}`: {reason}; write `2026-12-24` or `2026-12-24/2026-12-31`")]
    Dates {
        /// The text.
        text: String,
        /// The reason.
        reason: String,
    },
    /// A list is too long to be evaluated again and again.
    #[error("the schedule has more than {most} entries in `{list}`; split it into several schedules")]
    TooMany {
        /// The field of [`ScheduleSpec`].
        list: &'static str,
        /// The most entries of this list.
        most: usize,
    },
    /// It has neither a cron expression nor an interval nor a time.
    #[error("the schedule has no cron expression, no interval and no time")]
    Empty,
    /// None of its times is in the future.
    #[error("the schedule has no time in the future")]
    Over,
}

impl ScheduleSpec {
    /// Adds a cron expression.
    #[must_use]
    pub fn cron(mut self, expression: impl Into<String>) -> Self {
        self.cron.push(expression.into());
        self
    }

    /// Adds an interval that counts from 1970-01-01 UTC.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every.push(Interval { every, offset: Duration::ZERO });
        self
    }

    /// Adds a single time.
    #[must_use]
    pub fn at(mut self, time: Timestamp) -> Self {
        self.at.push(time);
        self
    }

    /// Sets the IANA time zone of cron expressions and excluded dates.
    #[must_use]
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.zone = Some(zone.into());
        self
    }

    /// Sets the first time that counts.
    #[must_use]
    pub const fn start(mut self, start: Timestamp) -> Self {
        self.start = Some(start);
        self
    }

    /// Sets the last time that counts.
    #[must_use]
    pub const fn end(mut self, end: Timestamp) -> Self {
        self.end = Some(end);
        self
    }

    /// Excludes dates.
    #[must_use]
    pub fn exclude(mut self, dates: DateRange) -> Self {
        self.exclude.push(dates);
        self
    }

    /// Sets the longest delay of a run.
    #[must_use]
    pub const fn jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// Checks every part.
    ///
    /// # Errors
    ///
    /// [`SpecError`] of the first invalid part.
    pub fn check(&self) -> Result<(), SpecError> {
        super::next_time::Times::of(self).map(drop)
    }
}

impl From<Date> for DateRange {
    fn from(date: Date) -> Self {
        Self { first: date, last: date }
    }
}

impl FromStr for DateRange {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let wrong = |reason: String| SpecError::Dates { text: text.to_owned(), reason };
        let date = |text: &str| text.trim().parse::<Date>().map_err(|error| wrong(error.to_string()));
        let (first, last) = text.split_once('/').unwrap_or((text, text));
        let range = Self { first: date(first)?, last: date(last)? };
        if range.last < range.first {
            return Err(wrong("the last date is before the first one".to_owned()));
        }
        Ok(range)
    }
}

impl fmt::Display for DateRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}/{}", self.first, self.last),
        }
    }
}

impl TryFrom<String> for DateRange {
    type Error = SpecError;

    fn try_from(text: String) -> Result<Self, SpecError> {
        text.parse()
    }
}

impl From<DateRange> for String {
    fn from(range: DateRange) -> Self {
        range.to_string()
    }
}
