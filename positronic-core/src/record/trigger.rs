//! Triggers: what starts a prompt at its time, without anybody saying anything.
//!
//! A tool sets a [`Trigger`] with its result, and a store keeps it as a [`Timer`] from the same append on: with the brain
//! to start, and for whom. The append that begins the started run takes the timer, or puts it off to its next time. So a
//! trigger fires once, whoever looks after it, and whoever dies meanwhile.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::budget::Budget;
use super::ids::{RunId, Timestamp, TriggerId};

/// What a message or a trigger does while the last run of its conversation is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Busy {
    /// A message is said to the open loop, which reads it when what is pending is decided. A trigger fires when the run is
    /// over.
    #[default]
    Queue,
    /// It cancels the run, whose open calls get typed results, and begins the next one.
    Cancel,
}

/// What starts a prompt at its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// Its id.
    pub id: TriggerId,
    /// What the started prompt is to do, in words.
    pub what: String,
    /// When it fires next.
    pub due: Timestamp,
    /// The microseconds from one time to the next; none for one that fires once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// What it does while the last run of its conversation is not over.
    #[serde(default, skip_serializing_if = "is_queue")]
    pub busy: Busy,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_queue(busy: &Busy) -> bool {
    *busy == Busy::Queue
}

impl Trigger {
    /// Makes a trigger that fires once.
    pub fn once(id: TriggerId, what: impl Into<String>, due: Timestamp) -> Self {
        Self { id, what: what.into(), due, every: None, busy: Busy::Queue }
    }

    /// Lets it fire again and again, so long after each time.
    #[must_use]
    pub fn every(mut self, pause: Duration) -> Self {
        self.every = Some(u64::try_from(pause.as_micros()).unwrap_or(u64::MAX));
        self
    }

    /// Returns its first time after a moment, once it has fired; none for one that fires once. What was missed in between
    /// is not made up for.
    #[must_use]
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let every = i64::try_from(self.every?.max(1)).unwrap_or(i64::MAX);
        let missed = now.0.saturating_sub(self.due.0).max(0) / every;
        Some(Timestamp(self.due.0.saturating_add(every.saturating_mul(missed.saturating_add(1)))))
    }
}

/// What a tool does with a trigger; recorded with the tool's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TriggerChange {
    /// It sets one, in the place of the one with its id.
    Set(Trigger),
    /// It takes one back.
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

/// A trigger as a store keeps it: with what it starts, and for whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timer {
    /// The trigger, with its next time.
    pub trigger: Trigger,
    /// The title of the brain that it starts.
    pub brain: Arc<str>,
    /// The brain's options.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub options: Value,
    /// Whom the started run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The conversation that it becomes a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// What the started run may use, where the run that set it was started with a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Box<Budget>>,
    /// As in [`Fired::origin`].
    pub origin: RunId,
    /// How often it has fired.
    #[serde(default)]
    pub fired: u32,
}

impl Timer {
    /// Returns it after it has fired.
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
    fn what_was_missed_is_not_made_up_for() {
        let once = Trigger::once(TriggerId::new("t"), "water", Timestamp(100));
        let often = once.clone().every(Duration::from_micros(10));

        assert_eq!(once.next(Timestamp(500)), None);
        for (now, next) in [(90, 110), (100, 110), (109, 110), (110, 120), (1234, 1240)] {
            assert_eq!(often.next(Timestamp(now)), Some(Timestamp(next)), "{now}");
        }
        let strange = Trigger { every: Some(0), ..once };
        assert_eq!(strange.next(Timestamp(500)), Some(Timestamp(501)));
    }
}
