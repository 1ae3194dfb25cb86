//! A group of brains that run at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::BrainFrame;
use crate::record::{ArmShape, Failure, Path, Seq, Timestamp};

/// A group of brains that has begun. It has the frames of those that have begun and not ended: the options of the others, and
/// the results, are in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupFrame {
    /// The path of its stage.
    pub path: Path,
    /// The number of the event that began it, which has the options of its brains.
    pub since: Seq,
    /// The time of that event.
    pub began: Timestamp,
    /// How many brains it has.
    pub count: u32,
    /// How many work at the same time.
    pub limit: u32,
    /// Whether the first that completes ends the group.
    pub race: bool,
    /// Its brains, in order. The last one is also that of all further numbers.
    pub brains: Arc<[ArmShape]>,
    /// When a race ends without a winner.
    pub due: Option<Timestamp>,
    /// How long each try of a brain may take.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::record::encoding::micros::optional")]
    pub timeout: Option<Duration>,
    /// The number of the next brain that begins.
    pub next: u32,
    /// The brains that have begun and not ended, by number.
    pub open: BTreeMap<u32, Arc<BrainFrame>>,
    /// How many have completed.
    pub done: u32,
    /// How many have failed.
    pub failed: u32,
    /// What ended a race.
    pub winner: Option<Winner>,
    /// The failure that fails the group.
    pub failure: Option<Failure>,
}

/// What ended a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Winner {
    /// The brain with this number.
    Brain(u32),
    /// The time was over.
    Expired,
}

impl GroupFrame {
    /// Returns whether a failure of the brain with this number is a result.
    #[must_use]
    pub fn tolerates(&self, index: u32) -> bool {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.race || self.brains.get(index).or(self.brains.last()).is_some_and(|brain| brain.may_fail)
    }

    /// Returns whether nothing more begins.
    #[must_use]
    pub const fn has_outcome(&self) -> bool {
        self.winner.is_some() || self.failure.is_some()
    }
}
