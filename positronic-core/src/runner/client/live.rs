//! Live deltas: the pieces of answers, from a run's worker to its readers in the same process.
//!
//! A runner and its clones share one channel per run, also between several handles. Each reader has a bounded queue;
//! a delta that does not fit is dropped for that reader only. The channel keeps the answers in flight for readers that join
//! later.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::answers_in_flight::AnswersInFlight;
use super::shared_log::SharedLog;
use crate::record::{Delta, RunId, Seq};

/// The capacity of a reader's queue.
const ROOM: usize = 1024;

/// A delta, and the number of the first event that may follow it.
pub(super) type NumberedDelta = (Seq, Delta);

/// The channels of all runs of a runner. Clones share them.
#[derive(Clone, Default)]
pub(in crate::runner) struct LiveDeltas(Arc<Mutex<HashMap<RunId, Weak<LiveRun>>>>);

/// The channel of a run. It exists as long as a worker or a reader.
pub(in crate::runner) struct LiveRun {
    run: RunId,
    all: LiveDeltas,
    readers: Mutex<Vec<mpsc::Sender<NumberedDelta>>>,
    pub(in crate::runner) answers: AnswersInFlight,
    shared: SharedLog,
}

impl LiveDeltas {
    /// Returns the channel of a run.
    pub(in crate::runner) fn of(&self, run: &RunId) -> Arc<LiveRun> {
        let mut all = self.0.lock();
        if let Some(known) = all.get(run).and_then(Weak::upgrade) {
            return known;
        }
        let live = Arc::new(LiveRun {
            run: run.clone(),
            all: self.clone(),
            readers: Mutex::default(),
            answers: AnswersInFlight::default(),
            shared: SharedLog::default(),
        });
        all.insert(run.clone(), Arc::downgrade(&live));
        live
    }
}

impl LiveRun {
    /// Adds a reader, which gets the deltas from now on.
    pub(super) fn subscribe(&self) -> mpsc::Receiver<NumberedDelta> {
        let (sender, receiver) = mpsc::channel(ROOM);
        self.readers.lock().push(sender);
        receiver
    }

    /// Returns whether the run has readers.
    pub(in crate::runner) fn is_read(&self) -> bool {
        self.readers.lock().iter().any(|reader| !reader.is_closed())
    }

    /// Returns what several readers share; `None` for a single one.
    pub(super) fn shared(&self) -> Option<&SharedLog> {
        let has_several = self.readers.lock().iter().filter(|reader| !reader.is_closed()).nth(1).is_some();
        if !has_several {
            self.shared.clear();
        }
        has_several.then_some(&self.shared)
    }

    /// Keeps a delta and sends it to every reader with room for it. It precedes event `after`.
    pub(in crate::runner) fn send(&self, after: Seq, delta: &Delta) {
        self.answers.delta(delta);
        let has_ended = |sent| matches!(sent, Err(mpsc::error::TrySendError::Closed(_)));
        self.readers.lock().retain(|reader| !has_ended(reader.try_send((after, delta.clone()))));
    }
}

impl Drop for LiveRun {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        // A new channel may have replaced it.
        if all.get(&self.run).is_some_and(|known| known.strong_count() == 0) {
            all.remove(&self.run);
        }
    }
}
