//! Options of a resumption, and the limit of concurrent loads.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::definition::BrainDefinition;

/// How many runs are loaded at once, to bound memory.
const AT_ONCE: usize = 16;

/// The permits to load a run. Clones of a runner share them.
#[derive(Clone)]
pub(in crate::runner) struct Places(pub(super) Arc<Semaphore>);

/// A permit to load a run.
pub(super) type Place = OwnedSemaphorePermit;

impl Places {
    /// Takes a permit, unless all are taken.
    pub(super) fn try_take(&self) -> Option<Place> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }
}

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

/// How a run is resumed.
#[derive(Default)]
pub(in crate::runner) struct Resumption {
    /// The permit, which is released after the load.
    pub(in crate::runner) place: Option<Place>,
    /// The brain's code, if the caller has it.
    pub(in crate::runner) definition: Option<Arc<BrainDefinition>>,
    /// Whether a server of the store resumes it, which finds it again after a wait.
    pub(in crate::runner) served: bool,
}
