//! Cached timelines of runs: one fold per run, which all its readers share.
//!
//! A fold knows after which event each node last changed, so a reader that has seen the events up to a number gets exactly
//! the nodes that changed since, however far the fold is.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use positronic_core::prices::PriceTable;
use positronic_core::projection::timeline::{Node, NodeId, Timeline};
use positronic_core::record::{Event, RunId, Seq};
use positronic_core::runner::Client;
use positronic_core::store::StoreError;

use crate::run_cache::RunCache;

/// How many runs are cached.
const CACHED: usize = 32;
/// How many events are read at once.
const CHUNK: usize = 1024;

/// The folds of the runs that were read last.
pub(crate) struct Folds {
    client: Client,
    prices: Option<Arc<PriceTable>>,
    cached: RunCache<SharedFold>,
}

/// The fold of a run.
pub(crate) type SharedFold = Arc<tokio::sync::Mutex<Fold>>;

/// A timeline, and after which event each node last changed.
pub(crate) struct Fold {
    pub(crate) timeline: Timeline,
    last_change: Vec<Seq>,
    changes: BTreeSet<(Seq, NodeId)>,
}

impl Folds {
    pub(crate) fn new(client: Client, prices: Option<Arc<PriceTable>>) -> Self {
        Self { client, prices, cached: RunCache::new(CACHED) }
    }

    /// Returns the fold of a run, up to at least the end of its log as of now.
    pub(crate) async fn of(&self, run: &RunId) -> Result<SharedFold, StoreError> {
        let shared = self.cached(run);
        self.catch_up(run, &mut *shared.lock().await).await?;
        Ok(shared)
    }

    async fn catch_up(&self, run: &RunId, fold: &mut Fold) -> Result<(), StoreError> {
        loop {
            let events = self.client.store().read(run, fold.next(), CHUNK).await?;
            events.iter().for_each(|event| fold.apply(event));
            if events.len() < CHUNK {
                return Ok(());
            }
        }
    }

    fn cached(&self, run: &RunId) -> SharedFold {
        self.cached.get(run, || {
            let timeline = Timeline::new().track_changes();
            let timeline = match &self.prices {
                Some(prices) => timeline.priced(Arc::clone(prices)),
                None => timeline,
            };
            let fold = Fold { timeline, last_change: Vec::new(), changes: BTreeSet::new() };
            Arc::new(tokio::sync::Mutex::new(fold))
        })
    }
}

impl Fold {
    /// Returns the number of the next event.
    pub(crate) fn next(&self) -> Seq {
        self.timeline.seq.map_or(Seq(0), Seq::next)
    }

    fn apply(&mut self, event: &Event) {
        self.timeline.apply(event);
        for id in self.timeline.take_changes() {
            let Ok(index) = usize::try_from(id.0) else { continue };
            if let Some(last) = self.last_change.get_mut(index) {
                self.changes.remove(&(*last, id));
                *last = event.seq;
            } else {
                self.last_change.push(event.seq);
            }
            self.changes.insert((event.seq, id));
        }
    }

    /// Returns the nodes that began or changed with the events after a number, or all of them.
    pub(crate) fn changed_after(&self, seen: Option<Seq>) -> Vec<&Node> {
        let from = seen.map_or(Bound::Unbounded, |seen| Bound::Excluded((seen, NodeId(u32::MAX))));
        let mut ids: Vec<_> = self.changes.range((from, Bound::Unbounded)).map(|(_, id)| *id).collect();
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| self.timeline.node(id)).collect()
    }
}
