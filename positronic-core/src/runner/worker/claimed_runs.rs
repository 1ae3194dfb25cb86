//! The runs that a runner's own workers have claimed, and the signal to release them.

use std::collections::HashSet;
use std::sync::Arc;

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::record::RunId;

/// How long a worker may take to record the release of its run after the grace period. A failed append would be retried
/// for longer, but a container kills a process ten seconds after the signal to stop.
const RECORDING_TIME: Duration = Duration::from_secs(1);

/// The runs that a runner's own workers have claimed.
#[derive(Clone, Default)]
pub(in crate::runner) struct RunRegistry(Arc<Registry>);

#[derive(Default)]
struct Registry {
    runs: Mutex<HashSet<RunId>>,
    /// What became of the runs that left the registry since the release.
    release: Mutex<Release>,
    leaves: watch::Sender<bool>,
    /// Notified when the last run leaves the registry.
    empty: Notify,
}

/// The outcome of [`Runner::release`](crate::runner::Runner::release). Runs that ended before their release are in neither list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Release {
    /// The runs that other workers can claim at once.
    pub released: Vec<RunId>,
    /// The runs that stay claimed until this process ends: their code did not end in time, or the store could not record their release.
    pub kept: Vec<RunId>,
}

impl Release {
    /// Adds what another runner of the process has released.
    pub(in crate::runner) fn add(&mut self, other: Self) {
        self.released.extend(other.released);
        self.kept.extend(other.kept);
        self.sort();
    }

    pub(super) fn sort(&mut self) {
        for runs in [&mut self.released, &mut self.kept] {
            runs.sort();
            runs.dedup();
        }
    }
}

/// Registers a run until it is dropped.
pub(in crate::runner) struct RunGuard {
    registry: Arc<Registry>,
    run: RunId,
    departure: Departure,
}

/// What becomes of a run's claim when the run leaves the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Departure {
    /// The run is not claimed by this runner: it has ended, another worker has claimed it, or its claim was never recorded.
    Unclaimed,
    /// Its release is recorded.
    Released,
    /// Its release could not be recorded, so it is claimed until the process ends.
    Kept,
}

impl RunRegistry {
    /// Registers a run, unless it is registered. The caller checks for a release only afterwards, since a release
    /// waits for the registered runs.
    pub(in crate::runner) fn guard(&self, run: &RunId) -> Option<RunGuard> {
        let fresh = self.0.runs.lock().insert(run.clone());
        fresh.then(|| RunGuard { registry: Arc::clone(&self.0), run: run.clone(), departure: Departure::Unclaimed })
    }

    /// Returns whether a run is registered.
    pub(in crate::runner) fn has(&self, run: &RunId) -> bool {
        self.0.runs.lock().contains(run)
    }

    /// Returns whether the runner releases its runs and claims no more.
    pub(in crate::runner) fn is_leaving(&self) -> bool {
        *self.0.leaves.borrow()
    }

    /// Waits until the runner releases its runs.
    pub(in crate::runner) async fn left(&self) {
        _ = self.leaves().wait_for(|leaves| *leaves).await;
    }

    /// Tells the workers to release their runs, waits for the last one, and returns which were released. Work in flight may end
    /// within the grace period.
    pub(in crate::runner) async fn release(&self, grace: Duration) -> Release {
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
        _ = tokio::time::timeout(grace.saturating_add(RECORDING_TIME), released).await;
        let mut release = self.0.release.lock().clone();
        release.kept.extend(self.0.runs.lock().iter().cloned());
        release.sort();
        if !release.kept.is_empty() {
            tracing::warn!(runs = ?release.kept, "not all runs could be released");
        }
        release
    }

    /// Returns a channel that turns true when the workers must release their runs.
    pub(super) fn leaves(&self) -> watch::Receiver<bool> {
        self.0.leaves.subscribe()
    }
}

impl RunGuard {
    pub(super) const fn departs(&mut self, departure: Departure) {
        self.departure = departure;
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        if *self.registry.leaves.borrow() {
            let mut release = self.registry.release.lock();
            match self.departure {
                Departure::Unclaimed => {}
                Departure::Released => release.released.push(self.run.clone()),
                Departure::Kept => release.kept.push(self.run.clone()),
            }
        }
        let mut runs = self.registry.runs.lock();
        runs.remove(&self.run);
        if runs.is_empty() {
            self.registry.empty.notify_waiters();
        }
    }
}
