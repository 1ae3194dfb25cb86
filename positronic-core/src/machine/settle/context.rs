//! What an outcome is settled with, besides the state.

use std::time::Duration;

use crate::record::{RetryPolicy, Timestamp};

/// What an outcome is settled with, besides the state.
pub(crate) struct SettleContext {
    /// The time.
    pub(crate) now: Timestamp,
    /// A random number from 0 to 1.
    pub(crate) jitter: f64,
    /// How requests are sent again.
    pub(crate) retry: RetryPolicy,
}

impl SettleContext {
    /// Returns the time since `began`.
    pub(super) fn elapsed(&self, began: Timestamp) -> Duration {
        self.now.since(began)
    }

    /// Says when what has failed for the `attempt`th time, from 0, is tried again, at most `limit` times.
    pub(crate) fn again(&self, attempt: u32, limit: u32) -> Option<Timestamp> {
        let policy = RetryPolicy { limit, ..self.retry };
        policy.own_delay(attempt, self.jitter).map(|pause| self.now.after(pause))
    }
}
