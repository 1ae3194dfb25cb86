//! The work during which the process of a run ended.

use serde::{Deserialize, Serialize};

use crate::record::{Path, Timestamp};

/// Work during which the process ended, without an outcome since.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrashedWork {
    /// What it is.
    pub work: Work,
    /// The number of consecutive crashes.
    pub crashes: u32,
    /// When the first one was found.
    pub first: Timestamp,
    /// When the last one was found.
    pub last: Timestamp,
}

/// A piece of work, the same in each iteration of the loops around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The step, loop or nested brain: the names of its stages, without iterations and calls.
    pub stage: Path,
    /// The tool, if a call of the loop is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

impl Work {
    /// Returns the work as the object of a sentence.
    pub(super) fn describe(&self) -> String {
        match (&self.tool, &self.stage) {
            (Some(tool), stage) => format!("a call of `{tool}` in `{stage}`"),
            (None, stage) if stage.is_root() => "the end of the run".to_owned(),
            (None, stage) => format!("`{stage}`"),
        }
    }
}
