//! Pauses after failures of a run, so that a run that fails repeatedly does not overload its store: one second,
//! doubled after each failure up to five minutes, until a signal arrives.
//!
//! The store has the same pause, for other workers and for the time after a restart.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::record::{Event, RunId, RunSummary, Seq};
use crate::runner::ResumeError;
use crate::store::{Deferral, EventStore};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// The paused runs of a runner. Clones share them.
#[derive(Clone, Default)]
pub(in crate::runner) struct ResumeBackoffs(Arc<Mutex<HashMap<RunId, ResumeBackoff>>>);

struct ResumeBackoff {
    reason: Option<ResumeError>,
    failures: u32,
    until: Instant,
    /// The number of the next event at the failure.
    next: Seq,
}

/// The rest of a run's pause.
pub(super) struct Rest {
    pub(super) reason: Option<ResumeError>,
    pub(super) left: Duration,
    pub(super) since: Seq,
}

impl ResumeBackoffs {
    /// Pauses a run after a failure at event `next`, and returns what the store is told of it.
    pub(in crate::runner) fn add(&self, run: &RunId, next: Seq, reason: Option<ResumeError>) -> Deferral {
        let now = Instant::now();
        let mut all = self.0.lock();
        // A failure long ago is unrelated.
        all.retain(|_, last| last.until + LONGEST > now);
        let failures = all.get(run).map_or(0, |last| last.failures).saturating_add(1);
        let pause = FIRST.saturating_mul(1 << (failures - 1).min(16)).min(LONGEST);
        all.insert(run.clone(), ResumeBackoff { reason, failures, until: now + pause, next });
        Deferral::Paused { failures, pause }
    }

    /// Continues the count of failures that other workers have begun. The run is not paused.
    pub(super) fn know(&self, run: &RunId, failures: u32) {
        if failures > 0 {
            let known = ResumeBackoff { reason: None, failures, until: Instant::now(), next: Seq::default() };
            self.0.lock().entry(run.clone()).or_insert(known);
        }
    }

    /// Returns how often workers have failed at a run in succession.
    pub(super) fn failures(&self, run: &RunId) -> u32 {
        self.0.lock().get(run).map_or(0, |last| last.failures)
    }

    /// Returns the runs that have failed here and whose pause is over.
    pub(super) fn over(&self) -> Vec<RunId> {
        let now = Instant::now();
        self.0.lock().iter().filter(|(_, last)| last.until <= now).map(|(run, _)| run.clone()).collect()
    }

    /// Returns the rest of a run's pause.
    pub(super) fn rest(&self, run: &RunId) -> Option<Rest> {
        let all = self.0.lock();
        let setback = all.get(run)?;
        let left = setback.until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then(|| Rest { reason: setback.reason.clone(), left, since: setback.next })
    }

    /// Ends the pause of a run if one of the events after its failure is a signal.
    pub(super) fn records_signal(&self, run: &RunId, events: &[Arc<Event>]) -> bool {
        let has_signal = events.iter().any(|event| event.epoch.is_none());
        if has_signal {
            self.end(run);
        }
        has_signal
    }

    /// Ends the pause of a run that is resumed explicitly.
    pub(in crate::runner) fn end(&self, run: &RunId) {
        if let Some(setback) = self.0.lock().get_mut(run) {
            setback.until = Instant::now();
        }
    }

    /// Forgets the failures of a run that has made progress, and returns whether there were any.
    pub(super) fn clear(&self, run: &RunId) -> bool {
        self.0.lock().remove(run).is_some()
    }
}

/// Returns the number of a run's next event after those that a failed claim has recorded; a signal among them counts as news.
pub(super) async fn after_claims(store: &dyn EventStore, row: &RunSummary) -> Seq {
    let events = store.read(&row.run, row.next, usize::MAX).await.unwrap_or_default();
    let last = events.last().filter(|_| events.iter().all(|event| event.epoch.is_some()));
    last.map_or(row.next, |last| last.seq.next())
}
