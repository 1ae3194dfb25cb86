//! Where logs live.
//!
//! A log is appended to atomically, with the number that the first new event has to have: whoever loses a race for a
//! number reads on, decides again and tries again. The outcome of an effect also carries the epoch of its worker's
//! attachment, so that a worker that lost its run cannot write any more; a signal carries none.
//!
//! Beside the logs a store keeps what follows from them, written in the same transaction: a row about each run and an
//! entry for everything that waits for somebody, so that lists never load a log. Four things do not follow from a log:
//! the mailbox, where a webhook stays until somebody waits for it, the bytes of files, timers, which outlive the runs that
//! set them, and which workers are alive.

mod append;
mod blob;
mod error;
mod mail;
mod memory;
mod query;
#[cfg(feature = "sqlite")]
mod sqlite;
mod watchers;

use std::sync::{Arc, Weak};

pub use futures::future::BoxFuture;

use crate::record::{Event, RunId, RunSummary, Seq, SignalId, Timer, Timestamp, TriggerId};

pub use crate::record::LARGEST_BLOB;

pub use append::{Append, Index, Snapshot, TimerChange};
pub use blob::{BLOB_GRACE, swept_before};
pub use error::StoreError;
pub use mail::{DeliveryState, InboundWebhook, MailboxEntry, PostOutcome};
pub use memory::MemoryStore;
pub use query::{EventMatch, PendingFilter, PendingItem, RunFilter, TimerFilter, TimerOwner};
/// The SQLite of the embedded store, for code that uses the same: a build has one `libsqlite3-sys`, since it links the C library
/// `sqlite3`.
///
/// A project with `rusqlite` of its own takes the version that is re-exported here, now 0.41 (`libsqlite3-sys` 0.39); cargo refuses
/// another one with *Only one package in the dependency graph may specify the same links value*. The feature `sqlite` of `sqlx` wants
/// an older `libsqlite3-sys` (`sqlx` 0.9: 0.30 to 0.37), so the two do not go together: switch this crate's feature `sqlite` off
/// (`default-features = false`) and keep runs in another store, or use `sqlx` without its feature `sqlite`.
#[cfg(feature = "sqlite")]
pub use rusqlite;

#[cfg(feature = "sqlite")]
pub use sqlite::{Durability, SqliteOptions, SqliteStore};

