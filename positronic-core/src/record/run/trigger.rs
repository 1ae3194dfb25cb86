//! Triggers, which start a prompt at a given time.
//!
//! A tool sets a [`Trigger`] with its result, and the same append stores it as a [`Timer`]: with the brain
//! to start, and its owner. The append that begins the started run deletes or reschedules the timer. So a
//! trigger fires exactly once, even with several workers and crashes.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::actor::Actor;
use super::budget::Budget;
use super::scheduled::Scheduled;
use crate::record::encoding::micros::micros;
use crate::record::encoding::skip::is_default;
use crate::record::ids::{RunId, Timestamp, TriggerId};

/// How a message or a trigger treats a previous run of its conversation that is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Busy {
    /// A message goes to the open loop, which reads it when pending items are decided. A trigger fires when the run is
    /// over.
    #[default]
    Queue,
    /// It cancels the run, whose open calls get results, and begins the next one.
    Cancel,
}

/// Starts a prompt at a given time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// Its id.
    pub id: TriggerId,
    /// The task of the started prompt, in words.
    pub what: String,
    /// When it fires next.
    pub due: Timestamp,
    /// The interval, stored in microseconds; `None` for one that fires once.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::record::encoding::micros::optional")]
    pub every: Option<Duration>,
    /// How it treats a previous run of its conversation that is not over.
    #[serde(default, skip_serializing_if = "is_default")]
    pub busy: Busy,
}

impl Trigger {
    /// Creates a trigger that fires once.
    pub fn once(id: TriggerId, what: impl Into<String>, due: Timestamp) -> Self {
        Self { id, what: what.into(), due, every: None, busy: Busy::Queue }
    }

    /// Makes it repeat at this interval.
    #[must_use]
    pub fn every(mut self, pause: Duration) -> Self {
        self.every = Some(pause);
        self
    }

    /// Returns its next time after a given time; `None` for one that fires once. Missed times are skipped.
    #[must_use]
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let every = i64::try_from(micros(self.every?).max(1)).unwrap_or(i64::MAX);
        let missed = now.0.saturating_sub(self.due.0).max(0) / every;
        Some(Timestamp(self.due.0.saturating_add(every.saturating_mul(missed.saturating_add(1)))))
    }
}

/// A change of a trigger by a tool, recorded with the tool's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TriggerChange {
    /// Sets a trigger, and replaces the one with the same id.
    Set(Trigger),
    /// Deletes a trigger.
    Deleted(TriggerId),
}

/// The trigger that started a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fired {
    /// The trigger, with the time that it was due.
    pub trigger: Trigger,
    /// The run that set it; where that run was started by a trigger outside of a conversation, the first of that chain.
    pub origin: RunId,
}

/// A stored trigger, with what it starts and its owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timer {
    /// The trigger, with its next time.
    pub trigger: Trigger,
    /// The title of the brain that it starts.
    pub brain: Arc<str>,
    /// The brain's options.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub options: Value,
    /// The user that the started run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The conversation of the started run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The budget of the started run, if the run that set the trigger was started with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Box<Budget>>,
    /// See [`Fired::origin`].
    pub origin: RunId,
    /// Who has started the run that set the trigger: its runs are started in this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starter: Option<Box<Actor>>,
    /// How often it has fired.
    #[serde(default)]
    pub fired: u32,
    /// The tick of a schedule that this timer starts; `None` for a trigger. Such a timer is not stored: the schedule is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<Box<Scheduled>>,
}

impl Timer {
    /// Reschedules it after firing.
    #[must_use]
    pub fn put_off(mut self, next: Timestamp) -> Self {
        self.trigger.due = next;
        self.fired = self.fired.saturating_add(1);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_times_are_skipped() {
        let once = Trigger::once(TriggerId::new("t"), "water", Timestamp(100));
        let often = once.clone().every(Duration::from_micros(10));

        assert_eq!(once.next(Timestamp(500)), None);
        for (now, next) in [(90, 110), (100, 110), (109, 110), (110, 120), (1234, 1240)] {
            assert_eq!(often.next(Timestamp(now)), Some(Timestamp(next)), "{now}");
        }
        let strange = Trigger { every: Some(Duration::ZERO), ..once };
        assert_eq!(strange.next(Timestamp(500)), Some(Timestamp(501)));
    }
}
