//! How long a run rests after it could not be gone on with, so that one that fails again and again does not keep its
//! store busy: a second, then twice as long each time, as long as nothing is sent to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::open::ResumeError;
use crate::record::{Event, RunId, Seq};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// The runs of a runner that rest. Clones share them.
#[derive(Clone, Default)]
pub(super) struct RetryBackoffs(Arc<Mutex<HashMap<RunId, RetryBackoff>>>);

struct RetryBackoff {
    reason: Option<ResumeError>,
    pause: Duration,
    until: Instant,
    /// The number of the next event when it failed.
    next: Seq,
}

/// What is left of a run's rest.
pub(super) struct Rest {
    pub(super) reason: Option<ResumeError>,
    pub(super) left: Duration,
    pub(super) since: Seq,
}

impl RetryBackoffs {
    fn all(&self) -> MutexGuard<'_, HashMap<RunId, RetryBackoff>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a run could not be gone on with, when its next event was `next`.
    pub(super) fn add(&self, run: &RunId, next: Seq, reason: Option<ResumeError>) {
        let now = Instant::now();
        let mut all = self.all();
        // A failure long after the last one has nothing to do with it.
        all.retain(|_, last| last.until + LONGEST > now);
        let last = all.get(run).map(|last| last.pause);
        let pause = last.map_or(FIRST, |last| (last * 2).min(LONGEST));
        all.insert(run.clone(), RetryBackoff { reason, pause, until: now + pause, next });
    }

    /// Says whether a run rests.
    pub(super) fn rest(&self, run: &RunId) -> Option<Rest> {
        let all = self.all();
        let setback = all.get(run)?;
        let left = setback.until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then(|| Rest { reason: setback.reason.clone(), left, since: setback.next })
    }

    /// Ends the rest of a run where one of these events, which came after its failure, is a signal.
    pub(super) fn hear(&self, run: &RunId, events: &[Arc<Event>]) -> bool {
        let heard = events.iter().any(|event| event.epoch.is_none());
        if heard {
            self.end(run);
        }
        heard
    }

    /// Ends the rest of a run, since somebody wants it to go on now.
    pub(super) fn end(&self, run: &RunId) {
        if let Some(setback) = self.all().get_mut(run) {
            setback.until = Instant::now();
        }
    }

    /// Forgets what a run has failed at, since it has gone on.
    pub(super) fn clear(&self, run: &RunId) {
        self.all().remove(run);
    }
}
