//! Event stores: where the logs of runs are persisted.
//!
//! This module is for adapters of stores; an author of brains needs [`MemoryStore`] of it, or the
//! `SqliteStore` of the crate `positronic-sqlite`.
//!
//! An append is atomic and states the number of its first event: a writer that loses a race for a number reads the new
//! events, decides again and retries. The outcome of an effect also carries the epoch of its worker's claim, so that a
//! worker that lost its run can no longer write; a signal carries no epoch.
//!
//! In the same transaction a store updates what lists show: a row for each run and an entry for each pending item, so
//! that listing never loads a log. Six things are not derived from a log: the mailbox, where a webhook stays until a run
//! waits for it, the bytes of files, timers, which outlive the runs that set them, the leases of workers, which runs are
//! reserved, paused or refused, and entries: small documents such as schedules and the hashes of access tokens.

mod append;
mod blob;
mod entry;
mod error;
mod forward;
mod grown;
mod lease;
mod mailbox;
mod memory;
mod pages;
mod query;
mod watchers;

use std::sync::{Arc, Weak};

pub use futures::future::BoxFuture;
use serde_json::Value;

use crate::record::{Event, RunId, RunSummary, Seq, SignalId, Timer, Timestamp, TriggerId};

pub use crate::record::LARGEST_BLOB;

pub use append::{Append, Index, SavedPrompts, Snapshot, TimerChange};
pub use blob::{BLOB_GRACE, content_hash, swept_before, verify_content};
pub use entry::{Entry, EntryFilter};
pub use error::StoreError;
pub use grown::GrownRuns;
pub use lease::{Deferral, DueFilter, DueRun, Lease, REFUSALS};
pub use mailbox::{DeliveryState, InboundWebhook, MailboxEntry, PostOutcome};
pub use memory::MemoryStore;
pub use pages::{PendingPages, RunPages};
pub use query::{
    EventMatch, EventMatches, EventSearch, PendingCursor, PendingFilter, PendingItem, RunCursor, RunFilter,
    TimerFilter, TimerOwner,
};
pub use watchers::Watchers;

