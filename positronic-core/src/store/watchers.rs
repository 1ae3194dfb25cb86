//! Who is told of appends.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::Watcher;
use crate::record::RunId;

/// The watchers of one store. One that has been dropped is forgotten when it would have been told.
#[derive(Default)]
pub(super) struct Watchers {
    of_runs: HashMap<RunId, Vec<Weak<dyn Watcher>>>,
    of_all: Vec<Weak<dyn Watcher>>,
}

impl Watchers {
    /// Tells a watcher of one run, or of all, from now on.
    pub(super) fn add(&mut self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
        match run {
            None => self.of_all.push(watcher),
            Some(run) => self.of_runs.entry(run.clone()).or_default().push(watcher),
        }
    }

    /// Returns whom an append to a run concerns. They are called after the store's lock is released.
    pub(super) fn of(&mut self, run: &RunId) -> Vec<Arc<dyn Watcher>> {
        let mut watchers = living(&mut self.of_all);
        if let Some(of_run) = self.of_runs.get_mut(run) {
            watchers.append(&mut living(of_run));
            if of_run.is_empty() {
                self.of_runs.remove(run);
            }
        }
        watchers
    }

    /// Says whether nobody watches any more.
    #[cfg(feature = "sqlite")]
    pub(super) fn is_empty(&mut self) -> bool {
        self.of_all.retain(|watcher| watcher.strong_count() > 0);
        self.of_runs.retain(|_, watchers| {
            watchers.retain(|watcher| watcher.strong_count() > 0);
            !watchers.is_empty()
        });
        self.of_all.is_empty() && self.of_runs.is_empty()
    }
}

fn living(watchers: &mut Vec<Weak<dyn Watcher>>) -> Vec<Arc<dyn Watcher>> {
    watchers.retain(|watcher| watcher.strong_count() > 0);
    watchers.iter().filter_map(Weak::upgrade).collect()
}
