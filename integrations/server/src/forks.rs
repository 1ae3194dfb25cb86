//! The forks of each run, found in the rows of runs: each row is read once.

use std::collections::HashMap;

use positronic_core::record::{RunId, RunSummary, Timestamp};
use positronic_core::store::{EventStore, RunFilter, StoreError};

/// The most runs that the first refresh reads, the last started ones.
const MOST: usize = 10_000;
/// How many rows a refresh reads first, and at once at most.
const FIRST_PAGE: usize = 8;
const PAGE: usize = 512;
/// Clocks of machines differ: a later refresh reads the runs again that began this long before the last known one.
const OVERLAP_MICROS: i64 = 5_000_000;

/// The forks that are known, by the runs of which they are forks.
#[derive(Default)]
pub(crate) struct Forks(tokio::sync::Mutex<KnownForks>);

#[derive(Default)]
struct KnownForks {
    forks: HashMap<RunId, Vec<RunId>>,
    /// When the last known run began.
    until: Option<Timestamp>,
}

impl Forks {
    /// Returns the latest forks of a run, the last one first.
    pub(crate) async fn of(&self, store: &dyn EventStore, run: &RunId) -> Result<Vec<RunId>, StoreError> {
        let mut known = self.0.lock().await;
        known.refresh(store).await?;
        Ok(known.forks.get(run).map(|forks| forks.iter().rev().cloned().collect()).unwrap_or_default())
    }
}

impl KnownForks {
    /// Reads the rows of the runs that have begun since the last refresh.
    async fn refresh(&mut self, store: &dyn EventStore) -> Result<(), StoreError> {
        let from = self.until.map(|until| Timestamp(until.0.saturating_sub(OVERLAP_MICROS)));
        let is_new = |row: &RunSummary| from.is_none_or(|from| row.started >= from);
        let (mut new, mut read) = (Vec::<RunSummary>::new(), 0);
        let mut filter = RunFilter::builder().limit(FIRST_PAGE).build();
        while read < MOST {
            let page = store.runs(&filter).await?;
            let is_last = page.len() < filter.limit.unwrap_or_default() || !page.last().is_some_and(is_new);
            read += page.len();
            filter.after = page.last().map(RunSummary::cursor);
            filter.limit = filter.limit.map(|limit| (limit * 4).min(PAGE));
            new.extend(page.into_iter().filter(is_new));
            if is_last {
                break;
            }
        }
        self.until = self.until.max(new.first().map(|row| row.started));
        for row in new.into_iter().rev() {
            let Some((origin, _)) = row.forked_from else { continue };
            let forks = self.forks.entry(origin).or_default();
            if !forks.contains(&row.run) {
                forks.push(row.run);
            }
        }
        Ok(())
    }
}
