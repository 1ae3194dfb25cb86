//! The nominal times of a specification: the next one after a time, by all of its rules, and how many rules there may be.

use jiff::Timestamp as Instant;
use jiff::civil::Time;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::clock_change::instant;
use super::cron::CronExpression;
use super::spec::{DateRange, Interval, ScheduleSpec, SpecError};
use crate::record::Timestamp;
use crate::record::encoding::micros::micros;

/// The most cron expressions and the most intervals of a schedule: a time is computed for each of them to find the next one.
const MAX_RULES: usize = 20;
/// The most single times, and the most ranges of excluded dates: each of these may lead to another evaluation of all rules.
const MAX_TIMES: usize = 1000;
const MAX_EXCLUDED: usize = 400;
/// The shortest interval, and the longest jitter.
const SECOND: u64 = 1_000_000;
const DAY: u64 = 24 * 60 * 60 * SECOND;
/// How far a search goes past excluded dates. Without a limit, 400 excluded leap days would be a search over 1,600 years.
const CENTURY: i64 = 36_525 * DAY.cast_signed();

/// The parsed parts of a specification.
#[derive(Debug, Clone)]
pub(super) struct Times {
    cron: Vec<CronExpression>,
    every: Vec<Interval>,
    at: Vec<Timestamp>,
    zone: TimeZone,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    exclude: Vec<DateRange>,
}

impl Times {
    /// Parses a specification.
    pub(super) fn of(spec: &ScheduleSpec) -> Result<Self, SpecError> {
        let parse = |(index, text): (usize, &String)| {
            CronExpression::parse(text).map_err(|error| SpecError::Cron { index, expression: text.clone(), error })
        };
        if spec.cron.is_empty() && spec.every.is_empty() && spec.at.is_empty() {
            return Err(SpecError::Empty);
        }
        let lists = [
            ("cron", spec.cron.len(), MAX_RULES),
            ("every", spec.every.len(), MAX_RULES),
            ("at", spec.at.len(), MAX_TIMES),
            ("exclude", spec.exclude.len(), MAX_EXCLUDED),
        ];
        if let Some(&(list, _, most)) = lists.iter().find(|(_, count, most)| count > most) {
            return Err(SpecError::TooMany { list, most });
        }
        if spec.every.iter().any(|interval| micros(interval.every) < SECOND) {
            return Err(SpecError::Interval);
        }
        if micros(spec.jitter) > DAY {
            return Err(SpecError::Jitter);
        }
        Ok(Self {
            cron: spec.cron.iter().enumerate().map(parse).collect::<Result<_, _>>()?,
            every: spec.every.clone(),
            at: spec.at.clone(),
            zone: zone(spec)?,
            start: spec.start,
            end: spec.end,
            exclude: spec.exclude.clone(),
        })
    }

    pub(super) const fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Returns the first time after a given one.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.after(after).next()
    }

    /// Iterates over the times after a given one.
    pub(super) fn after(&self, after: Timestamp) -> After<'_> {
        let after = self.start.map_or(after, |start| after.max(Timestamp(start.0.saturating_sub(1))));
        After { times: self, after, cron: vec![Upcoming::Unknown; self.cron.len()] }
    }

    /// Returns the last microsecond of the excluded dates around a time; the end of all time if they have no day after them.
    fn end_of_exclusion(&self, time: Timestamp) -> Option<Timestamp> {
        let date = Instant::from_microsecond(time.0).ok()?.to_zoned(self.zone.clone()).date();
        let excluded = self.exclude.iter().find(|dates| (dates.first..=dates.last).contains(&date))?;
        let next_day = excluded.last.tomorrow().ok().map(|day| day.to_datetime(Time::midnight()));
        let next_day = next_day.and_then(|day| instant(&self.zone, day));
        Some(next_day.map_or(Timestamp(i64::MAX), |day| Timestamp(day.as_microsecond().saturating_sub(1))))
    }

    /// Returns all times after `after` up to and including `until`; `None` if they are more than `most`.
    pub(super) fn between(&self, after: Timestamp, until: Timestamp, most: usize) -> Option<Vec<Timestamp>> {
        let within = self.after(after).take_while(|time| *time <= until);
        let times: Vec<_> = within.take(most + 1).collect();
        (times.len() <= most).then_some(times)
    }
}

/// The times of a specification after each other. A cron expression that is rarely true takes long to evaluate, so its next time is
/// kept until the iteration has passed it.
pub(super) struct After<'a> {
    times: &'a Times,
    after: Timestamp,
    cron: Vec<Upcoming>,
}

/// The next time of a cron expression.
#[derive(Clone, Copy)]
enum Upcoming {
    Unknown,
    At(Timestamp),
    Never,
}

impl After<'_> {
    fn next_of_all(&mut self) -> Option<Timestamp> {
        let (times, after) = (self.times, self.after);
        let mut zoned = None;
        let mut first: Option<Timestamp> = None;
        for (cron, upcoming) in times.cron.iter().zip(&mut self.cron) {
            if matches!(upcoming, Upcoming::Unknown) || matches!(upcoming, Upcoming::At(next) if *next <= after) {
                if zoned.is_none() {
                    zoned = Some(Instant::from_microsecond(after.0).ok()?.to_zoned(times.zone.clone()));
                }
                *upcoming = zoned.as_ref().and_then(|zoned| cron.next(zoned)).map_or(Upcoming::Never, Upcoming::At);
            }
            if let Upcoming::At(next) = *upcoming {
                first = Some(first.map_or(next, |first| first.min(next)));
            }
        }
        let every = times.every.iter().filter_map(|interval| next_multiple(*interval, after));
        let at = times.at.iter().copied().filter(|at| *at > after);
        first.into_iter().chain(every).chain(at).min()
    }
}

impl Iterator for After<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        let horizon = self.after.0.saturating_add(CENTURY);
        loop {
            let next = self.next_of_all()?;
            if self.times.end.is_some_and(|end| next > end) {
                return None;
            }
            match self.times.end_of_exclusion(next) {
                Some(end) if end.0 > horizon => return None,
                Some(end) => self.after = end,
                None => {
                    self.after = next;
                    return Some(next);
                }
            }
        }
    }
}

fn zone(spec: &ScheduleSpec) -> Result<TimeZone, SpecError> {
    let Some(name) = &spec.zone else { return Ok(TimeZone::UTC) };
    zone_of(jiff::tz::db(), name).ok_or_else(|| SpecError::Zone { zone: name.clone() })
}

/// Finds a zone in a database; the one of the system may lack some, which the bundled one has.
fn zone_of(system: &TimeZoneDatabase, name: &str) -> Option<TimeZone> {
    system.get(name).or_else(|_| TimeZoneDatabase::bundled().get(name)).ok()
}

/// Returns the first time after `after` that is `offset` after a multiple of `every`.
fn next_multiple(Interval { every, offset }: Interval, after: Timestamp) -> Option<Timestamp> {
    let every = i64::try_from(micros(every)).ok()?.max(1);
    let offset = i64::try_from(micros(offset)).ok()?.rem_euclid(every);
    let multiples = after.0.checked_sub(offset)?.div_euclid(every).checked_add(1)?;
    Some(Timestamp(multiples.checked_mul(every)?.checked_add(offset)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_that_the_system_lacks_is_found_in_the_bundled_database() {
        let empty = TimeZoneDatabase::none();
        assert!(empty.get("Europe/Berlin").is_err());
        assert_eq!(zone_of(&empty, "Europe/Berlin").unwrap().iana_name(), Some("Europe/Berlin"));
        assert!(zone_of(&empty, "Europe/Atlantis").is_none());
    }
}
