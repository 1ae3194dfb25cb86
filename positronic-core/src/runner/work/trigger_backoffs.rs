//! Pauses of triggers that could not fire: until a retry, or until their next time if a retry fails again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::record::{Timer, Timestamp, TriggerId};

/// The first and the longest pause of a trigger that could not fire.
const REST: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(5)];

/// The paused triggers, with the time at which they were due. Clones share them.
#[derive(Clone, Default)]
pub(in crate::runner) struct TriggerBackoffs(Arc<Mutex<HashMap<TriggerId, (Timestamp, Out)>>>);

/// How long a trigger is excluded.
#[derive(Clone, Copy)]
enum Out {
    /// Until then, after a pause of this length.
    Rests(Instant, Duration),
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
            Some((_, Out::Rests(until, _))) => *until <= now,
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
        let [first, most] = REST;
        let mut all = self.0.lock();
        let rest = match all.get(&timer.trigger.id) {
            Some((_, Out::Rests(_, last))) => (*last * 2).min(most),
            Some((_, Out::Refused)) | None => first,
        };
        all.insert(timer.trigger.id.clone(), (timer.trigger.due, Out::Rests(Instant::now() + rest, rest)));
    }
}
