//! The stores that the promises about durability and signals are tested on: all of them.

use std::sync::{Arc, Weak, mpsc};

use positronic_core::record::{Event, RunId, RunSummary, Seq, SignalId, Timer, Timestamp, TriggerId};
use positronic_core::store::{
    Append, BoxFuture, Deferral, DueFilter, DueRun, Entry, EntryFilter, EventMatches, EventSearch, EventStore,
    InboundWebhook, Lease, MailboxEntry, MemoryStore, PendingFilter, PendingItem, PostOutcome, RunFilter, SavedPrompts,
    Snapshot, StoreError, TimerFilter, Watcher,
};
use positronic_sqlite::{Durability, SqliteOptions, SqliteStore};
use tempfile::TempDir;

/// Generates a test of each function for each store: `memory::promise_…` and `sqlite::promise_…`.
macro_rules! on_both_stores {
    ($($promise:ident)*) => {
        mod memory {
            $(#[tokio::test(start_paused = true)]
            async fn $promise() {
                super::$promise::<positronic_core::store::MemoryStore>().await;
            })*
        }

        mod sqlite {
            $(#[tokio::test(start_paused = true)]
            async fn $promise() {
                super::$promise::<crate::stores::OnDisk>().await;
            })*
        }
    };
}
pub(crate) use on_both_stores;

/// A kind of store that tests can create.
pub(crate) trait Fresh: EventStore + Clone {
    /// Creates an empty store.
    fn fresh() -> Self;

    /// Makes a worker look dead to the others, although it is alive.
    fn declare_dead(&self, owner: &str);
}

impl Fresh for MemoryStore {
    fn fresh() -> Self {
        Self::new()
    }

    fn declare_dead(&self, owner: &str) {
        self.declare_dead(owner);
    }
}

/// The embedded store, in its own folder. While it answers, the paused clock of a test stands still: tokio does not
/// know the store's threads, so it would take the wait for idleness and advance to the next timer.
#[derive(Clone)]
pub(crate) struct OnDisk {
    store: SqliteStore,
    folder: Arc<TempDir>,
}

impl Fresh for OnDisk {
    fn fresh() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions::builder().path(folder.path().join("runs.db")).durability(Durability::ProcessCrash);
        Self { store: SqliteStore::with(options.build()).unwrap(), folder: Arc::new(folder) }
    }

    fn declare_dead(&self, owner: &str) {
        std::fs::remove_file(self.folder.path().join("runs.db-workers").join(owner)).unwrap();
    }
}

impl OnDisk {
    /// Changes the file behind the store's back.
    pub(crate) fn execute(&self, sql: &str, value: &str) {
        let file = rusqlite::Connection::open(self.folder.path().join("runs.db")).unwrap();
        file.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
        assert_eq!(file.execute(sql, [value]).unwrap(), 1);
    }
}

/// Waits for an answer next to a task that keeps tokio busy.
fn keep_clock_still<'a, T: Send + 'a>(
    answer: BoxFuture<'a, Result<T, StoreError>>,
) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(async move {
        let (answered, until) = mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || until.recv());
        let answer: Result<T, StoreError> = answer.await;
        drop(answered);
        answer
    })
}

impl EventStore for OnDisk {
    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>> {
        keep_clock_still(self.store.append(run, append))
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        keep_clock_still(self.store.read(run, from, most))
    }

    fn run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunSummary, StoreError>> {
        keep_clock_still(self.store.run(run))
    }

    fn runs<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunSummary>, StoreError>> {
        keep_clock_still(self.store.runs(filter))
    }

    fn unreadable<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<(RunId, StoreError)>, StoreError>> {
        keep_clock_still(self.store.unreadable(filter))
    }

    fn pending<'a>(&'a self, filter: &'a PendingFilter) -> BoxFuture<'a, Result<Vec<PendingItem>, StoreError>> {
        keep_clock_still(self.store.pending(filter))
    }

    fn search<'a>(&'a self, search: &'a EventSearch) -> BoxFuture<'a, Result<EventMatches, StoreError>> {
        keep_clock_still(self.store.search(search))
    }

