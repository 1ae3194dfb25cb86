//! Which nominal times are due.

use std::time::Duration;

use super::next_time::Times;
use super::spec::{ScheduleSpec, SpecError};
use crate::record::encoding::micros::micros;
use crate::record::{Timestamp, sha256};

/// The most times that [`due`] lists one by one.
pub const MAX_DUE: usize = 1000;

/// The nominal times that are due, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Due {
    /// The range of times that are not listed, because more than [`MAX_DUE`] are due: after the first time, up to and
    /// including the second one.
    pub unlisted: Option<(Timestamp, Timestamp)>,
    /// The last due times, at most [`MAX_DUE`].
    pub times: Vec<Timestamp>,
}

impl Due {
    /// Returns the last due time.
    #[must_use]
    pub fn last(&self) -> Option<Timestamp> {
        self.times.last().copied().or(self.unlisted.map(|(_, until)| until))
    }
}

/// Returns the nominal times after `last` that are due at `now`: those whose delay by jitter is over.
///
/// A time is due only after all times before it. So calling this in many steps, each with the last due time of the one
/// before, gives the same times as calling it once, as long as no step has more than [`MAX_DUE`] of them.
///
/// # Errors
///
/// [`SpecError`] if the specification is invalid.
pub fn due(schedule: &str, spec: &ScheduleSpec, last: Timestamp, now: Timestamp) -> Result<Due, SpecError> {
    let times = Times::of(spec)?;
    let is_due = |time: Timestamp| time.after(jitter(schedule, time, spec.jitter)) <= now;
    let mut listed = Vec::new();
    for next in times.after(last).take_while(|next| *next <= now && is_due(*next)) {
        listed.push(next);
        if listed.len() > MAX_DUE {
            // All of these are due, and so are all that are longer ago than the jitter.
            let until = Timestamp(now.0.saturating_sub_unsigned(micros(spec.jitter))).max(next);
            let (unlisted, times) = latest(&times, last, until);
            return Ok(Due { unlisted, times });
        }
    }
    Ok(Due { unlisted: None, times: listed })
}

/// Returns the last times in a range, at most [`MAX_DUE`], and the range before them.
pub(super) fn latest(
    times: &Times,
    after: Timestamp,
    until: Timestamp,
) -> (Option<(Timestamp, Timestamp)>, Vec<Timestamp>) {
    let mut from = after;
    loop {
        if let Some(listed) = times.between(from, until, MAX_DUE) {
            return ((from > after).then_some((after, from)), listed);
        }
        // Half of the range; the last part has at most one time a second.
        let half = until.0.saturating_sub(from.0) / 2;
        from = Timestamp(from.0.saturating_add(half.max(1)));
    }
}

/// Returns the delay of a run after its nominal time: below `most`, and the same on every server.
#[must_use]
pub fn jitter(schedule: &str, nominal: Timestamp, most: Duration) -> Duration {
    let most = micros(most);
    if most == 0 {
        return Duration::ZERO;
    }
    let hash = sha256(format!("{schedule} {}", nominal.0).as_bytes());
    let number = hash.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default();
    Duration::from_micros(number % most)
}
