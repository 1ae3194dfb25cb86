//! Measures how long a request takes.

use std::time::Instant;

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
