//! The state of a run: its frames, and what its log says about workers and signals.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::active_frame::ActiveFrame;
use super::crashed_work::CrashedWork;
use super::frames::{BrainEnd, BrainFrame};
use crate::record::encoding::skip::is_default;
use crate::record::{
    CallerTool, ChildLink, Claim, ClaimRefusal, Crashes, Failure, OlderAnswer, Path, RunId, Seq, SignalId, Start,
    Timestamp,
};

/// The number of signals in the state; the store knows earlier ones.
pub const KNOWN_SIGNALS: usize = 256;

/// The current state of a run. It is the fold of the log's events and never the only copy of anything.
///
/// Clones share their frames, and a fold copies only those that its event changes: to append, fold into a
/// clone first, so that the state in use is never ahead of the log.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunState {
    /// The number of the next event.
    pub next: Seq,
    /// When the last event was appended.
    pub at: Timestamp,
    /// The last claim of a worker.
    pub claim: Option<Claim>,
    /// How the run was started.
    pub start: Start,
    /// The event that paused the run, while it is paused.
    pub paused: Option<Seq>,
    /// The run's brain; `None` before its first `BRAIN_START`.
    pub root: Option<Arc<BrainFrame>>,
    /// The latest accepted signals, up to [`KNOWN_SIGNALS`], with the accepting event. The store knows
    /// all.
    pub signals: Arc<BTreeMap<SignalId, Seq>>,
    /// The time of the worker's last event on its own clock. Active time is the time between two of its events.
    #[serde(default)]
    pub worker_at: Timestamp,
    /// The loops and brains with a time limit that were active before the first signal since the worker's last event;
    /// `None` without a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_worker: Option<Vec<ActiveFrame>>,
    /// Whether no event so far has brought a limit of time, so that no active time is counted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub untimed: bool,
    /// The work during which the process ended, without an outcome since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crashed: Vec<CrashedWork>,
    /// Whether a worker has claimed the run and has recorded nothing since. It restores the run, which calls the author's code.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restoring: bool,
    /// The failure for which the engine parked the run: it is paused until a person retries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<Arc<Failure>>,
    /// Why no worker can claim the run, since the recorded event; `None` once one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Arc<NotClaimed>>,
    /// The currency of the run's first known cost, or of its conversation's money limit; a cost in another one counts as
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<Arc<str>>,
    /// The child runs that were started.
    #[serde(default, skip_serializing_if = "is_default")]
    pub children: Arc<BTreeMap<RunId, ChildLink>>,
    /// The caller's own tools, as of the last message that gave some.
    #[serde(default, skip_serializing_if = "is_default")]
    pub caller_tools: Arc<Vec<CallerTool>>,
    /// The latest answers that are older than their questions.
    #[serde(default, skip_serializing_if = "is_default")]
    pub older_answers: Arc<Vec<OlderAnswer>>,
}

/// How many [`OlderAnswer`]s the state has; the log has all.
const KNOWN_OLDER_ANSWERS: usize = 8;

impl RunState {
    /// Remembers an answer that is older than its question.
    pub(super) fn note_older_answer(&mut self, call: &Path, received: Timestamp, seq: Seq) {
        let tool = self.call(call).map(|call| call.tool.clone()).unwrap_or_default();
        let answers = Arc::make_mut(&mut self.older_answers);
        if answers.len() >= KNOWN_OLDER_ANSWERS {
            answers.remove(0);
        }
        answers.push(OlderAnswer { call: call.clone(), tool, received, seq });
    }
}

/// A run with work that no worker could claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotClaimed {
    /// The recorded event.
    pub since: Seq,
    /// The reason.
    pub reason: ClaimRefusal,
    /// The reason for people.
    pub message: String,
}

impl RunState {
    /// Returns whether the run has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.root.as_ref().is_some_and(|root| root.end.is_some())
    }

    /// Returns the result of a run that has completed.
    #[must_use]
    pub fn result(&self) -> Option<&Value> {
        match self.root.as_ref()?.end.as_ref()? {
            BrainEnd::Completed(result) => Some(result),
            BrainEnd::Failed(_) | BrainEnd::Cancelled => None,
        }
    }

    /// Returns the largest count of consecutive crashes during one piece of work.
    #[must_use]
    pub fn crashes(&self) -> Option<Crashes> {
        let worst = self.crashed.iter().max_by_key(|crashed| crashed.crashes)?;
        let CrashedWork { work, crashes, first, last } = worst;
        Some(Crashes { count: *crashes, during: work.describe(), first: *first, last: *last })
    }
}
