//! The runs that a runner's own workers have in hand, and how a runner lets go of all of them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::Runner;
use crate::record::RunId;

/// What is said of a run that a runner does not take, or take any further, since it lets go of all of them.
pub(super) const LEAVES: &str = "the worker releases its runs; another runner continues them";

/// How long a worker may take to write that it has released its run: a store that fails is asked again for six seconds.
const LAST_WORDS: Duration = Duration::from_secs(7);

/// The runs that a runner's own workers have in hand.
#[derive(Clone, Default)]
pub(super) struct RunRegistry(Arc<Registry>);

#[derive(Default)]
struct Registry {
    runs: Mutex<HashSet<RunId>>,
    leaves: watch::Sender<bool>,
    /// Rings when the last run is out of hand.
    empty: Notify,
}

/// Says that a run is in hand, until it is dropped.
pub(super) struct RunGuard(Arc<Registry>, RunId);

impl RunRegistry {
    /// Takes a run in hand, unless it is. Whoever begins to work on it looks only then whether the runs are let go of: who
    /// lets go of them waits for what is in hand.
    pub(super) fn grip(&self, run: &RunId) -> Option<RunGuard> {
        let fresh = self.0.runs().insert(run.clone());
        fresh.then(|| RunGuard(Arc::clone(&self.0), run.clone()))
    }

    /// Says whether a run is in hand.
    pub(super) fn has(&self, run: &RunId) -> bool {
        self.0.runs().contains(run)
    }

    /// Says whether the runs are let go of, and none is taken any more.
    pub(super) fn is_leaving(&self) -> bool {
        *self.0.leaves.borrow()
    }

    /// Waits until the runs are let go of.
    pub(super) async fn left(&self) {
        _ = self.leaves().wait_for(|leaves| *leaves).await;
    }

    /// Tells each worker when it has to let go.
    pub(super) fn leaves(&self) -> watch::Receiver<bool> {
        self.0.leaves.subscribe()
    }
}

impl Registry {
    fn runs(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        let mut runs = self.0.runs();
        runs.remove(&self.1);
        if runs.is_empty() {
            self.0.empty.notify_waiters();
        }
    }
}

impl Runner {
    /// Releases all runs, so that other workers can claim them at once: nothing new begins, and what is in flight is
    /// recorded if it ends within the builder's `release_grace`, and abandoned else; a plugin that prepares an iteration is not waited
    /// for. From now on, neither this runner nor a clone of it starts or resumes a run.
    ///
    /// It returns when the last run is released, and at the latest seven seconds after the grace: code that blocks its thread
    /// and a store that cannot be written keep it no longer. A process that ends before leaves what was in flight as a crash
    /// does.
    pub async fn release(&self) {
        let hand = &self.in_hand.0;
        hand.leaves.send_replace(true);
        let released = async {
            loop {
                let empty = hand.empty.notified();
                if hand.runs().is_empty() {
                    return;
                }
                empty.await;
            }
        };
        let patience = self.release_grace.saturating_add(LAST_WORDS);
        if tokio::time::timeout(patience, released).await.is_err() {
            tracing::warn!(runs = hand.runs().len(), "not all runs could be released in time");
        }
    }
}
