//! Clocks of the transport: a stopwatch and the wall clock.

use std::time::Duration;
use std::time::{Instant, SystemTime};

/// Measures the time since its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "measures a duration for reports; no decision depends on it")]
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time since the start, in whole microseconds, as the record stores it.
    pub(super) fn elapsed(self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

/// Returns the seconds since 1970 by the system's clock.
#[expect(
    clippy::disallowed_methods,
    reason = "compares with the date of a retry-after header when the server sends no date"
)]
pub(super) fn unix_seconds() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