    fn accepted<'a>(&'a self, run: &'a RunId, signal: &'a SignalId) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        keep_clock_still(self.store.accepted(run, signal))
    }

    fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>> {
        keep_clock_still(self.store.snapshot(run))
    }

    fn saved_prompts<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<SavedPrompts>, StoreError>> {
        keep_clock_still(self.store.saved_prompts(run))
    }

    fn sink_position<'a>(&'a self, run: &'a RunId, sink: &'a str) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        keep_clock_still(self.store.sink_position(run, sink))
    }

    fn set_sink_position<'a>(
        &'a self,
        run: &'a RunId,
        sink: &'a str,
        next: Seq,
        done: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        keep_clock_still(self.store.set_sink_position(run, sink, next, done))
    }

    fn take_sink<'a>(
        &'a self,
        sink: &'a str,
        owner: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunId>, StoreError>> {
        keep_clock_still(self.store.take_sink(sink, owner, limit))
    }

    fn remove<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<usize, StoreError>> {
        keep_clock_still(self.store.remove(runs))
    }

    fn post<'a>(&'a self, mail: &'a InboundWebhook) -> BoxFuture<'a, Result<PostOutcome, StoreError>> {
        keep_clock_still(self.store.post(mail))
    }

    fn mail<'a>(
        &'a self,
        webhook: &'a str,
        identifier: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<InboundWebhook>, StoreError>> {
        keep_clock_still(self.store.mail(webhook, identifier, now))
    }

    fn mailbox(&self) -> BoxFuture<'_, Result<Vec<MailboxEntry>, StoreError>> {
        keep_clock_still(self.store.mailbox())
    }

    fn mailbox_entry<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<Option<MailboxEntry>, StoreError>> {
        keep_clock_still(self.store.mailbox_entry(mail))
    }

    fn discard<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<(), StoreError>> {
        keep_clock_still(self.store.discard(mail))
    }

    fn timers<'a>(&'a self, filter: &'a TimerFilter) -> BoxFuture<'a, Result<Vec<Timer>, StoreError>> {
        keep_clock_still(self.store.timers(filter))
    }

    fn remove_timer<'a>(&'a self, id: &'a TriggerId) -> BoxFuture<'a, Result<bool, StoreError>> {
        keep_clock_still(self.store.remove_timer(id))
    }

    fn entry<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, StoreError>> {
        keep_clock_still(self.store.entry(kind, key))
    }

    fn entries<'a>(&'a self, filter: &'a EntryFilter) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        keep_clock_still(self.store.entries(filter))
    }

    fn put_entry<'a>(
        &'a self,
        kind: &'a str,
        key: &'a str,
        value: &'a serde_json::Value,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        keep_clock_still(self.store.put_entry(kind, key, value, expected))
    }

    fn remove_entry<'a>(&'a self, kind: &'a str, key: &'a str, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        keep_clock_still(self.store.remove_entry(kind, key, expected))
    }

    fn put_blob(&self, bytes: Vec<u8>, at: Timestamp) -> BoxFuture<'_, Result<String, StoreError>> {
        keep_clock_still(self.store.put_blob(bytes, at))
    }

    fn blob<'a>(&'a self, sha256: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        keep_clock_still(self.store.blob(sha256))
    }

    fn sweep_blobs(&self, before: Timestamp) -> BoxFuture<'_, Result<usize, StoreError>> {
        keep_clock_still(self.store.sweep_blobs(before))
    }

    fn acquire_lease(&self) -> BoxFuture<'_, Result<Lease, StoreError>> {
        keep_clock_still(self.store.acquire_lease())
    }

    fn is_lease_live<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        keep_clock_still(self.store.is_lease_live(owner))
    }

    fn renew_lease<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        keep_clock_still(self.store.renew_lease(owner))
    }

    fn due<'a>(&'a self, filter: &'a DueFilter) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        keep_clock_still(self.store.due(filter))
    }

    fn defer<'a>(&'a self, run: &'a RunId, next: Seq, deferral: &'a Deferral) -> BoxFuture<'a, Result<(), StoreError>> {
        keep_clock_still(self.store.defer(run, next, deferral))
    }

    fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
        self.store.watch(run, watcher);
    }
}
