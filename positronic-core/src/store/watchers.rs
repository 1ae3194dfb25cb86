//! The watchers of a store.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::Watcher;
use crate::record::RunId;

/// How many watchers may be added before dropped ones are removed.
const FULL: usize = 256;

/// The watchers of a store, for implementations of [`EventLog::watch`](super::EventLog::watch).
///
/// A dropped one is removed at its next notification, or when the number of watchers has doubled since the last cleanup.
#[derive(Default)]
pub struct Watchers {
    of_runs: HashMap<RunId, Vec<Weak<dyn Watcher>>>,
    of_all: Vec<Weak<dyn Watcher>>,
    /// How many were added since the last cleanup, plus those left by it.
    added: usize,
    left: usize,
}

impl std::fmt::Debug for Watchers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "watchers of {} runs, and {} of all", self.of_runs.len(), self.of_all.len())
    }
}

impl Watchers {
    /// Adds a watcher of one run, or of all.
    pub fn add(&mut self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
        match run {
            None => self.of_all.push(watcher),
            Some(run) => self.of_runs.entry(run.clone()).or_default().push(watcher),
        }
        self.added += 1;
        if self.added > FULL.max(2 * self.left) {
            self.forget_dropped();
        }
    }

    /// Returns the watchers of a run. A store calls them after it has released its lock.
    pub fn of(&mut self, run: &RunId) -> impl ExactSizeIterator<Item = Arc<dyn Watcher>> + use<> {
        let mut watchers = SmallVec::new();
        take_live(&mut self.of_all, &mut watchers);
        if let Some(of_run) = self.of_runs.get_mut(run) {
            take_live(of_run, &mut watchers);
            if of_run.is_empty() {
                self.of_runs.remove(run);
            }
        }
        watchers.into_iter()
    }

    /// Returns whether all watchers were dropped.
    pub fn is_empty(&mut self) -> bool {
        self.forget_dropped();
        self.left == 0
    }

    fn forget_dropped(&mut self) {
        self.of_all.retain(|watcher| watcher.strong_count() > 0);
        self.of_runs.retain(|_, watchers| {
            watchers.retain(|watcher| watcher.strong_count() > 0);
            !watchers.is_empty()
        });
        self.left = self.of_all.len() + self.of_runs.values().map(Vec::len).sum::<usize>();
        self.added = self.left;
    }
}

/// Removes the dropped watchers, and adds the others to a list.
fn take_live(watchers: &mut Vec<Weak<dyn Watcher>>, live: &mut SmallVec<[Arc<dyn Watcher>; 4]>) {
    watchers.retain(|watcher| watcher.strong_count() > 0);
    live.extend(watchers.iter().filter_map(Weak::upgrade));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Seq;

    struct Bell;

    impl Watcher for Bell {
        fn appended(&self, _: &RunId, _: Seq) {}
    }

    fn bell() -> Arc<dyn Watcher> {
        Arc::new(Bell)
    }

    #[test]
    fn dropped_watchers_are_removed_without_appends_to_their_runs() {
        let (mut watchers, kept) = (Watchers::default(), bell());
        watchers.add(Some(&RunId::new("kept")), Arc::downgrade(&kept));

        for run in 0..10_000 {
            watchers.add(Some(&RunId::from(format!("run-{run}"))), Arc::downgrade(&bell()));
            watchers.add(Some(&RunId::new("one")), Arc::downgrade(&bell()));
            watchers.add(None, Arc::downgrade(&bell()));
        }

        assert!(watchers.of_runs.len() + watchers.of_all.len() <= FULL + 1, "{}", watchers.of_runs.len());
        assert_eq!(watchers.of(&RunId::new("kept")).len(), 1);
    }
}