/// Keeps the logs of runs, and what follows from them.
///
/// Every method can also fail with [`StoreError::Failed`] or [`StoreError::Unusable`], when the store itself fails;
/// nothing is written then, but by [`EventStore::remove`].
///
/// [`store_suite!`](crate::store_suite) makes tests of what every implementation has to do. A store that stands before
/// another one hands on what it does not change, here all but the appends of a store that is only looked at:
///
/// ```
/// use std::sync::{Arc, Weak};
///
/// use positronic_core::record::{Event, RunId, RunSummary, Seq, SignalId, Timer, Timestamp, TriggerId};
/// # use positronic_core::store::{EventMatch, Lease, MailboxEntry, InboundWebhook, PendingFilter, PostOutcome, RunFilter, Snapshot, PendingItem};
/// # use positronic_core::store::TimerFilter;
/// use positronic_core::store::{BoxFuture, Append, EventStore, StoreError, Watcher};
///
/// struct Frozen<S>(S);
///
/// impl<S: EventStore> EventStore for Frozen<S> {
///     fn append<'a>(&'a self, run: &'a RunId, _: Append) -> BoxFuture<'a, Result<(), StoreError>> {
///         let message = format!("the run `{run}` is not to be changed");
///         Box::pin(std::future::ready(Err(StoreError::Failed { message })))
///     }
///
///     fn read<'a>(&'a self, run: &'a RunId, from: Seq, most: usize) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
///         self.0.read(run, from, most)
///     }
///
///     fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
///         self.0.watch(run, watcher);
///     }
///     // … and so on.
/// #   fn run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunSummary, StoreError>> { self.0.run(run) }
/// #   fn runs<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunSummary>, StoreError>> { self.0.runs(filter) }
/// #   fn pending<'a>(&'a self, filter: &'a PendingFilter) -> BoxFuture<'a, Result<Vec<PendingItem>, StoreError>> { self.0.pending(filter) }
/// #   fn search<'a>(&'a self, text: &'a str, most: usize) -> BoxFuture<'a, Result<Vec<EventMatch>, StoreError>> { self.0.search(text, most) }
/// #   fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>> { self.0.snapshot(run) }
/// #   fn remove<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<usize, StoreError>> { self.0.remove(runs) }
/// #   fn post<'a>(&'a self, mail: &'a InboundWebhook) -> BoxFuture<'a, Result<PostOutcome, StoreError>> { self.0.post(mail) }
/// #   fn mail<'a>(&'a self, webhook: &'a str, id: &'a str, now: Timestamp) -> BoxFuture<'a, Result<Option<InboundWebhook>, StoreError>> {
/// #       self.0.mail(webhook, id, now)
/// #   }
/// #   fn mailbox(&self) -> BoxFuture<'_, Result<Vec<MailboxEntry>, StoreError>> { self.0.mailbox() }
/// #   fn discard<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<(), StoreError>> { self.0.discard(mail) }
/// #   fn timers<'a>(&'a self, filter: &'a TimerFilter) -> BoxFuture<'a, Result<Vec<Timer>, StoreError>> { self.0.timers(filter) }
/// #   fn remove_timer<'a>(&'a self, id: &'a TriggerId) -> BoxFuture<'a, Result<bool, StoreError>> { self.0.remove_timer(id) }
/// #   fn put_blob(&self, bytes: Vec<u8>, at: Timestamp) -> BoxFuture<'_, Result<String, StoreError>> { self.0.put_blob(bytes, at) }
/// #   fn blob<'a>(&'a self, sha256: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> { self.0.blob(sha256) }
/// #   fn sweep_blobs(&self, before: Timestamp) -> BoxFuture<'_, Result<usize, StoreError>> { self.0.sweep_blobs(before) }
/// #   fn acquire_lease(&self) -> BoxFuture<'_, Result<Lease, StoreError>> { self.0.acquire_lease() }
/// #   fn is_lease_live<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> { self.0.is_lease_live(owner) }
/// }
/// ```
pub trait EventStore: Send + Sync + 'static {
    /// Appends events to a run's log, with all that [`Append`] says beside them: all or nothing. The first append to a
    /// run expects number 0.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] when the log's next number is another one, [`StoreError::Fenced`] when a newer
    /// attachment has the run, [`StoreError::Taken`] when a mail that it takes was taken before, [`StoreError::NotDue`] when a
    /// timer is not there, or not due at the time at which the append says that it fires, and [`StoreError::NoRunBefore`] when
    /// the run begins after another one that is not there.
    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Reads at most `most` events from number `from` on; fewer only at the log's end.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] when there is no such log.
    fn read<'a>(&'a self, run: &'a RunId, from: Seq, most: usize)
    -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>>;

    /// Returns the row about one run.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] when there is no such log.
    fn run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunSummary, StoreError>>;

    /// Lists the rows about runs that pass a filter, the last started first. One that cannot be read is left out.
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn runs<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunSummary>, StoreError>>;

    /// Lists the runs that [`EventStore::runs`] leaves out, with what is wrong with their rows.
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn unreadable<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<(RunId, StoreError)>, StoreError>> {
        // A store that keeps rows as they are has none.
        _ = filter;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Lists what waits for somebody, over all runs, the oldest first.
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn pending<'a>(&'a self, filter: &'a PendingFilter) -> BoxFuture<'a, Result<Vec<PendingItem>, StoreError>>;

    /// Finds the events whose JSON contains a text, whatever its case, newest run first, at most `most`.
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn search<'a>(&'a self, text: &'a str, most: usize) -> BoxFuture<'a, Result<Vec<EventMatch>, StoreError>>;

    /// Returns the event by which a run has accepted a signal; none where it has not.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] when there is no such log.
    fn accepted<'a>(&'a self, run: &'a RunId, signal: &'a SignalId) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        // What a store with an index need not do.
        Box::pin(async move {
            let log = self.read(run, Seq(0), usize::MAX).await?;
            Ok(log.iter().find(|event| event.kind.signal() == Some(signal)).map(|event| event.seq))
        })
    }

    /// Returns the last snapshot of a run, if there is one. A snapshot can always be made again from the log.
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>>;

    /// Removes runs with all that belongs to them, one after the other, and returns how many there were. A run stays that is
    /// not over, or that another one of its conversation goes on after: name the later one first. The bytes of their files, to
    /// which other runs may refer, go when they are swept.
    ///
    /// # Errors
    ///
    /// Only those of the store itself; some of many runs may be removed then.
    fn remove<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<usize, StoreError>>;

    /// Keeps a webhook until somebody waits for it, or until it expires. The same signal id twice is the same mail.
    /// InboundWebhook that had expired by `mail.at` is forgotten.
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn post<'a>(&'a self, mail: &'a InboundWebhook) -> BoxFuture<'a, Result<PostOutcome, StoreError>>;

    /// Returns the oldest mail for a webhook that nobody has taken yet and that has not expired by `now`. An append takes
    /// it: [`Append::takes`].
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn mail<'a>(
        &'a self,
        webhook: &'a str,
        identifier: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<InboundWebhook>, StoreError>>;

    /// Lists what the mailbox knows: what nobody has taken yet, and what was taken and is not forgotten; the oldest
    /// first.
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn mailbox(&self) -> BoxFuture<'_, Result<Vec<MailboxEntry>, StoreError>>;

    /// Returns what the mailbox knows of one mail; none where it knows nothing of it.
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn mailbox_entry<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<Option<MailboxEntry>, StoreError>> {
        Box::pin(async move { Ok(self.mailbox().await?.into_iter().find(|entry| entry.id == *mail)) })
    }

    /// Throws a mail away that nobody has taken, since it was refused.
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn discard<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Lists timers, the one that is due first first. They outlive the runs that set them.
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn timers<'a>(&'a self, filter: &'a TimerFilter) -> BoxFuture<'a, Result<Vec<Timer>, StoreError>>;

    /// Removes a timer, and says whether it was there. An append removes those that a tool takes back.
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn remove_timer<'a>(&'a self, id: &'a TriggerId) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Keeps bytes that no run refers to yet, and returns their SHA-256, as 64 hexadecimal digits in lower case. The same
    /// bytes again are the same, and kept as of `at` then.
    ///
    /// # Errors
    ///
    /// [`StoreError::TooLarge`] when they are more than [`LARGEST_BLOB`].
    fn put_blob(&self, bytes: Vec<u8>, at: Timestamp) -> BoxFuture<'_, Result<String, StoreError>>;

    /// Returns the bytes with a SHA-256; none where they are not kept.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] when they have another hash now.
    fn blob<'a>(&'a self, sha256: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;

    /// Removes the bytes to which no run refers and that were kept last before a moment, and returns how many files that
    /// were; see [`swept_before`].
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn sweep_blobs(&self, before: Timestamp) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// Makes a worker known as alive until what it returns is dropped, or its process ends, however it ends. The name it
    /// gets is not given again.
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn acquire_lease(&self) -> BoxFuture<'_, Result<Lease, StoreError>>;

    /// Says whether a worker is alive.
    ///
    /// # Errors
    ///
    /// Only those of the store itself.
    fn is_lease_live<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Tells `watcher` of every later append to one run, or to all, until it is dropped; also of those of other
    /// processes, within a second.
    fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>);
}

/// A worker that is known as alive for as long as this is not dropped.
pub struct Lease {
    name: String,
    _alive: Box<dyn Send + Sync>,
}

impl Lease {
    /// Makes an owner of the worker's name and of what keeps it alive.
    #[must_use]
    pub fn new(name: String, alive: impl Send + Sync + 'static) -> Self {
        Self { name, _alive: Box::new(alive) }
    }

    /// Returns the worker's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lease").field(&self.name).finish()
    }
}

/// Is told when a log has grown.
///
/// It is told on the thread that has written or noticed it, once others can read what was appended: in `SqliteStore`
/// that is the one thread that writes for everybody, in [`MemoryStore`] the one that appends. So it must not block, and
/// must not wait for the store; ringing a bell that somebody else hears is all it should do.
pub trait Watcher: Send + Sync {
    /// The next number of this run's log is now `next`, or a later one.
    fn appended(&self, run: &RunId, next: Seq);
}
