//! The logs of runs.

use std::sync::{Arc, Weak};

use super::{Append, BoxFuture, SavedPrompts, Snapshot, StoreError};
use crate::record::{Event, RunId, Seq, SignalId};

/// Appends to the logs of runs, and reads them.
#[diagnostic::on_unimplemented(note = "a store around another one gets this trait by implementing `StoreWrapper`")]
pub trait EventLog: Send + Sync + 'static {
    /// Appends events to a run's log, with the other changes of the [`Append`]: all or nothing. The first append to a
    /// run expects number 0.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] when the log's next number differs, [`StoreError::Fenced`] when a newer claim owns the
    /// run, [`StoreError::Taken`] when a webhook that it takes was delivered before, [`StoreError::NotDue`] when a timer
    /// does not exist or is not due at the time at which the append fires it, and [`StoreError::NoRunBefore`] when the
    /// run continues another one that does not exist. A conflict is found before the others, so that a writer whose
    /// answer was lost ([`StoreError::Unknown`]) finds its events by appending them again.
    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Reads up to `most` events, starting with number `from`; fewer only at the log's end.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] when the run does not exist.
    fn read<'a>(&'a self, run: &'a RunId, from: Seq, most: usize)
    -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>>;

    /// Returns the event by which a run accepted a signal, or `None`.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] when the run does not exist.
    fn accepted<'a>(&'a self, run: &'a RunId, signal: &'a SignalId) -> BoxFuture<'a, Result<Option<Seq>, StoreError>>;

    /// Returns the last snapshot of a run. A lost snapshot can be rebuilt from the log.
    fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>>;

    /// Returns the saved parts of a run's prompts, in order. Lost ones can be rebuilt from the log. Without them
    /// every resume, and the first message of a process to a conversation, read whole logs.
    fn saved_prompts<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<SavedPrompts>, StoreError>>;

    /// Removes runs with everything that belongs to them, one after the other, and returns how many it removed. It skips
    /// a run that is not over or that another run of its conversation continues: list the later one first. The bytes of
    /// their files, which other runs may reference, are removed by a sweep.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself; some of the runs may be removed then.
    fn remove<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<usize, StoreError>>;

    /// Notifies `watcher` of later appends to one run, or to all, until it is dropped. Appends of other processes are
    /// reported within a second.
    fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>);
}

/// Receives notifications when a log has grown.
///
/// The call comes after the append is visible to readers, on the thread that wrote or noticed it: `SqliteStore`'s only
/// writer thread, or the appending thread of [`MemoryStore`](super::MemoryStore). So an implementation must not block and
/// must not wait for the store; it should only wake another task.
pub trait Watcher: Send + Sync {
    /// The next number of this run's log is now `next`, or a later one.
    fn appended(&self, run: &RunId, next: Seq);
}
