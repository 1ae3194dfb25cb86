//! The pauses between attempts.

use std::time::Duration;

use jiff::fmt::rfc2822;
use positronic_core::record::Timestamp;
use sha2::{Digest as _, Sha256};

/// The pauses before the second to the tenth attempt, as Standard Webhooks recommends.
const PAUSES: [Duration; 9] = [
    Duration::from_secs(5),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(5),
    Duration::from_hours(10),
    Duration::from_hours(14),
    Duration::from_hours(20),
    Duration::from_hours(24),
];

/// A pause is longer by up to this share, so that deliveries that failed together are not sent together again.
const JITTER: f64 = 0.1;

/// The longest pause that a receiver can ask for.
const LONGEST: Duration = Duration::from_hours(24);

/// Returns the pause after a number of failed attempts; `None` if there is no further attempt.
pub(super) fn pause(failures: u32, delivery: &str, asked: Option<Duration>) -> Option<Duration> {
    let index = usize::try_from(failures).ok()?.checked_sub(1)?;
    let pause = PAUSES.get(index)?;
    let pause = pause.mul_f64(1.0 + JITTER * share(delivery, failures));
    Some(pause.max(asked.unwrap_or_default().min(LONGEST)))
}

/// Returns a number from 0 to 1 that follows from the delivery and the attempt.
fn share(delivery: &str, failures: u32) -> f64 {
    let hash = Sha256::digest(format!("{delivery}\n{failures}"));
    let hash = hash.iter().take(4).fold(0_u32, |hash, byte| hash << 8 | u32::from(*byte));
    f64::from(hash) / f64::from(u32::MAX)
}

/// Decodes `Retry-After`: seconds, or a date.
pub(super) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(Timestamp(at.as_microsecond()).since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_attempts_are_made_within_about_three_days() {
        let pauses: Vec<_> = (1..=10).map_while(|failures| pause(failures, "evt_1", None)).collect();

        assert_eq!(pauses.len(), 9);
        for (pause, least) in pauses.iter().zip(PAUSES) {
            assert!(*pause >= least && *pause <= least.mul_f64(1.0 + JITTER), "{pause:?} after {least:?}");
        }
        assert_ne!(pause(3, "evt_1", None), pause(3, "evt_2", None), "deliveries are spread");
        assert_eq!(pause(3, "evt_1", None), pause(3, "evt_1", None));
    }

    #[test]
    fn receiver_can_ask_for_a_longer_pause_of_up_to_a_day() {
        assert_eq!(pause(1, "evt_1", Some(Duration::from_mins(10))), Some(Duration::from_mins(10)));
        assert_eq!(pause(1, "evt_1", Some(Duration::MAX)), Some(LONGEST));
        assert!(pause(2, "evt_1", Some(Duration::from_secs(1))) >= Some(Duration::from_mins(5)));
        assert_eq!(pause(10, "evt_1", Some(Duration::from_mins(10))), None, "it was the last attempt");
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        // 2015-10-21 07:28:00 UTC.
        let date = Timestamp(1_445_412_480_000_000);
        assert_eq!(retry_after("120", date), Some(Duration::from_mins(2)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:30:00 GMT", date), Some(Duration::from_mins(2)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:00:00 GMT", date), Some(Duration::ZERO));
        for invalid in ["", "-1", "soon", "1.5"] {
            assert_eq!(retry_after(invalid, date), None, "{invalid}");
        }
    }
}
