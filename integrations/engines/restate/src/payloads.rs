//! Payloads: the inputs and outputs of the services, as JSON.

use positronic_core::record::{Actor, Failure, RunId, Seq, Signal, SignalId, Start, Timestamp};
use positronic_core::runner::Delivered;
use positronic_core::runner::{Driven, Settled};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The maximum size in bytes of an output. Restate rejects messages over 32 MiB and repeats the invocation.
pub(crate) const MAX_BYTES: usize = 30 << 20;

/// Returns the size of an output in bytes.
pub(crate) fn size_of(output: &impl Serialize) -> usize {
    serde_json::to_vec(output).map_or(usize::MAX, |bytes| bytes.len())
}

/// The input of a workflow.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunRequest {
    /// The run's options and its start; `None` continues a run that the store has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) begin: Option<Begin>,
}

/// How a run starts. Its id is the workflow's key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Begin {
    pub(crate) options: Value,
    #[serde(default)]
    pub(crate) start: Start,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunOutcome {
    /// It completed with this result.
    Completed(Value),
    /// It completed with a result that is too large for Restate; the log has it.
    CompletedInLog,
    /// It failed.
    Failed(Failure),
    /// It was cancelled.
    Cancelled,
}

/// How a stretch of a run ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SegmentEnd {
    Ended(RunOutcome),
    /// The run waits for the log's event with the number `next`, at most for `millis`.
    Waits {
        next: Seq,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        millis: Option<u64>,
    },
}

impl SegmentEnd {
    /// Returns how a stretch ended; an error if the worker stopped.
    pub(crate) fn of(driven: Driven, now: Timestamp) -> Result<Self, positronic_core::runner::ResumeError> {
        let millis = driven.wake.map(|wake| u64::try_from(wake.since(now).as_millis()).unwrap_or(u64::MAX));
        Ok(match driven.settled {
            Settled::Completed(result) if size_of(&result) > MAX_BYTES => Self::Ended(RunOutcome::CompletedInLog),
            Settled::Completed(result) => Self::Ended(RunOutcome::Completed(result)),
            Settled::Failed(failure) => Self::Ended(RunOutcome::Failed(failure)),
            Settled::Cancelled => Self::Ended(RunOutcome::Cancelled),
            Settled::Waiting(_) | Settled::Paused => Self::Waits { next: driven.next, millis },
            Settled::Stopped(reason) => return Err(reason),
        })
    }
}

/// The input of `signal`.
pub(crate) type SignalRequest = Signal;

/// The output of `signal`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Signalled {
    /// The event with this number records it.
    Accepted { seq: Seq },
    /// It does not fit the run's state.
    Refused { reason: String },
}

/// The input of `wake`: the number of the next event of the log.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WakeRequest {
    pub(crate) next: Seq,
}

/// The input of `deliver`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DeliverRequest {
    pub(crate) id: SignalId,
    pub(crate) webhook: String,
    pub(crate) identifier: String,
    pub(crate) payload: Value,
    #[serde(default)]
    pub(crate) actor: Actor,
}

/// The output of `deliver`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeliveryOutput {
    To { run: RunId, seq: Seq },
    Kept,
    Refused { reason: String },
}

impl From<Delivered> for DeliveryOutput {
    fn from(delivered: Delivered) -> Self {
        match delivered {
            Delivered::To { run, seq } => Self::To { run, seq },
            Delivered::Kept => Self::Kept,
        }
    }
}
