//! The lease under which a runner claims runs, and its renewal.
//!
//! A lease with a time to live is renewed four times within it. A renewal counts from the beginning of its request, so
//! by the worker's clock the lease lapses before it does by the store's: the worker stops its work before another one
//! may claim its runs (`leave_run.rs`). A lapsed lease never comes back; the next claim gets a new one, under a new name.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::store::{EventStore, Lease, StoreError};

/// How many times a lease is renewed within its time to live.
const RENEWALS: u32 = 4;
/// The longest pause before a failed renewal is retried.
const RETRY: Duration = Duration::from_secs(1);

/// The current lease of a runner. Clones of the runner share it.
#[derive(Clone, Default)]
pub(in crate::runner) struct LeaseKeeper(Arc<Current>);

#[derive(Default)]
struct Current {
    held: Mutex<Option<Arc<HeldLease>>>,
    acquiring: tokio::sync::Mutex<()>,
}

/// A reference that does not keep the lease.
pub(in crate::runner) struct WeakKeeper(Weak<Current>);

/// A lease that a runner holds or has lost.
pub(in crate::runner) struct HeldLease {
    lease: Lease,
    lost: watch::Sender<bool>,
}

impl LeaseKeeper {
    /// Returns the current lease, and acquires one if there is none or it was lost.
    pub(in crate::runner) async fn get(&self, store: &Arc<dyn EventStore>) -> Result<Arc<HeldLease>, StoreError> {
        if let Some(held) = self.held() {
            return Ok(held);
        }
        let _turn = self.0.acquiring.lock().await;
        if let Some(held) = self.held() {
            return Ok(held);
        }
        let asked = Instant::now();
        let held = Arc::new(HeldLease { lease: store.acquire_lease().await?, lost: watch::Sender::new(false) });
        if let Some(ttl) = held.lease.ttl() {
            tokio::spawn(renew(Arc::clone(store), Arc::downgrade(&held), ttl, asked));
        }
        // Dropping a lease may take a moment, so it happens outside of the lock.
        let lost = self.0.held.lock().replace(Arc::clone(&held));
        drop(lost);
        Ok(held)
    }

    /// Returns the owner of the current lease.
    pub(in crate::runner) fn owner(&self) -> Option<String> {
        self.held().map(|held| held.owner().to_owned())
    }

    fn held(&self) -> Option<Arc<HeldLease>> {
        self.0.held.lock().clone().filter(|held| !held.is_lost())
    }

    pub(in crate::runner) fn downgrade(&self) -> WeakKeeper {
        WeakKeeper(Arc::downgrade(&self.0))
    }
}

impl WeakKeeper {
    pub(in crate::runner) fn upgrade(&self) -> Option<LeaseKeeper> {
        self.0.upgrade().map(LeaseKeeper)
    }
}

impl HeldLease {
    pub(in crate::runner) fn owner(&self) -> &str {
        self.lease.owner()
    }

    pub(super) const fn ttl(&self) -> Option<Duration> {
        self.lease.ttl()
    }

    pub(super) fn is_lost(&self) -> bool {
        *self.lost.borrow()
    }

    /// Waits until the lease is lost. Cancel-safe.
    pub(super) async fn lost(&self) {
        if self.lease.ttl().is_none() {
            return std::future::pending().await;
        }
        _ = self.lost.subscribe().wait_for(|lost| *lost).await;
    }
}

/// Counts a lease as lost when its renewal ends in any way, such as a panic or the end of its runtime.
struct Renewal(Weak<HeldLease>);

impl Drop for Renewal {
    fn drop(&mut self) {
        if let Some(held) = self.0.upgrade() {
            held.lost.send_replace(true);
        }
    }
}

/// Renews a lease until it is dropped or lost. `since` is when the last successful request began.
async fn renew(store: Arc<dyn EventStore>, held: Weak<HeldLease>, ttl: Duration, mut since: Instant) {
    let _renewal = Renewal(Weak::clone(&held));
    let mut next = since + ttl / RENEWALS;
    loop {
        sleep_until(next).await;
        let Some(held) = held.upgrade() else { return };
        let (asked, lapses) = (Instant::now(), since + ttl);
        match timeout_at(lapses, store.renew_lease(held.owner())).await {
            Ok(Ok(())) => {
                since = asked;
                next = since + ttl / RENEWALS;
            }
            Ok(Err(error)) if Instant::now() < lapses && !matches!(error, StoreError::LeaseLapsed { .. }) => {
                tracing::warn!(worker = held.owner(), %error, "cannot renew the lease; retrying");
                next = (Instant::now() + RETRY.min(ttl / (2 * RENEWALS))).min(lapses);
            }
            Ok(Err(_)) | Err(_) => {
                tracing::error!(worker = held.owner(), "the lease has lapsed; the worker stops its runs");
                return;
            }
        }
    }
}
