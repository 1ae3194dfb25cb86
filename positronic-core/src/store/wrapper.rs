//! Stores that wrap another store.

use std::sync::{Arc, Weak};

use serde_json::Value;

use super::{
    Append, BlobStore, BoxFuture, Deferral, DueFilter, DueRun, Entry, EntryFilter, EntryStore, EventLog, EventMatches,
    EventSearch, EventStore, FigureFilter, Figures, InboundWebhook, Lease, LeaseStore, MailboxEntry, MailboxStore,
    PendingFilter, PendingItem, PostOutcome, RunCounts, RunFilter, RunIndex, RunSums, SavedPrompts, SinkStore,
    Snapshot, StoreError, TimerFilter, TimerStore, Watcher,
};
use crate::record::{Event, RunId, RunSummary, Seq, SignalId, Timer, Timestamp, TriggerId};

/// Passes the operations of a store to a macro: those of [`StoreWrapper`] and of the traits that it implements.
macro_rules! operations {
    ($then:ident) => {
        $then! {
            EventLog {
                append(run: &'a RunId, append: Append) -> (),
                read(run: &'a RunId, from: Seq, most: usize) -> Vec<Arc<Event>>,
                accepted(run: &'a RunId, signal: &'a SignalId) -> Option<Seq>,
                snapshot(run: &'a RunId) -> Option<Snapshot>,
                saved_prompts(run: &'a RunId) -> Vec<SavedPrompts>,
                remove(runs: &'a [RunId]) -> usize,
            } {
                fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
                    StoreWrapper::watch(self, run, watcher);
                }
            }
            RunIndex {
                run(run: &'a RunId) -> RunSummary,
                runs(filter: &'a RunFilter) -> Vec<RunSummary>,
                counts(filter: &'a RunFilter) -> RunCounts,
                sums(filter: &'a RunFilter) -> RunSums,
                unreadable(filter: &'a RunFilter) -> Vec<(RunId, StoreError)>,
                pending(filter: &'a PendingFilter) -> Vec<PendingItem>,
                figures(filter: &'a FigureFilter) -> Figures,
                search(search: &'a EventSearch) -> EventMatches,
            } {}
            LeaseStore {
                acquire_lease() -> Lease,
                renew_lease(owner: &'a str) -> (),
                is_lease_live(owner: &'a str) -> bool,
                due(filter: &'a DueFilter) -> Vec<DueRun>,
                defer(run: &'a RunId, next: Seq, deferral: &'a Deferral) -> (),
            } {}
            MailboxStore {
                post(mail: &'a InboundWebhook) -> PostOutcome,
                mail(webhook: &'a str, identifier: &'a str, since: Timestamp, now: Timestamp) -> Option<InboundWebhook>,
                mailbox() -> Vec<MailboxEntry>,
                mailbox_entry(mail: &'a SignalId) -> Option<MailboxEntry>,
                discard(mail: &'a SignalId) -> (),
            } {}
            TimerStore {
                timers(filter: &'a TimerFilter) -> Vec<Timer>,
                remove_timer(id: &'a TriggerId) -> bool,
            } {}
            BlobStore {
                put_blob(bytes: Vec<u8>, at: Timestamp) -> String,
                blob(sha256: &'a str) -> Option<Vec<u8>>,
                sweep_blobs(before: Timestamp) -> usize,
            } {}
            EntryStore {
                entry(kind: &'a str, key: &'a str) -> Option<Entry>,
                entries(filter: &'a EntryFilter) -> Vec<Entry>,
                put_entry(kind: &'a str, key: &'a str, value: &'a Value, expected: Option<u64>) -> u64,
                remove_entry(kind: &'a str, key: &'a str, expected: u64) -> (),
            } {}
            SinkStore {
                sink_position(run: &'a RunId, sink: &'a str) -> Option<Seq>,
                set_sink_position(run: &'a RunId, sink: &'a str, next: Seq, done: Option<&'a str>) -> (),
                take_sink(sink: &'a str, owner: &'a str, limit: usize) -> Vec<RunId>,
            } {}
        }
    };
}

/// Defines the methods of [`StoreWrapper`] that have a default.
macro_rules! overridable {
    ($($part:ident { $($method:ident($($argument:ident: $type:ty),*) -> $value:ty,)* } { $($rest:tt)* })*) => { $($(
        #[doc = concat!("Implements [`", stringify!($part), "::", stringify!($method), "`].")]
        fn $method<'a>(&'a self, $($argument: $type),*) -> BoxFuture<'a, Result<$value, StoreError>> {
            self.intercept(stringify!($method), move |inner| $part::$method(inner, $($argument),*))
        }
    )*)* };
}

/// Implements the traits of a store for all wrappers.
macro_rules! parts {
    ($($part:ident { $($method:ident($($argument:ident: $type:ty),*) -> $value:ty,)* } { $($rest:tt)* })*) => { $(
        impl<W: StoreWrapper> $part for W {
            $(
                fn $method<'a>(&'a self, $($argument: $type),*) -> BoxFuture<'a, Result<$value, StoreError>> {
                    StoreWrapper::$method(self, $($argument),*)
                }
            )*
            $($rest)*
        }
    )* };
}

/// A store around another one, to which each method delegates unless it is overridden. Every wrapper is an
/// [`EventStore`].
///
/// This one makes a store read-only:
///
/// ```
/// use positronic_core::record::RunId;
/// use positronic_core::store::{Append, BoxFuture, EventStore, StoreError, StoreWrapper};
///
/// struct Frozen<S>(S);
///
/// impl<S: EventStore> StoreWrapper for Frozen<S> {
///     type Inner = S;
///
///     fn inner(&self) -> &S {
///         &self.0
///     }
///
///     fn append<'a>(&'a self, run: &'a RunId, _: Append) -> BoxFuture<'a, Result<(), StoreError>> {
///         let message = format!("cannot append to `{run}`: the store is frozen");
///         Box::pin(std::future::ready(Err(StoreError::Failed { message })))
///     }
/// }
///
/// fn frozen(store: impl EventStore) -> impl EventStore {
///     Frozen(store)
/// }
/// ```
pub trait StoreWrapper: Send + Sync + 'static {
    /// The wrapped store.
    type Inner: EventStore + ?Sized;

    /// Returns the wrapped store.
    fn inner(&self) -> &Self::Inner;

    /// Performs an operation on the wrapped store, for each method but [`watch`](Self::watch) that is not overridden:
    /// the place to count, delay or refuse all of them. `method` is its name, such as `"read"`.
    fn intercept<'a, T: Send + 'a>(
        &'a self,
        method: &'static str,
        operation: impl FnOnce(&'a Self::Inner) -> BoxFuture<'a, Result<T, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        _ = method;
        operation(self.inner())
    }

    operations!(overridable);

    /// Implements [`EventLog::watch`].
    fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
        self.inner().watch(run, watcher);
    }
}

operations!(parts);

/// A shared store, so that a program can choose one at run time.
impl<S: EventStore + ?Sized> StoreWrapper for Arc<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        self
    }
}
