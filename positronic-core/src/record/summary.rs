//! What lists show of a run, so that they need not load its log: one row a run, and one entry for everything that
//! waits for somebody.
//!
//! Whoever appends to a log also says what the row and the entries are from then on; a store writes both with the
//! events, in one transaction.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{Gate, WaitSpec};
use super::ids::{Epoch, RunId, Seq, Timestamp};
use super::limits::LimitKind;
use super::path::Path;
use super::usage::Usage;

/// The one status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Something is in flight or can start.
    Running,
    /// Nothing can happen until somebody answers.
    Waiting,
    /// A person paused it.
    Paused,
    /// It ended well.
    Completed,
    /// It ended in failure.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl Status {
    /// All of them, in the order in which a run reaches them.
    pub const ALL: [Self; 6] =
        [Self::Running, Self::Waiting, Self::Paused, Self::Completed, Self::Failed, Self::Cancelled];

    /// Returns the status as the word that logs and lists use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Says whether the run is over.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// Why a worker that found work in a run could not claim it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClaimRefusal {
    /// It does not know the run's brain.
    NoBrain,
    /// The code of the run's brain has changed.
    Changed,
    /// Its prices cannot keep the run's limit of money.
    Prices,
    /// It has no model that may answer for the run.
    NoModel,
}

/// A worker's attachment to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Counts the attachments.
    pub epoch: Epoch,
    /// The worker.
    pub owner: Arc<str>,
    /// Whether it has let go.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
}

/// One row about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// The title of its brain.
    pub brain: Arc<str>,
    /// Whom it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The conversation it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The run before it in the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RunId>,
    /// The run and the event number it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<(RunId, Seq)>,
    /// Its status.
    pub status: Status,
    /// Why it waits, or how it ended, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Since when it has this status.
    pub since: Timestamp,
    /// When it was started.
    pub started: Timestamp,
    /// When its last event was appended.
    pub at: Timestamp,
    /// The number that its next event gets.
    pub next: Seq,
    /// The tokens of all its model calls.
    pub usage: Usage,
    /// The last attachment of a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Why no worker claims it although it has work; none where one has claimed it, or none has looked for it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<ClaimRefusal>,
    /// When something is due although nobody sends anything: an expiry, or a try that was put off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Timestamp>,
    /// Whether it waits for a webhook, and its worker has not let go of it. Where that worker has died, it may have done so
    /// before it looked for mail that came early.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mail: bool,
}

/// Something that waits for somebody.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pending {
    /// The call that waits, or the loop or the brain that asks for more; the path of the run's own brain is empty.
    pub call: Path,
    /// The tool; empty where there is none.
    pub tool: String,
    /// The arguments; `null` where there are none.
    pub arguments: Arc<Value>,
    /// The event since which it waits.
    pub since: Seq,
    /// What it waits for.
    pub kind: PendingKind,
}

/// What a call waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PendingKind {
    /// A person's approval.
    Approval {
        /// Why a person is asked, and whether the arguments may be edited.
        gate: Gate,
        /// When the question becomes void.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Timestamp>,
    },
    /// More than a limit allows.
    Budget {
        /// Which limit was reached.
        kind: LimitKind,
        /// The limit: tokens, billionths of money, microseconds, or iterations.
        limit: u64,
        /// What was used.
        used: u64,
        /// Whether it is the budget of the conversation, and not the brain's own.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        shared: bool,
        /// When the question becomes void, which refuses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Timestamp>,
    },
    /// A webhook or a reply; the first that comes answers.
    Answer {
        /// What would answer it.
        waits: Vec<WaitSpec>,
    },
}
