//! Cache of the histories of conversations, so that a further message to one reads none of its earlier runs.

use std::sync::Arc;

use indexmap::IndexMap;
use parking_lot::Mutex;

use crate::projection::History;
use crate::record::{RunId, RunSummary, Seq, Timestamp};

/// The maximum number of conversations. A history takes a little more memory than the messages of its conversation.
const CONVERSATIONS: usize = 64;

/// The histories up to the last runs of conversations, the most recently used one last. Clones share them.
#[derive(Clone, Default)]
pub(in crate::runner) struct Histories(Arc<Mutex<IndexMap<RunId, CachedHistory>>>);

struct CachedHistory {
    /// The start and the length of the run's log: another run may get the id of a removed one.
    log: (Timestamp, Seq),
    history: History,
}

const fn log_of(row: &RunSummary) -> (Timestamp, Seq) {
    (row.started, row.next)
}

impl Histories {
    /// Returns whether there may be a history up to the end of a run.
    pub(in crate::runner) fn may_have(&self, run: &RunId) -> bool {
        self.0.lock().contains_key(run)
    }

    /// Returns the history up to the end of a run.
    pub(in crate::runner) fn get(&self, row: &RunSummary) -> Option<History> {
        let mut all = self.0.lock();
        let (index, last) = (all.get_index_of(&row.run)?, all.len() - 1);
        all.move_index(index, last);
        all.get(&row.run).filter(|known| known.log == log_of(row)).map(|known| known.history.clone())
    }

    /// Adds the history up to the end of a run. It replaces that up to the run before it.
    pub(in crate::runner) fn put(&self, row: &RunSummary, history: History) {
        let mut all = self.0.lock();
        if let Some(before) = &row.after {
            all.shift_remove(before);
        }
        all.shift_remove(&row.run);
        if all.len() == CONVERSATIONS {
            all.shift_remove_index(0);
        }
        all.insert(row.run.clone(), CachedHistory { log: log_of(row), history });
    }
}