/// Persists the logs of runs, and the lists derived from them.
///
/// Every method can also fail with [`StoreError::Failed`] or [`StoreError::Unusable`] when the store itself fails;
/// nothing is written then, except by [`EventStore::remove`]. A method that writes can fail with [`StoreError::Unknown`].
///
/// The crate `positronic-store-suite` tests what every implementation must do. A store that wraps another
/// one forwards the methods that it does not change. This one makes a store read-only:
///
/// ```
/// use std::sync::{Arc, Weak};
///
/// use positronic_core::record::{Event, RunId, RunSummary, Seq, SignalId, Timer, Timestamp, TriggerId};
/// # use positronic_core::store::{EventMatches, EventSearch, Lease, MailboxEntry, InboundWebhook, PendingFilter, PostOutcome, RunFilter, SavedPrompts, Snapshot, PendingItem};
/// # use positronic_core::store::{Deferral, DueFilter, DueRun, Entry, EntryFilter, TimerFilter};
/// use positronic_core::store::{BoxFuture, Append, EventStore, StoreError, Watcher};
///
/// struct Frozen<S>(S);
///
/// impl<S: EventStore> EventStore for Frozen<S> {
///     fn append<'a>(&'a self, run: &'a RunId, _: Append) -> BoxFuture<'a, Result<(), StoreError>> {
///         let message = format!("cannot append to `{run}`: the store is frozen");
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
/// #   fn search<'a>(&'a self, search: &'a EventSearch) -> BoxFuture<'a, Result<EventMatches, StoreError>> { self.0.search(search) }
/// #   fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>> { self.0.snapshot(run) }
/// #   fn saved_prompts<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<SavedPrompts>, StoreError>> { self.0.saved_prompts(run) }
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
/// #   fn entry<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, StoreError>> { self.0.entry(kind, key) }
/// #   fn entries<'a>(&'a self, filter: &'a EntryFilter) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> { self.0.entries(filter) }
/// #   fn put_entry<'a>(&'a self, kind: &'a str, key: &'a str, value: &'a serde_json::Value, expected: Option<u64>) -> BoxFuture<'a, Result<u64, StoreError>> {
/// #       self.0.put_entry(kind, key, value, expected)
/// #   }
/// #   fn remove_entry<'a>(&'a self, kind: &'a str, key: &'a str, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
/// #       self.0.remove_entry(kind, key, expected)
/// #   }
/// #   fn acquire_lease(&self) -> BoxFuture<'_, Result<Lease, StoreError>> { self.0.acquire_lease() }
/// #   fn due<'a>(&'a self, filter: &'a DueFilter) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> { self.0.due(filter) }
/// #   fn defer<'a>(&'a self, run: &'a RunId, next: Seq, deferral: &'a Deferral) -> BoxFuture<'a, Result<(), StoreError>> {
/// #       self.0.defer(run, next, deferral)
/// #   }
/// #   fn is_lease_live<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> { self.0.is_lease_live(owner) }
/// }
/// ```
pub trait EventStore: Send + Sync + 'static {
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

    /// Returns the summary of a run.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] when the run does not exist.
    fn run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunSummary, StoreError>>;

    /// Lists the summaries of runs that match a filter, latest start first, in the order of [`RunCursor`]. It skips those
    /// that it cannot decode. There are fewer than the filter's limit only at the end of the list; [`RunPages`] reads a
    /// long one in pages.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn runs<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunSummary>, StoreError>>;

    /// Lists the runs that [`EventStore::runs`] skips, each with its error.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn unreadable<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<(RunId, StoreError)>, StoreError>> {
        // A store that does not encode its summaries has none.
        _ = filter;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Lists the pending items of all runs, oldest first, in the order of [`PendingCursor`]. It skips those that it cannot
    /// decode. There are fewer than the filter's limit only at the end of the list; [`PendingPages`] reads a long one in
    /// pages.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn pending<'a>(&'a self, filter: &'a PendingFilter) -> BoxFuture<'a, Result<Vec<PendingItem>, StoreError>>;

    /// Finds events whose JSON contains a text, ignoring case, newest run first.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn search<'a>(&'a self, search: &'a EventSearch) -> BoxFuture<'a, Result<EventMatches, StoreError>>;

    /// Returns the event by which a run accepted a signal, or `None`.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] when the run does not exist.
    fn accepted<'a>(&'a self, run: &'a RunId, signal: &'a SignalId) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        // A store with an index overrides this.
        Box::pin(async move {
            let log = self.read(run, Seq(0), usize::MAX).await?;
            Ok(log.iter().find(|event| event.kind.signal() == Some(signal)).map(|event| event.seq))
        })
    }

    /// Returns the last snapshot of a run. A lost snapshot can be rebuilt from the log.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>>;

    /// Returns the saved parts of a run's prompts, in order. Lost ones can be rebuilt from the log. The default has none:
    /// then every resume, and the first message of a process to a conversation, read whole logs.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn saved_prompts<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<SavedPrompts>, StoreError>> {
        _ = run;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Returns the number of the next event of a run for a durable sink; `None` if no claim has named the sink
    /// ([`Append::sinks`]). The default keeps no positions: a durable sink then misses the last events of a machine that
    /// died.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn sink_position<'a>(&'a self, run: &'a RunId, sink: &'a str) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        _ = (run, sink);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Sets the next event of a run for a durable sink that the run has, unless it is further already. With `done`, that
    /// worker stops feeding the sink, if it has all events of the run now.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn set_sink_position<'a>(
        &'a self,
        run: &'a RunId,
        sink: &'a str,
        next: Seq,
        done: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        _ = (run, sink, next, done);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Finds up to `limit` runs whose events a worker without a live lease fed to a durable sink, and makes `owner` the
    /// one that feeds them.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn take_sink<'a>(
        &'a self,
        sink: &'a str,
        owner: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunId>, StoreError>> {
        _ = (sink, owner, limit);
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Removes runs with everything that belongs to them, one after the other, and returns how many it removed. It skips
    /// a run that is not over or that another run of its conversation continues: list the later one first. The bytes of
    /// their files, which other runs may reference, are removed by a sweep.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself; some of the runs may be removed then.
    fn remove<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<usize, StoreError>>;

    /// Stores a webhook until a run waits for it or until it expires. Posting the same signal id twice stores it once.
    /// Also drops the webhooks that had expired by `mail.at`.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn post<'a>(&'a self, mail: &'a InboundWebhook) -> BoxFuture<'a, Result<PostOutcome, StoreError>>;

    /// Returns the oldest undelivered webhook with this name and identifier that has not expired by `now`. An append
    /// delivers it: [`Append::deliveries`].
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn mail<'a>(
        &'a self,
        webhook: &'a str,
        identifier: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<InboundWebhook>, StoreError>>;

    /// Lists the mailbox, oldest first: undelivered webhooks, and delivered ones that have not expired.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn mailbox(&self) -> BoxFuture<'_, Result<Vec<MailboxEntry>, StoreError>>;

    /// Returns the mailbox entry of one webhook, or `None`.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn mailbox_entry<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<Option<MailboxEntry>, StoreError>> {
        Box::pin(async move { Ok(self.mailbox().await?.into_iter().find(|entry| entry.id == *mail)) })
    }

    /// Removes an undelivered webhook that was refused.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn discard<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Lists timers, earliest due time first. They outlive the runs that set them.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn timers<'a>(&'a self, filter: &'a TimerFilter) -> BoxFuture<'a, Result<Vec<Timer>, StoreError>>;

    /// Removes a timer and returns whether it existed. Timers that a tool cancels are removed by an append.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn remove_timer<'a>(&'a self, id: &'a TriggerId) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Stores bytes that no run references yet and returns their SHA-256 as 64 lower-case hexadecimal digits. Storing
    /// the same bytes again only updates their time to `at`.
    ///
    /// # Errors
    ///
    /// [`StoreError::TooLarge`] when there are more than [`LARGEST_BLOB`].
    fn put_blob(&self, bytes: Vec<u8>, at: Timestamp) -> BoxFuture<'_, Result<String, StoreError>>;

    /// Returns the bytes with a SHA-256, or `None`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] when they no longer match the hash.
    fn blob<'a>(&'a self, sha256: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;

    /// Removes files that no run references and that were last stored before a moment, and returns their count; see
    /// [`swept_before`].
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn sweep_blobs(&self, before: Timestamp) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// Returns an entry, or `None`.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn entry<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, StoreError>>;

    /// Lists entries of a kind in the order of their keys' bytes.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn entries<'a>(&'a self, filter: &'a EntryFilter) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>>;

    /// Creates an entry, or changes the one with the expected revision, and returns its new revision. With `None` the
    /// entry must not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError::EntryChanged`] when the entry does not have the expected revision.
    fn put_entry<'a>(
        &'a self,
        kind: &'a str,
        key: &'a str,
        value: &'a Value,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Removes an entry, if there is one.
    ///
    /// # Errors
    ///
    /// [`StoreError::EntryChanged`] when the entry has another revision than the expected one.
    fn remove_entry<'a>(&'a self, kind: &'a str, key: &'a str, expected: u64) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Acquires a lease for a worker. Its owner's name is never assigned again.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn acquire_lease(&self) -> BoxFuture<'_, Result<Lease, StoreError>>;

    /// Extends a live lease by its time to live, from now on the store's clock. A lease that has lapsed stays lapsed.
    ///
    /// # Errors
    ///
    /// [`StoreError::LeaseLapsed`] when the lease has lapsed or was released.
    fn renew_lease<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        // A store whose leases do not expire has nothing to extend.
        _ = owner;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns whether the lease of this owner is live.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn is_lease_live<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns and reserves runs with work that no worker with a live lease has claimed, the one that is due earliest
    /// first. It omits runs that are reserved, paused or refused by the same code, and those whose row it cannot decode.
    ///
    /// A claim ends a run's reservation, pause and refusals, and so does a signal; see [`Append::ends_deferral`].
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn due<'a>(&'a self, filter: &'a DueFilter) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>>;

    /// Changes when a run is due again, if the next number of its log is still `next`; otherwise does nothing.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    fn defer<'a>(&'a self, run: &'a RunId, next: Seq, deferral: &'a Deferral) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Notifies `watcher` of later appends to one run, or to all, until it is dropped. Appends of other processes are
    /// reported within a second.
    fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>);
}

/// Receives notifications when a log has grown.
///
/// The call comes after the append is visible to readers, on the thread that wrote or noticed it: `SqliteStore`'s only
/// writer thread, or the appending thread of [`MemoryStore`]. So an implementation must not block and must not wait for
/// the store; it should only wake another task.
pub trait Watcher: Send + Sync {
    /// The next number of this run's log is now `next`, or a later one.
    fn appended(&self, run: &RunId, next: Seq);
}
