//! The history of a schedule: its ticks, and what happened at each. Data only: `record.rs` and `overlap.rs` decide what happens.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::record::encoding::skip::is_default;
use crate::record::{RunId, Scheduled, TickCause, Timestamp};

/// A nominal time of a schedule, and what happened at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tick {
    /// The nominal time.
    pub nominal: Timestamp,
    /// Its cause.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cause: TickCause,
    /// When this was recorded.
    pub at: Timestamp,
    /// What happened.
    pub outcome: TickOutcome,
    /// If set, the record stands for all times after this one up to `nominal`, which were too many to list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The change of the schedule that recorded it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) change: u64,
}

/// Returns the key of the tick with a nominal time and a cause. A time that is filled in has the schedule's own tick.
pub(crate) fn tick_key(nominal: Timestamp, cause: TickCause) -> String {
    let manual = if cause == TickCause::Manual { "-manual" } else { "" };
    format!("{}{manual}", time_key(nominal))
}

/// Formats a time so that texts have the order of times: RFC 3339 with microseconds. A time after the year 9999 counts as its end.
pub(crate) fn time_key(time: Timestamp) -> String {
    format!("{:.6}", jiff::Timestamp::from_microsecond(time.0.max(0)).unwrap_or(jiff::Timestamp::MAX))
}

/// What happened at a tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TickOutcome {
    /// A server starts its run next.
    Due,
    /// It waits for the end of an earlier run.
    Buffered,
    /// It has started a run.
    Started {
        /// The run.
        run: RunId,
    },
    /// It starts no run, because of an earlier run or tick.
    Skipped {
        /// The reason.
        reason: TickReason,
    },
    /// It starts no run, because it was not checked in time.
    Missed {
        /// The reason.
        reason: TickReason,
    },
}

/// The reason why a tick starts no run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TickReason {
    /// An earlier run has not ended; without a run, an earlier tick has not started its run yet.
    Running {
        /// The run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
    },
    /// As many ticks wait as may.
    BufferFull,
    /// A later tick has replaced it.
    Replaced {
        /// The later tick.
        by: Timestamp,
    },
    /// No server has checked it, or could start its run, in time.
    Late {
        /// Why its run could not be started, if a server has tried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The schedule was paused.
    Paused,
    /// The times of the schedule were changed.
    Changed,
}

impl fmt::Display for TickReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running { run: Some(run) } => write!(f, "the run {run} has not ended"),
            Self::Running { run: None } => f.write_str("an earlier tick has not started its run yet"),
            Self::BufferFull => f.write_str("the queue is full"),
            Self::Replaced { by } => write!(f, "replaced by the tick of {by}"),
            Self::Late { error: None } => f.write_str("no server was running in time"),
            Self::Late { error: Some(error) } => write!(f, "its run could not be started in time: {error}"),
            Self::Paused => f.write_str("the schedule was paused"),
            Self::Changed => f.write_str("the times of the schedule were changed"),
        }
    }
}

impl Tick {
    /// Returns the key under which a store lists it: its nominal time in RFC 3339, so that keys have the order of times.
    pub(crate) fn key(&self) -> String {
        tick_key(self.nominal, self.cause)
    }

    /// Returns whether it was skipped or missed at a time that is still to come: the clock was ahead then.
    pub(crate) fn is_premature(&self, now: Timestamp) -> bool {
        self.at > now && matches!(self.outcome, TickOutcome::Skipped { .. } | TickOutcome::Missed { .. })
    }

    /// Returns the tick as its run knows it.
    #[must_use]
    pub fn scheduled(&self, schedule: &str) -> Scheduled {
        Scheduled { schedule: schedule.to_owned(), nominal: self.nominal, cause: self.cause, by: None }
    }
}
