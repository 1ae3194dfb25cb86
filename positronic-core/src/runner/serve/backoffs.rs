//! Pauses after failures: one second, doubled after each failure up to five minutes.
//!
//! A run that fails repeatedly does not overload its store; a signal ends its pause. The store has the same pause, for
//! other workers and for the time after a restart. A trigger whose failure no retry can mend is excluded until its next
//! time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::record::{Event, RunId, RunSummary, Seq, Timer, Timestamp, TriggerId};
use crate::runner::ResumeError;
use crate::store::{Deferral, EventStore, LONGEST_PAUSE, StoreError, pause_after};

/// How often to check a run that another worker has claimed, that is quarantined, or whose row could not be read, and how often
/// the queue lists the store.
pub(super) const POLL: Duration = Duration::from_secs(1);

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
pub(super) struct RemainingPause {
    pub(super) reason: Option<ResumeError>,
    pub(super) left: Duration,
    pub(super) since: Seq,
}

impl ResumeBackoffs {
    /// Pauses a run after a failure at event `next`, here and in the store. Returns the rest of the pause.
    pub(super) async fn record(
        &self,
        store: &dyn EventStore,
        run: &RunId,
        next: Seq,
        reason: Option<ResumeError>,
    ) -> Option<Duration> {
        let paused = self.add(run, next, reason);
        defer(store, run, next, &paused).await;
        self.remaining(run).map(|pause| pause.left)
    }

    /// Returns the rest of a run's pause, which a signal after the failure ends.
    pub(super) async fn pause(&self, store: &dyn EventStore, run: &RunId) -> Result<Option<Duration>, StoreError> {
        let Some(pause) = self.remaining(run) else { return Ok(None) };
        let events = store.read(run, pause.since, usize::MAX).await?;
        Ok((!self.records_signal(run, &events)).then_some(pause.left))
    }

    /// Pauses a run after a failure at event `next`, and returns the pause for the store.
    pub(in crate::runner) fn add(&self, run: &RunId, next: Seq, reason: Option<ResumeError>) -> Deferral {
        let now = Instant::now();
        let mut all = self.0.lock();
        // A failure long ago is unrelated.
        all.retain(|_, last| last.until + LONGEST_PAUSE > now);
        let failures = all.get(run).map_or(0, |last| last.failures).saturating_add(1);
        let pause = pause_after(failures);
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
    pub(super) fn remaining(&self, run: &RunId) -> Option<RemainingPause> {
        let all = self.0.lock();
        let backoff = all.get(run)?;
        let left = backoff.until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then(|| RemainingPause { reason: backoff.reason.clone(), left, since: backoff.next })
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
        if let Some(backoff) = self.0.lock().get_mut(run) {
            backoff.until = Instant::now();
        }
    }

    /// Forgets the failures of a run that has made progress, and returns whether there were any.
    pub(super) fn clear(&self, run: &RunId) -> bool {
        self.0.lock().remove(run).is_some()
    }
}

/// Tells the store when a run is due again.
pub(in crate::runner) async fn defer(store: &dyn EventStore, run: &RunId, next: Seq, deferral: &Deferral) {
    if let Err(error) = store.defer(run, next, deferral).await {
        tracing::debug!(%run, %error, "the store does not know when the run is due again");
    }
}

/// Returns the number of a run's next event after those that a failed claim has recorded; a signal among them counts as news.
pub(super) async fn after_claims(store: &dyn EventStore, row: &RunSummary) -> Seq {
    let events = store.read(&row.run, row.next, usize::MAX).await.unwrap_or_default();
    let last = events.last().filter(|_| events.iter().all(|event| event.epoch.is_some()));
    last.map_or(row.next, |last| last.seq.next())
}

/// The paused triggers, with the time at which they were due. Clones share them.
#[derive(Clone, Default)]
pub(in crate::runner) struct TriggerBackoffs(Arc<Mutex<HashMap<TriggerId, (Timestamp, Out)>>>);

/// How long a trigger is excluded.
#[derive(Clone, Copy)]
enum Out {
    /// Until then, after this many failures.
    Paused(Instant, u32),
    /// Until its next time.
    Refused,
}

impl TriggerBackoffs {
    /// Returns the due triggers that are not paused here.
    pub(super) fn ready(&self, mut due: Vec<Timer>) -> Vec<Timer> {
        let now = Instant::now();
        let mut out = self.0.lock();
        // A trigger that fired elsewhere, was deleted or is due at another time starts afresh.
        out.retain(|id, (at, _)| due.iter().any(|timer| timer.trigger.id == *id && timer.trigger.due == *at));
        due.retain(|timer| match out.get(&timer.trigger.id) {
            Some((_, Out::Refused)) => false,
            Some((_, Out::Paused(until, _))) => *until <= now,
            None => true,
        });
        due
    }

    /// Excludes a trigger until its next time.
    pub(super) fn refuse(&self, timer: &Timer) {
        self.0.lock().insert(timer.trigger.id.clone(), (timer.trigger.due, Out::Refused));
    }

    /// Pauses a trigger that could not fire: until its next time, or if a retry may succeed for a second, doubled
    /// after each failure, up to five minutes.
    pub(super) fn note(&self, timer: &Timer, may_retry: bool) {
        if !may_retry {
            return self.refuse(timer);
        }
        let mut all = self.0.lock();
        let failures = match all.get(&timer.trigger.id) {
            Some((_, Out::Paused(_, failures))) => failures.saturating_add(1),
            Some((_, Out::Refused)) | None => 1,
        };
        let until = Instant::now() + pause_after(failures);
        all.insert(timer.trigger.id.clone(), (timer.trigger.due, Out::Paused(until, failures)));
    }
}
