//! The parts of a schedule's record, and what a store knows of its runs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::policy::Overlap;
use super::spec::SpecError;
use crate::record::encoding::skip::is_default;
use crate::record::{RunId, Scheduled, Status, TickCause, Timestamp};

/// The most ticks that wait for an earlier run, or for a server that can start them.
pub const MAX_QUEUED: usize = 100;

/// A pause of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PausedSchedule {
    /// When it was paused.
    pub at: Timestamp,
    /// Who has paused it; `None` if failed runs did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why a schedule starts no run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BrokenSchedule {
    /// When a server last tried.
    pub at: Timestamp,
    /// The error.
    pub reason: String,
    /// Whether its times cannot be computed, such as without its time zone; otherwise its last run could not be started.
    #[serde(default, skip_serializing_if = "is_default")]
    pub times: bool,
}

/// A tick that has not started its run yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueuedTick {
    /// The nominal time.
    pub nominal: Timestamp,
    /// The cause.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cause: TickCause,
    /// What it does while an earlier run has not ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overlap: Overlap,
    /// Since when no earlier run is in its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Timestamp>,
    /// Who has asked for it; `None` for a time of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A tick whose run has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StartedTick {
    /// The nominal time.
    pub nominal: Timestamp,
    /// The run.
    pub run: RunId,
}

/// What a store knows of the runs and ticks of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observed {
    /// Which of the runs in [`ScheduleRecord::running`](super::ScheduleRecord::running) have ended, and how; one that was removed counts as cancelled.
    pub ended: BTreeMap<RunId, Status>,
    /// Which ticks in [`ScheduleRecord::queue`](super::ScheduleRecord::queue) have a run, because a server crashed before it noted the start.
    pub begun: Vec<Scheduled>,
    /// The nominal times that have a tick.
    pub known: BTreeSet<Timestamp>,
}

/// The reason why a range of past times is not filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackfillError {
    /// The range has too many times, together with the ticks that wait already.
    #[error("the range has more than {most} times that may wait at once; fill in a smaller range")]
    TooMany {
        /// How many more ticks may wait.
        most: usize,
    },
    /// The range has no time that has not started a run.
    #[error("the range has no time in the past that has not started a run")]
    Nothing,
    /// The specification is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl QueuedTick {
    /// Returns whether it is the tick of a nominal time. A time that is filled in is the same tick.
    pub(super) fn is(&self, nominal: Timestamp, cause: TickCause) -> bool {
        let is_manual = |cause| cause == TickCause::Manual;
        self.nominal == nominal && is_manual(self.cause) == is_manual(cause)
    }
}
