//! A clock and ids that are the same in every run of a test.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::record::{RunId, SignalId, Timestamp};
use crate::runner::{Clock, Ids};

/// Begins at 2026-01-01 00:00:00 UTC and follows tokio's clock, which stands still under `start_paused = true`.
#[derive(Debug, Clone, Default)]
pub struct TestClock {
    began: Arc<OnceLock<Instant>>,
    without_timers: bool,
}

impl TestClock {
    /// 2026-01-01 00:00:00 UTC.
    pub const BEGIN: Timestamp = Timestamp(1_767_225_600_000_000);

    /// Sets no timers for the time limits of tools. A paused clock of tokio jumps to the next timer when all tasks are idle, also
    /// while a tool waits for real input or output. Such a tool times out by this clock after it has ended, or in real time
    /// before.
    #[must_use]
    pub fn without_timers(self) -> Self {
        Self { without_timers: true, ..self }
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let now = Instant::now();
        Self::BEGIN.after(now.duration_since(*self.began.get_or_init(|| now)))
    }

    fn limit<'a>(&'a self, limit: Duration, work: BoxFuture<'a, ()>) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            if !self.without_timers {
                return tokio::time::timeout(limit, work).await.is_ok();
            }
            let started = self.now();
            tokio::select! {
                biased;
                () = work => self.now().since(started) <= limit,
                () = real_sleep(limit) => false,
            }
        })
    }
}

/// Sleeps in real time on a thread of its own. The thread ends with the future.
async fn real_sleep(duration: Duration) {
    let (held, dropped) = std::sync::mpsc::channel::<()>();
    let (sender, over) = tokio::sync::oneshot::channel();
    let sleep = move || {
        if dropped.recv_timeout(duration) == Err(RecvTimeoutError::Timeout) {
            _ = sender.send(());
        }
    };
    if std::thread::Builder::new().name("tool time limit".to_owned()).spawn(sleep).is_err() || over.await.is_err() {
        std::future::pending::<()>().await;
    }
    drop(held);
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
