//! The next times of a schedule, with the days on which the clock changes.

use jiff::Timestamp as Instant;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::next_time::Times;
use super::spec::{ScheduleSpec, SpecError};
use crate::record::Timestamp;

/// The most times of a preview.
const MOST: usize = 1000;

/// A time of a preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PreviewedTime {
    /// The nominal time.
    pub nominal: Timestamp,
    /// The same in the schedule's time zone, such as `2026-03-29T03:00:00+02:00`.
    pub local: String,
    /// The change of the clock on that day, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<TimeShift>,
}

/// A change of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeShift {
    /// The clock goes forward and skips times.
    Forward,
    /// The clock goes back and repeats times.
    Back,
}

/// Returns the next nominal times after `now`, at most 1000.
///
/// # Errors
///
/// [`SpecError`] if the specification is invalid.
pub fn preview(spec: &ScheduleSpec, now: Timestamp, count: usize) -> Result<Vec<PreviewedTime>, SpecError> {
    let times = Times::of(spec)?;
    let previewed = times.after(now).take(count.min(MOST)).filter_map(|nominal| {
        let local = Instant::from_microsecond(nominal.0).ok()?.to_zoned(times.zone().clone());
        let shift = shift(&local);
        Some(PreviewedTime { nominal, local: local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(), shift })
    });
    Ok(previewed.collect())
}

/// Returns the change of the clock on a day.
fn shift(local: &jiff::Zoned) -> Option<TimeShift> {
    let zone: &TimeZone = local.time_zone();
    let (begin, end) = (local.start_of_day().ok()?, local.tomorrow().ok()?.start_of_day().ok()?);
    let change = zone.following(begin.timestamp()).next().filter(|change| change.timestamp() < end.timestamp())?;
    let before = zone.to_offset(change.timestamp().checked_sub(jiff::SignedDuration::from_secs(1)).ok()?);
    match change.offset().seconds() - before.seconds() {
        0 => None,
        forward if forward > 0 => Some(TimeShift::Forward),
        _ => Some(TimeShift::Back),
    }
}
