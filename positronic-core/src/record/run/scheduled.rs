//! The tick of a schedule that starts a run.

use serde::{Deserialize, Serialize};

use crate::record::encoding::skip::is_default;
use crate::record::ids::{RunId, Timestamp};

/// The cause of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TickCause {
    /// The schedule's time has come.
    #[default]
    Scheduled,
    /// A person triggered the schedule. Its nominal time is the time of the request.
    Manual,
    /// A person filled in a time of the past.
    Backfill,
}

/// The tick of a schedule that starts a run. The schedule and the nominal time identify it: each tick starts at most
/// one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduled {
    /// The id of the schedule.
    pub schedule: String,
    /// The time at which the run is scheduled, without jitter and delay.
    pub nominal: Timestamp,
    /// The cause of the tick.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cause: TickCause,
    /// Who had set the schedule when it started the run; the actor of the start is who has asked for the tick, if a person has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Scheduled {
    /// Returns the id of the run that the tick starts, such as `report-20260301T090000Z`.
    #[must_use]
    pub fn run(&self) -> RunId {
        let manual = if self.cause == TickCause::Manual { "-manual" } else { "" };
        RunId::from(format!("{}-{}{manual}", self.schedule, self.nominal.compact()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_id_consists_of_schedule_and_nominal_time() {
        let tick = |cause| Scheduled {
            schedule: "report".to_owned(),
            nominal: Timestamp(1_772_355_600_000_000),
            cause,
            by: None,
        };
        assert_eq!(tick(TickCause::Scheduled).run(), RunId::new("report-20260301T090000Z"));
        assert_eq!(tick(TickCause::Backfill).run(), tick(TickCause::Scheduled).run(), "it is the same tick");
        assert_eq!(tick(TickCause::Manual).run(), RunId::new("report-20260301T090000Z-manual"));
    }
}
