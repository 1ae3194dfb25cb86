//! How a store fails.

use crate::record::{Epoch, Path, RunId, Seq, SignalId, TriggerId};

/// Says why a store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The log's next number is another one: somebody else has appended.
    #[error("the log has grown meanwhile: its next event has number {next}")]
    Conflict {
        /// The number that the next event has to have.
        next: Seq,
    },
    /// A newer attachment has the run.
    #[error("another worker has taken over the run (attachment {held})")]
    Fenced {
        /// The attachment that has it.
        held: Epoch,
    },
    /// A mail that the append takes has been taken before.
    #[error("the webhook `{mail}` was delivered to the run `{run}` before, with event {seq}")]
    Taken {
        /// The mail.
        mail: SignalId,
        /// The run that has it.
        run: RunId,
        /// The first event of the append that took it.
        seq: Seq,
    },
    /// A timer is not there, or not due at the time at which it was to fire.
    #[error("the trigger `{trigger}` does not fire: it has fired already, or was deleted")]
    NotDue {
        /// The trigger.
        trigger: TriggerId,
    },
    /// There is no such log.
    #[error("there is no run `{run}`")]
    NoSuchRun {
        /// The run.
        run: RunId,
    },
    /// The run goes on after another one that is not there.
    #[error("the run `{run}` goes on after `{before}`, which the store does not have; take that one in first")]
    NoRunBefore {
        /// The run.
        run: RunId,
        /// The run before it in its conversation.
        before: RunId,
    },
    /// A file has more bytes than a store keeps.
    #[error(
        "a file of {size} bytes is too large to be kept with the runs: at most {most} bytes are; put it elsewhere, and record where"
    )]
    TooLarge {
        /// How many it has.
        size: u64,
        /// How many it may have.
        most: u64,
    },
    /// The bytes that are kept under a hash have another one.
    #[error(
        "the bytes kept as `{sha256}` are damaged: their hash is `{found}`; restore the store from a backup, or take the run in from an export"
    )]
    Damaged {
        /// The hash under which they are kept.
        sha256: String,
        /// The hash that they have.
        found: String,
    },
    /// The store has an older format, or nothing in it yet, and was opened to read alone.
    #[error("the event store `{store}` is empty or of an older format: open it to write once")]
    Older {
        /// The store.
        store: String,
    },
    /// An event cannot be recorded; nothing was written.
    #[error("the event {event} at `{path}` cannot be recorded: {reason}")]
    Unrecordable {
        /// The event's name.
        event: String,
        /// Its path.
        path: Path,
        /// Why it cannot.
        reason: String,
    },
    /// The store cannot be used at all, until somebody does something about it.
    #[error("{message}")]
    Unusable {
        /// What is wrong, where, and what to do.
        message: String,
    },
    /// The log of a run is not one that the engine writes.
    #[error("the log of `{run}` is corrupt: {reason}")]
    Corrupt {
        /// The run.
        run: RunId,
        /// What is wrong.
        reason: String,
    },
    /// The store failed at this; nothing was written.
    #[error("the event store failed: {message}")]
    Failed {
        /// What went wrong.
        message: String,
    },
}
