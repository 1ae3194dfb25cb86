//! Time, ids and randomness: the only place where the core reads a clock or draws a number.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::{Duration, SystemTime};

use backon::ExponentialBuilder;
use futures::future::BoxFuture;

use crate::record::{RunId, SignalId, Timestamp};

/// A source of time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Awaits work within a time limit, such as that of a tool or of an approval's condition. Returns `false` if it takes longer, and drops it then.
    ///
    /// By default it sets a timer of tokio.
    fn limit<'a>(&'a self, limit: Duration, work: BoxFuture<'a, ()>) -> BoxFuture<'a, bool> {
        Box::pin(async move { tokio::time::timeout(limit, work).await.is_ok() })
    }
}

/// A source of ids and randomness.
pub trait Ids: Send + Sync + 'static {
    /// Returns a new run id.
    fn run(&self) -> RunId;

    /// Returns a new signal id.
    fn signal(&self) -> SignalId;

    /// Returns a number from 0 to 1 that spreads retries.
    fn jitter(&self) -> f64;
}

/// Returns the pauses between retries of a failed operation: 50 ms, doubled up to two seconds, 45 seconds in all, which
/// covers the failover of a database.
pub(super) const fn pauses() -> ExponentialBuilder {
    ExponentialBuilder::new()
        .with_min_delay(Duration::from_millis(50))
        .with_factor(2.0)
        .with_max_delay(Duration::from_secs(2))
        .with_max_times(27)
}

/// Awaits work within a time limit of a clock; `None` if it takes longer.
pub(super) async fn limited<T: Send>(
    clock: &dyn Clock,
    limit: Duration,
    work: impl Future<Output = T> + Send,
) -> Option<T> {
    let mut result = None;
    let is_in_time = clock.limit(limit, Box::pin(async { result = Some(work.await) })).await;
    result.filter(|_| is_in_time)
}

/// The longest sleep before the clock is read again: the runtime's own clock stands still while the machine is
/// suspended.
pub(super) const NAP: Duration = Duration::from_mins(1);

/// Sleeps until a time of a clock; forever without one.
pub(super) async fn sleep_until(clock: &dyn Clock, wake: Option<Timestamp>) {
    let Some(wake) = wake else { return std::future::pending().await };
    loop {
        let left = wake.since(clock.now()).max(Duration::from_micros(1));
        tokio::time::sleep(left.min(NAP)).await;
        if left <= NAP {
            return;
        }
    }
}

/// Sleeps for a time; forever if it is [`Duration::MAX`].
pub(super) async fn sleep(pause: Duration) {
    if pause == Duration::MAX { std::future::pending().await } else { tokio::time::sleep(pause).await }
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place where time comes in")]
    fn now(&self) -> Timestamp {
        // A clock before 1970, such as one without a battery, stands at 1970.
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// Returns a UUID that sorts by time. `now_v7` panics at a clock before 1970: then ids are unique, but not sorted.
fn sortable_uuid(time: SystemTime) -> uuid::Uuid {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        #[expect(clippy::disallowed_methods, reason = "this is the one place where ids and chance come in")]
        Ok(_) => uuid::Uuid::now_v7(),
        Err(_) => uuid::Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, 0, 0)),
    }
}

/// Sortable UUIDs (version 7).
#[derive(Debug, Clone, Copy, Default)]
pub struct UuidIds;

impl UuidIds {
    #[expect(clippy::disallowed_methods, reason = "this is the one place where ids and chance come in")]
    fn uuid() -> uuid::Uuid {
        sortable_uuid(SystemTime::now())
    }
}

impl Ids for UuidIds {
    fn run(&self) -> RunId {
        RunId::from(Self::uuid().to_string())
    }

    fn signal(&self) -> SignalId {
        SignalId::from(Self::uuid().to_string())
    }

    fn jitter(&self) -> f64 {
        // Drawn for every outcome. The standard library draws the keys once a thread and counts up, and the hash spreads them: a fifth of the
        // cost of a UUID.
        let [a, b, c, d, ..] = RandomState::new().build_hasher().finish().to_be_bytes();
        f64::from(u32::from_be_bytes([a, b, c, d])) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_before_1970_gives_unique_ids() {
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(3600);
        let [one, two] = [(); 2].map(|()| sortable_uuid(before));
        assert_ne!(one, two);
    }

    #[test]
    fn jitter_is_spread_from_0_to_1() {
        let drawn: Vec<f64> = (0..1000).map(|_| UuidIds.jitter()).collect();
        assert!(drawn.iter().all(|jitter| (0.0..=1.0).contains(jitter)));
        for tenth in 0..10 {
            let count = drawn.iter().filter(|jitter| (**jitter * 10.0).floor() == f64::from(tenth)).count();
            assert!((50..200).contains(&count), "{count} of 1,000 in tenth {tenth}");
        }
    }
}
