//! Leases of workers, and the queue of runs with work.
//!
//! A worker acquires one lease and claims any number of runs with it: a claim in a run's log names the lease's owner, and
//! its epoch fences off the appends of earlier claims. While the lease is live, no other worker claims these runs.
//!
//! [`LeaseStore::due`] reserves the runs that it returns for a moment, so that of many workers
//! only one loads a run. A reservation saves work and protects nothing: a run belongs to the worker whose claim is in the
//! log.

use std::time::Duration;

use derive_where::derive_where;

use super::{BoxFuture, Deferral, StoreError};
use crate::record::{RunId, RunSummary, Seq, Timestamp};

/// Keeps the leases of workers, and the queue of runs with work.
#[diagnostic::on_unimplemented(note = "a store around another one gets this trait by implementing `StoreWrapper`")]
pub trait LeaseStore: Send + Sync + 'static {
    /// Acquires a lease for a worker. Its owner's name is never assigned again.
    fn acquire_lease(&self) -> BoxFuture<'_, Result<Lease, StoreError>>;

    /// Extends a live lease by its time to live, from now on the store's clock. A lease that has lapsed stays lapsed.
    ///
    /// # Errors
    ///
    /// [`StoreError::LeaseLapsed`] when the lease has lapsed or was released.
    fn renew_lease<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns whether the lease of this owner is live.
    fn is_lease_live<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns and reserves runs with work that no worker with a live lease has claimed, the one that is due earliest
    /// first. It omits runs that are reserved, paused or refused by the same code, and those whose row it cannot decode.
    ///
    /// A claim ends a run's reservation, pause and refusals, and so does a signal; see [`Append::ends_deferral`](super::Append::ends_deferral).
    fn due<'a>(&'a self, filter: &'a DueFilter) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>>;

    /// Changes when a run is due again, if the next number of its log is still `next`; otherwise does nothing.
    fn defer<'a>(&'a self, run: &'a RunId, next: Seq, deferral: &'a Deferral) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// A worker's lease: as long as it is live, other workers leave the runs alone that its owner has claimed.
#[derive_where(Debug)]
pub struct Lease {
    owner: String,
    ttl: Option<Duration>,
    #[derive_where(skip)]
    _guard: Box<dyn Send + Sync>,
}

impl Lease {
    /// Creates a lease that ends when `guard` is dropped or its process ends, without a time to live.
    #[must_use]
    pub fn new(owner: String, guard: impl Send + Sync + 'static) -> Self {
        Self { owner, ttl: None, _guard: Box::new(guard) }
    }

    /// Creates a lease that must be renewed within a time, measured by the store's clock. Dropping `guard` may end it
    /// earlier.
    #[must_use]
    pub fn expiring(owner: String, ttl: Duration, guard: impl Send + Sync + 'static) -> Self {
        Self { owner, ttl: Some(ttl), _guard: Box::new(guard) }
    }

    /// Returns the worker's name, which no other lease of the store ever gets.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns the time within which it must be renewed; `None` if it is live until it is dropped.
    #[must_use]
    pub const fn ttl(&self) -> Option<Duration> {
        self.ttl
    }
}

/// Filter for runs with work that no live worker has claimed.
#[derive(Debug, Clone, PartialEq, Eq, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct DueFilter {
    /// The time by which waits are over, on the clock that stamps events.
    pub now: Timestamp,
    /// The owner of the lease under which the runs are reserved. Runs that it has refused are hidden from it, too.
    #[builder(setter(into))]
    pub owner: String,
    /// The caller's code, which may have refused some of the runs; see [`Deferral::Refused`].
    #[builder(setter(into))]
    pub code: String,
    /// Only these runs; empty matches all.
    #[builder(default)]
    pub runs: Vec<RunId>,
    /// Whether to return also runs that are paused after a failure.
    #[builder(default)]
    pub paused: bool,
    /// The largest number of results.
    pub limit: usize,
    /// How long the returned runs are reserved, on the store's clock. A reservation ends earlier with the lease.
    pub reserve: Duration,
}

/// A run with work, reserved for the caller.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DueRun {
    /// Its summary.
    pub summary: RunSummary,
    /// How often workers have failed at it in succession: the last [`Deferral::Paused`].
    pub failures: u32,
}

impl DueRun {
    /// Creates one.
    #[must_use]
    pub const fn new(summary: RunSummary, failures: u32) -> Self {
        Self { summary, failures }
    }
}
