//! The clocks of the transport: how long a request takes, and what day it is.

use std::time::{Instant, SystemTime};

/// Counts from when it was started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "a duration between two readings, which is reported and decides nothing"
    )]
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the microseconds since the start.
    pub(super) fn micros(self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// Returns the seconds since 1970 by the system's clock.
#[expect(
    clippy::disallowed_methods,
    reason = "measures the wait that a server asks for with a date where the server sends no date of its own"
)]
pub(super) fn unix_seconds() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
