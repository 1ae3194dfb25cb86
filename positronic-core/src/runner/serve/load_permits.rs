//! Permits to load a run, which bound the memory of concurrent loads.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many runs are loaded at once.
const AT_ONCE: usize = 16;

/// The permits of a server. Clones share them.
#[derive(Clone)]
pub(in crate::runner) struct LoadPermits(Arc<Semaphore>);

/// A permit to load a run.
pub(in crate::runner) type LoadPermit = OwnedSemaphorePermit;

impl LoadPermits {
    /// Takes a permit, unless all are taken.
    pub(super) fn try_take(&self) -> Option<LoadPermit> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }
}

impl Default for LoadPermits {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}
