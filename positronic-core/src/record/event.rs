//! One line of a run's log, and its JSON.
//!
//! A line is one flat object: the envelope's fields, then `type` and the body's. The format's version stands in `v`
//! and is left out while it is 1; an unknown `type` is refused, never skipped.

use serde::{Deserialize, Serialize};

use super::event_body::Body;
use super::ids::{Epoch, Seq, Timestamp};
use super::path::Path;

/// The version of the log's format that this crate writes.
pub const FORMAT_VERSION: u32 = 1;

/// One line of a run's log.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its place in the log.
    pub seq: Seq,
    /// When it was appended.
    pub at: Timestamp,
    /// The attachment of the worker that appended it; none for a signal.
    pub epoch: Option<Epoch>,
    /// Where in the run's tree it happened.
    pub path: Path,
    /// What happened.
    pub body: Body,
}

/// An event before it has its number and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// Where in the run's tree it happens.
    pub path: Path,
    /// What happens.
    pub body: Body,
}

impl Draft {
    /// Makes a draft.
    #[must_use]
    pub const fn new(path: Path, body: Body) -> Self {
        Self { path, body }
    }
}

/// Says why a text is no event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The text is no JSON, or its fields do not fit its type.
    #[error("this is no event of format {FORMAT_VERSION}: {0}")]
    Json(#[from] serde_json::Error),
    /// The event was written by a newer release.
    #[error("the event has format {found}, this release reads up to {FORMAT_VERSION}: use a newer release")]
    Version {
        /// The format it was written in.
        found: u32,
    },
}

#[derive(Serialize, Deserialize)]
struct Envelope<'a> {
    #[serde(default = "first", skip_serializing_if = "is_first")]
    v: u32,
    seq: Seq,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    epoch: Option<Epoch>,
    #[serde(default, skip_serializing_if = "path_is_root")]
    path: std::borrow::Cow<'a, Path>,
}

const fn first() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
const fn is_first(version: &u32) -> bool {
    *version == 1
}

fn path_is_root(path: &Path) -> bool {
    path.is_root()
}

impl Event {
    /// Writes the event as one line of JSON, without a line break.
    ///
    /// # Errors
    ///
    /// [`EventError::Json`] when a value in it cannot be encoded, which no value of this crate does.
    pub fn to_json(&self) -> Result<String, EventError> {
        let mut line = serde_json::to_string(&Envelope {
            v: FORMAT_VERSION,
            seq: self.seq,
            at: self.at,
            epoch: self.epoch,
            path: std::borrow::Cow::Borrowed(&self.path),
        })?;
        let body = serde_json::to_string(&self.body)?;
        line.pop();
        line.push(',');
        line.push_str(body.strip_prefix('{').unwrap_or(&body));
        Ok(line)
    }

    /// Reads an event from one line of JSON.
    ///
    /// # Errors
    ///
    /// [`EventError::Version`] when a newer release wrote it, [`EventError::Json`] when it is no event.
    pub fn from_json(line: &str) -> Result<Self, EventError> {
        let envelope: Envelope<'_> = serde_json::from_str(line)?;
        if envelope.v > FORMAT_VERSION {
            return Err(EventError::Version { found: envelope.v });
        }
        Ok(Self {
            seq: envelope.seq,
            at: envelope.at,
            epoch: envelope.epoch,
            path: envelope.path.into_owned(),
            body: serde_json::from_str(line)?,
        })
    }
}

impl Body {
    /// Returns the event's name, in `SCREAMING_SNAKE_CASE`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunClaimed { .. } => "RUN_CLAIMED",
            Self::RunReleased { .. } => "RUN_RELEASED",
            Self::BrainStart(_) => "BRAIN_START",
            Self::BrainMigrated { .. } => "BRAIN_MIGRATED",
            Self::BrainComplete { .. } => "BRAIN_COMPLETE",
            Self::BrainError(_) => "BRAIN_ERROR",
            Self::BrainCancelled { .. } => "BRAIN_CANCELLED",
            Self::BrainPaused { .. } => "BRAIN_PAUSED",
            Self::BrainResumed { .. } => "BRAIN_RESUMED",
            Self::StepStart { .. } => "STEP_START",
            Self::StepComplete { .. } => "STEP_COMPLETE",
            Self::StepRetry { .. } => "STEP_RETRY",
            Self::ValueRecorded { .. } => "VALUE_RECORDED",
            Self::LoopStart { .. } => "LOOP_START",
            Self::LoopIteration(_) => "LOOP_ITERATION",
            Self::LoopModelCall { .. } => "LOOP_MODEL_CALL",
            Self::LoopModelResult { .. } => "LOOP_MODEL_RESULT",
            Self::LoopModelRetry { .. } => "LOOP_MODEL_RETRY",
            Self::LoopToolCall(_) => "LOOP_TOOL_CALL",
            Self::LoopToolStart { .. } => "LOOP_TOOL_START",
            Self::LoopToolRetry { .. } => "LOOP_TOOL_RETRY",
            Self::LoopToolResult { .. } => "LOOP_TOOL_RESULT",
            Self::LoopBrainStart { .. } => "LOOP_BRAIN_START",
            Self::LoopBrainComplete { .. } => "LOOP_BRAIN_COMPLETE",
            Self::LoopOutput { .. } => "LOOP_OUTPUT",
            Self::LoopApprovalRequested { .. } => "LOOP_APPROVAL_REQUESTED",
            Self::LoopApprovalDecided { .. } => "LOOP_APPROVAL_DECIDED",
            Self::LoopApprovalWithdrawn { .. } => "LOOP_APPROVAL_WITHDRAWN",
            Self::LoopApprovalExpired {} => "LOOP_APPROVAL_EXPIRED",
            Self::LoopWait { .. } => "LOOP_WAIT",
            Self::LoopResume { .. } => "LOOP_RESUME",
            Self::LoopMessage { .. } => "LOOP_MESSAGE",
            Self::LoopExit { .. } => "LOOP_EXIT",
            Self::LoopMaxIterations { .. } => "LOOP_MAX_ITERATIONS",
            Self::LoopLimit { .. } => "LOOP_LIMIT",
            Self::LoopCompacted { .. } => "LOOP_COMPACTED",
            Self::LoopComplete { .. } => "LOOP_COMPLETE",
        }
    }
}
