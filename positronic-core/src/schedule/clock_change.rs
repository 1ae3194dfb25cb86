//! Wall-clock times of a time zone as instants, also where the clock changes. See `cron.rs` for expressions with `*` hours.

use jiff::Timestamp as Instant;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

/// Returns the instant of a wall-clock time: the end of the gap for a time that the clock skips, and the first of two
/// for one that it repeats. `None` outside of the calendar's range.
pub(super) fn instant(zone: &TimeZone, wall: DateTime) -> Option<Instant> {
    let ambiguous = zone.to_ambiguous_timestamp(wall);
    let skipped = matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. });
    let earlier = ambiguous.earlier().ok()?;
    match skipped {
        // The clock changes between the earlier and the later reading of a time that it skips.
        true => Some(zone.following(earlier).next()?.timestamp()),
        false => Some(earlier),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_time_is_the_end_of_the_gap_and_repeated_time_the_first_one() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let at = |wall: &str| instant(&zone, wall.parse().unwrap()).unwrap().to_string();

        assert_eq!(at("2026-03-29T01:59:59"), "2026-03-29T00:59:59Z");
        assert_eq!(at("2026-03-29T02:00:00"), "2026-03-29T01:00:00Z");
        assert_eq!(at("2026-03-29T02:59:59"), "2026-03-29T01:00:00Z");
        assert_eq!(at("2026-10-25T02:30:00"), "2026-10-25T00:30:00Z");
        assert_eq!(at("2026-10-25T03:00:00"), "2026-10-25T02:00:00Z");
    }
}
