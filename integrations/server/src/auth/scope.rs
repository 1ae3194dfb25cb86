//! The rights of callers.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A right of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// Reads runs, pending items and brains.
    Read,
    /// Starts runs and sends messages.
    Run,
    /// Decides pending items: approves, rejects, grants, replies.
    Decide,
    /// Sends requests of the log to a model again, with changes and outside of runs.
    Playground,
    /// Pauses, resumes, cancels and forks runs, and sees the runs of all users.
    Operate,
    /// Manages schedules and webhooks, and has all other scopes.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 6] = [Self::Read, Self::Run, Self::Decide, Self::Playground, Self::Operate, Self::Admin];

    /// Returns the scope as a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Decide => "decide",
            Self::Playground => "playground",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
