//! Where logs live.
//!
//! A log is appended to atomically, with the number that the first new event has to have: whoever loses a race for a
//! number reads on, decides again and tries again. The outcome of an effect also carries the epoch of its worker's
//! attachment, so that a worker that lost its run cannot write any more; a signal carries none.

mod memory;

use std::sync::{Arc, Weak};

use futures::future::BoxFuture;

use crate::record::{Epoch, Event, RunId, Seq};

pub use memory::MemoryStore;

/// Keeps the logs of runs.
pub trait EventStore: Send + Sync + 'static {
    /// Appends events to a run's log, all or none. The first append to a run expects number 0.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] when the log's next number is another one, [`StoreError::Fenced`] when a newer
    /// attachment has the run, [`StoreError::Failed`] when the store itself fails; nothing is written then.
    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Reads at most `most` events from number `from` on; fewer only at the log's end.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] when there is no such log, [`StoreError::Failed`] when the store itself fails.
    fn read<'a>(&'a self, run: &'a RunId, from: Seq, most: usize)
    -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>>;

    /// Lists the runs, in the order of their ids.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] when the store itself fails.
    fn runs(&self) -> BoxFuture<'_, Result<Vec<RunId>, StoreError>>;

    /// Tells `watcher` of every later append to the run, until it is dropped.
    fn watch(&self, run: &RunId, watcher: Weak<dyn Watcher>);
}

/// Is told when a log has grown. It must not block.
pub trait Watcher: Send + Sync {
    /// The log's next number is now `next`.
    fn appended(&self, next: Seq);
}

/// An atomic append.
#[derive(Debug, Clone)]
pub struct Append {
    /// The number that the first of the events has.
    pub expected: Seq,
    /// The attachment of the worker that appends; none for a signal.
    pub epoch: Option<Epoch>,
    /// The events, numbered from `expected` on.
    pub events: Vec<Arc<Event>>,
}

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
    /// There is no such log.
    #[error("there is no run `{run}`")]
    NoSuchRun {
        /// The run.
        run: RunId,
    },
    /// The store itself failed.
    #[error("the event store failed: {message}")]
    Failed {
        /// What went wrong.
        message: String,
    },
}
