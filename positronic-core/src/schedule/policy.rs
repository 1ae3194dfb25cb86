//! What a schedule starts, and what it does when runs overlap or times were missed.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::spec::ScheduleSpec;
use crate::record::Budget;
use crate::record::encoding::skip::is_default;

/// What a tick does while an earlier run of its schedule has not ended. A run that waits for a person has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Overlap {
    /// It is skipped.
    #[default]
    Skip,
    /// It starts when the earlier run has ended. Only one tick waits; further ones are skipped.
    BufferOne,
    /// It starts when all earlier runs have ended. At most 100 ticks wait; further ones are skipped.
    BufferAll,
    /// It cancels the earlier run and starts when that has ended. It replaces a tick that waits.
    CancelOther,
    /// It starts at once. At most 100 ticks wait for a server that can start them; further ones are skipped.
    Allow,
}

/// What happens to times that no server has checked when they came: because none was running, or the machine slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CatchUp {
    /// Nothing starts later than ten seconds after its time.
    None,
    /// The latest time starts a run if it is not longer ago than `within`.
    Latest {
        /// The longest delay.
        #[serde(with = "crate::record::encoding::micros")]
        within: Duration,
    },
    /// The latest `most` times start a run each if they are not longer ago than `within`.
    All {
        /// The longest delay.
        #[serde(with = "crate::record::encoding::micros")]
        within: Duration,
        /// The largest number of times, at most [`MAX_QUEUED`](super::MAX_QUEUED).
        most: u32,
    },
}

impl CatchUp {
    /// How late a tick may start and still be on time.
    pub const ON_TIME: Duration = Duration::from_secs(10);

    /// Returns the longest delay after which a tick may start a run.
    #[must_use]
    pub fn within(self) -> Duration {
        match self {
            Self::None => Self::ON_TIME,
            Self::Latest { within } | Self::All { within, .. } => within.max(Self::ON_TIME),
        }
    }
}

impl Default for CatchUp {
    /// The latest time of the last hour.
    fn default() -> Self {
        Self::Latest { within: Duration::from_hours(1) }
    }
}

/// Starts runs of a brain at given times.
///
/// ```
/// use positronic_core::schedule::{Overlap, Schedule};
/// use serde_json::json;
///
/// let report = Schedule::new("Daily report")
///     .cron("0 9 * * MON-FRI")
///     .zone("Europe/Berlin")
///     .options(json!({"team": "sales"}))
///     .overlap(Overlap::BufferOne);
/// # assert!(report.when.check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Schedule {
    /// When runs start.
    pub when: ScheduleSpec,
    /// The title of the brain that it starts.
    pub brain: String,
    /// The brain's options.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub options: Value,
    /// The message that opens the first loop of each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The user that the runs belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The budget of each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Box<Budget>>,
    /// What a tick does while an earlier run has not ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overlap: Overlap,
    /// What happens to missed times.
    #[serde(default, skip_serializing_if = "is_default")]
    pub catch_up: CatchUp,
    /// Pauses the schedule after this many failed runs in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_on_failure: Option<u32>,
}

impl Schedule {
    /// Creates a schedule of a brain, without times yet.
    pub fn new(brain: impl Into<String>) -> Self {
        Self {
            when: ScheduleSpec::default(),
            brain: brain.into(),
            options: Value::Null,
            message: None,
            user: None,
            budget: None,
            overlap: Overlap::default(),
            catch_up: CatchUp::default(),
            pause_on_failure: None,
        }
    }

    /// Sets when runs start.
    #[must_use]
    pub fn when(self, when: ScheduleSpec) -> Self {
        Self { when, ..self }
    }

    /// Adds a cron expression.
    #[must_use]
    pub fn cron(self, expression: impl Into<String>) -> Self {
        Self { when: self.when.cron(expression), ..self }
    }

    /// Adds an interval that counts from 1970-01-01 UTC.
    #[must_use]
    pub fn every(self, every: Duration) -> Self {
        Self { when: self.when.every(every), ..self }
    }

    /// Sets the IANA time zone of cron expressions and excluded dates.
    #[must_use]
    pub fn zone(self, zone: impl Into<String>) -> Self {
        Self { when: self.when.zone(zone), ..self }
    }

    /// Sets the brain's options.
    #[must_use]
    pub fn options(self, options: Value) -> Self {
        Self { options, ..self }
    }

    /// Sets the message that opens the first loop of each run.
    #[must_use]
    pub fn message(self, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..self }
    }

    /// Sets the user that the runs belong to.
    #[must_use]
    pub fn user(self, user: impl Into<String>) -> Self {
        Self { user: Some(user.into()), ..self }
    }

    /// Sets the budget of each run.
    #[must_use]
    pub fn budget(self, budget: Budget) -> Self {
        Self { budget: Some(Box::new(budget)), ..self }
    }

    /// Sets what a tick does while an earlier run has not ended.
    #[must_use]
    pub fn overlap(self, overlap: Overlap) -> Self {
        Self { overlap, ..self }
    }

    /// Sets what happens to missed times.
    #[must_use]
    pub fn catch_up(self, catch_up: CatchUp) -> Self {
        Self { catch_up, ..self }
    }

    /// Pauses the schedule after this many failed runs in a row.
    #[must_use]
    pub fn pause_on_failure(self, failures: u32) -> Self {
        Self { pause_on_failure: Some(failures), ..self }
    }
}
