//! The workers of one process and their leases.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::super::{Lease, StoreError};
use crate::record::{Event, EventKind};

/// The leases of workers, and how many were ever acquired.
#[derive(Debug, Default)]
pub(super) struct Workers {
    /// The owners of leases, each with the time at which its lease lapses.
    leases: HashMap<String, Option<Instant>>,
    count: u64,
    /// The time to live of new leases.
    pub(super) ttl: Option<Duration>,
}

impl Workers {
    pub(super) fn acquire(shared: &Arc<Mutex<Self>>) -> Lease {
        let (owner, ttl) = {
            let mut workers = shared.lock();
            workers.count += 1;
            let owner = format!("worker-{}", workers.count);
            let lapses = workers.lapses();
            workers.leases.insert(owner.clone(), lapses);
            (owner, workers.ttl)
        };
        let guard = Registered { workers: Arc::clone(shared), owner: owner.clone() };
        match ttl {
            Some(ttl) => Lease::expiring(owner, ttl, guard),
            None => Lease::new(owner, guard),
        }
    }

    pub(super) fn renew(&mut self, owner: &str) -> Result<(), StoreError> {
        if !self.is_live(owner) {
            return Err(StoreError::LeaseLapsed { owner: owner.to_owned() });
        }
        let lapses = self.lapses();
        self.leases.insert(owner.to_owned(), lapses);
        Ok(())
    }

    pub(super) fn is_live(&self, owner: &str) -> bool {
        self.leases.get(owner).is_some_and(|lapses| lapses.is_none_or(|lapses| lapses > Instant::now()))
    }

    pub(super) fn end(&mut self, owner: &str) {
        self.leases.remove(owner);
    }

    /// Reserves the worker names in an imported log, so that they are not assigned again.
    pub(super) fn reserve_names(&mut self, events: &[Arc<Event>]) {
        for event in events {
            if let EventKind::RunClaimed { owner, .. } = &event.kind
                && let Some(Ok(count)) = owner.strip_prefix("worker-").map(str::parse::<u64>)
            {
                self.count = self.count.max(count);
            }
        }
    }

    fn lapses(&self) -> Option<Instant> {
        self.ttl.map(|ttl| Instant::now() + ttl)
    }
}

/// Ends a lease on drop.
struct Registered {
    workers: Arc<Mutex<Workers>>,
    owner: String,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.workers.lock().end(&self.owner);
    }
}
