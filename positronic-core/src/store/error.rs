//! Errors of a store.

use crate::record::{Epoch, Path, RunId, Seq, SignalId, TriggerId};

/// The reason why a store operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The log's next number differs from the expected one: another writer has appended.
    #[error("append conflict: another writer has appended; the next event has number {next}")]
    Conflict {
        /// The number of the next event.
        next: Seq,
    },
    /// A newer claim owns the run.
    #[error("another worker has claimed the run (epoch {current})")]
    Fenced {
        /// The epoch of that claim.
        current: Epoch,
    },
    /// An earlier append delivered a webhook that this one takes.
    #[error("the webhook `{mail}` was delivered to the run `{run}` before, with event {seq}")]
    Taken {
        /// The webhook's signal id.
        mail: SignalId,
        /// The run that received it.
        run: RunId,
        /// The first event of the append that delivered it.
        seq: Seq,
    },
    /// The timer does not exist, or is not due at the time at which it was to fire.
    #[error("the trigger `{trigger}` cannot fire: it has fired already or was deleted")]
    NotDue {
        /// The trigger.
        trigger: TriggerId,
    },
    /// The entry has another revision than the writer expects: another writer has created, changed or removed it.
    #[error("another writer has changed the entry `{key}` of kind `{kind}`; read it again")]
    EntryChanged {
        /// The entry's kind.
        kind: String,
        /// Its key.
        key: String,
    },
    /// The run does not exist.
    #[error("there is no run `{run}`")]
    NoSuchRun {
        /// The run.
        run: RunId,
    },
    /// The run continues another one that does not exist.
    #[error("the run `{run}` continues `{before}`, which the store does not have; import that run first")]
    NoRunBefore {
        /// The run.
        run: RunId,
        /// The previous run of its conversation.
        before: RunId,
    },
    /// A file is larger than the store accepts.
    #[error(
        "a file of {size} bytes is too large to store with the runs (at most {most} bytes); store it elsewhere and record its address"
    )]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The largest accepted size in bytes.
        most: u64,
    },
    /// A stored file no longer matches its hash.
    #[error(
        "the stored file `{sha256}` is damaged: its hash is now `{found}`; restore the store from a backup, or import the run from an export"
    )]
    Damaged {
        /// The hash under which it was stored.
        sha256: String,
        /// Its hash now.
        found: String,
    },
    /// The store is empty or has an older format, and was opened read-only.
    #[error("the event store `{store}` is empty or has an older format: open it once for writing")]
    Older {
        /// The store.
        store: String,
    },
    /// An event cannot be serialized; nothing was written.
    #[error("cannot record the event {event} at `{path}`: {reason}")]
    Unrecordable {
        /// The event's name.
        event: String,
        /// Its path.
        path: Path,
        /// The reason.
        reason: String,
    },
    /// The store is unusable until a person repairs it.
    #[error("{message}")]
    Unusable {
        /// What is wrong, where, and what to do.
        message: String,
    },
    /// A stored value cannot be decoded, or a log does not follow the engine's rules. A retry fails again.
    #[error("cannot read {what}: {reason}")]
    Corrupt {
        /// What is corrupt, and where.
        what: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The worker's lease has lapsed or was released; other workers may claim its runs.
    #[error("the lease of the worker `{owner}` has lapsed")]
    LeaseLapsed {
        /// The worker.
        owner: String,
    },
    /// The store's answer was lost: whether it has written is unknown.
    #[error("the event store's answer was lost, so it is unknown whether it has written: {message}")]
    Unknown {
        /// What went wrong.
        message: String,
    },
    /// The operation failed; nothing was written.
    #[error("the event store failed: {message}")]
    Failed {
        /// What went wrong.
        message: String,
    },
}

impl StoreError {
    /// Returns the error for a run whose log is corrupt.
    pub(crate) fn corrupt_log(run: &RunId, error: impl std::fmt::Display) -> Self {
        Self::Corrupt { what: format!("the log of the run `{run}`"), reason: error.to_string() }
    }
}
