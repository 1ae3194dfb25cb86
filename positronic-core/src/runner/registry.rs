//! The runs that a runner's own workers have claimed, and the signal to release them.

use std::collections::HashSet;
use std::sync::Arc;

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::record::RunId;

/// The runs that a runner's own workers have claimed.
#[derive(Clone, Default)]
pub(super) struct RunRegistry(Arc<Registry>);

#[derive(Default)]
struct Registry {
    runs: Mutex<HashSet<RunId>>,
    leaves: watch::Sender<bool>,
    /// Notified when the last run leaves the registry.
    empty: Notify,
}

/// Registers a run until it is dropped.
pub(super) struct RunGuard(Arc<Registry>, RunId);

impl RunRegistry {
    /// Registers a run, unless it is registered. The caller checks for a release only afterwards, since a release
    /// waits for the registered runs.
    pub(super) fn guard(&self, run: &RunId) -> Option<RunGuard> {
        let fresh = self.0.runs.lock().insert(run.clone());
        fresh.then(|| RunGuard(Arc::clone(&self.0), run.clone()))
    }

    /// Returns whether a run is registered.
    pub(super) fn has(&self, run: &RunId) -> bool {
        self.0.runs.lock().contains(run)
    }

    /// Returns whether the runner releases its runs and claims no more.
    pub(super) fn is_leaving(&self) -> bool {
        *self.0.leaves.borrow()
    }

    /// Waits until the runner releases its runs.
    pub(super) async fn left(&self) {
        _ = self.leaves().wait_for(|leaves| *leaves).await;
    }

    /// Tells the workers to release their runs, waits at most `patience` for the last one, and returns how many are left.
    pub(super) async fn release(&self, patience: Duration) -> usize {
        self.0.leaves.send_replace(true);
        let released = async {
            loop {
                let empty = self.0.empty.notified();
                if self.0.runs.lock().is_empty() {
                    return;
                }
                empty.await;
            }
        };
        _ = tokio::time::timeout(patience, released).await;
        self.0.runs.lock().len()
    }

    /// Returns a channel that turns true when the workers must release their runs.
    pub(super) fn leaves(&self) -> watch::Receiver<bool> {
        self.0.leaves.subscribe()
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        let mut runs = self.0.runs.lock();
        runs.remove(&self.1);
        if runs.is_empty() {
            self.0.empty.notify_waiters();
        }
    }
}
