//! The runs whose logs have grown, for programs that follow many runs.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{EventStore, Watcher};
use crate::record::{RunId, Seq};

/// Says which runs to leave out.
type Skips = Box<dyn Fn(&RunId) -> bool + Send + Sync>;

/// Collects the runs of a store whose logs have grown.
///
/// ```
/// # use positronic_core::store::{EventStore, GrownRuns};
/// # async fn example(store: &dyn EventStore) {
/// let grown = GrownRuns::of(store);
/// loop {
///     grown.wait().await;
///     for run in grown.take() {
///         println!("{run} has new events");
///     }
/// }
/// # }
/// ```
#[derive(Default)]
pub struct GrownRuns {
    runs: Mutex<BTreeSet<RunId>>,
    bell: Notify,
    skips: Option<Skips>,
}

impl GrownRuns {
    /// Collects the runs that grow from now on, until it is dropped.
    pub fn of(store: &dyn EventStore) -> Arc<Self> {
        Self::watching(store, Self::default())
    }

    /// Collects as [`GrownRuns::of`] does, except for the runs that are to be skipped when they grow.
    pub fn except(store: &dyn EventStore, skips: impl Fn(&RunId) -> bool + Send + Sync + 'static) -> Arc<Self> {
        Self::watching(store, Self { skips: Some(Box::new(skips)), ..Self::default() })
    }

    fn watching(store: &dyn EventStore, grown: Self) -> Arc<Self> {
        let grown = Arc::new(grown);
        store.watch(None, Arc::downgrade(&grown) as Weak<dyn Watcher>);
        grown
    }

    /// Waits until runs have been collected or added since the last wait. Cancel-safe.
    pub async fn wait(&self) {
        self.bell.notified().await;
    }

    /// Takes the runs that have been collected.
    #[must_use]
    pub fn take(&self) -> BTreeSet<RunId> {
        std::mem::take(&mut self.runs.lock())
    }

    /// Adds a run as if its log had grown.
    pub fn add(&self, run: RunId) {
        self.runs.lock().insert(run);
        self.bell.notify_one();
    }

    /// Returns runs that were taken and not handled, without a wake-up.
    pub fn put_back(&self, runs: impl IntoIterator<Item = RunId>) {
        self.runs.lock().extend(runs);
    }
}

impl Watcher for GrownRuns {
    fn appended(&self, run: &RunId, _: Seq) {
        if self.skips.as_ref().is_none_or(|skips| !skips(run)) {
            self.add(run.clone());
        }
    }
}

impl fmt::Debug for GrownRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrownRuns").field("runs", &*self.runs.lock()).finish_non_exhaustive()
    }
}
