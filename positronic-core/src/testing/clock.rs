//! A clock and ids that are the same in every run of a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

use crate::record::{RunId, SignalId, Timestamp};
use crate::runner::{Clock, Ids};

/// Begins at 2026-01-01 00:00:00 UTC and follows tokio's clock, which stands still under `start_paused = true`.
#[derive(Debug, Clone, Default)]
pub struct TestClock {
    began: Arc<std::sync::OnceLock<Instant>>,
}

impl TestClock {
    /// 2026-01-01 00:00:00 UTC.
    pub const BEGIN: Timestamp = Timestamp(1_767_225_600_000_000);
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let now = Instant::now();
        Self::BEGIN.after(now.duration_since(*self.began.get_or_init(|| now)))
    }
}

/// Generates `run-1`, `run-2`, … and `signal-1`, `signal-2`, …, without randomness.
#[derive(Debug, Clone, Default)]
pub struct CountedIds {
    counts: Arc<(AtomicU64, AtomicU64)>,
}

impl Ids for CountedIds {
    fn run(&self) -> RunId {
        RunId::from(format!("run-{}", self.counts.0.fetch_add(1, Ordering::Relaxed) + 1))
    }

    fn signal(&self) -> SignalId {
        SignalId::from(format!("signal-{}", self.counts.1.fetch_add(1, Ordering::Relaxed) + 1))
    }

    fn jitter(&self) -> f64 {
        0.0
    }
}
