//! A store that counts what is read from it.

use std::sync::{Arc, Mutex, Weak};

use positronic_core::record::{Event, RunId, RunSummary, Seq, SignalId, Timer, Timestamp, TriggerId};
use positronic_core::store::{
    Append, BoxFuture, Deferral, DueFilter, DueRun, Entry, EntryFilter, EventMatches, EventSearch, EventStore,
    InboundWebhook, Lease, MailboxEntry, PendingFilter, PendingItem, PostOutcome, RunFilter, SavedPrompts, Snapshot,
    StoreError, TimerFilter, Watcher,
};

/// What was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    /// Queries, and appends.
    pub(crate) operations: usize,
    pub(crate) events: usize,
    pub(crate) rows: usize,
    pub(crate) snapshots: usize,
}

/// Counts the reads of another store. Clones share the counts.
#[derive(Clone)]
pub(crate) struct Counting {
    store: Arc<dyn EventStore>,
    reads: Arc<Mutex<Reads>>,
    spoils: fn(SavedPrompts) -> Option<SavedPrompts>,
}

impl Counting {
    pub(crate) fn over(store: impl EventStore) -> Self {
        Self { store: Arc::new(store), reads: Arc::default(), spoils: Some }
    }

    /// Changes what is read of saved prompts. It shares the counts.
    pub(crate) fn spoiling(&self, spoils: fn(SavedPrompts) -> Option<SavedPrompts>) -> Self {
        Self { spoils, ..self.clone() }
    }

    /// Returns what was read since the last call.
    pub(crate) fn take(&self) -> Reads {
        std::mem::take(&mut self.reads.lock().unwrap())
    }

    /// Counts an operation and, by `add`, its result.
    fn counted<'a, T: Send + 'a>(
        &'a self,
        answer: BoxFuture<'a, Result<T, StoreError>>,
        add: impl FnOnce(&mut Reads, &T) + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            let answer = answer.await;
            let mut reads = self.reads.lock().unwrap();
            reads.operations += 1;
            if let Ok(read) = &answer {
                add(&mut reads, read);
            }
            drop(reads);
            answer
        })
    }
}

impl EventStore for Counting {
    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>> {
        self.counted(self.store.append(run, append), |_, ()| ())
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        self.counted(self.store.read(run, from, most), |reads, events| reads.events += events.len())
    }

    fn run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunSummary, StoreError>> {
        self.counted(self.store.run(run), |reads, _| reads.rows += 1)
    }

    fn runs<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunSummary>, StoreError>> {
        self.counted(self.store.runs(filter), |reads, rows| reads.rows += rows.len())
    }

    fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>> {
        self.counted(self.store.snapshot(run), |reads, found| reads.snapshots += usize::from(found.is_some()))
    }

    fn saved_prompts<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<SavedPrompts>, StoreError>> {
        let spoiled =
            async move { Ok(self.store.saved_prompts(run).await?.into_iter().filter_map(self.spoils).collect()) };
        self.counted(Box::pin(spoiled), |reads, parts: &Vec<_>| reads.snapshots += parts.len())
    }

    fn pending<'a>(&'a self, filter: &'a PendingFilter) -> BoxFuture<'a, Result<Vec<PendingItem>, StoreError>> {
        self.store.pending(filter)
    }

    fn search<'a>(&'a self, search: &'a EventSearch) -> BoxFuture<'a, Result<EventMatches, StoreError>> {
        self.store.search(search)
    }

    fn remove<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<usize, StoreError>> {
        self.store.remove(runs)
    }

    fn post<'a>(&'a self, mail: &'a InboundWebhook) -> BoxFuture<'a, Result<PostOutcome, StoreError>> {
        self.store.post(mail)
    }

    fn mail<'a>(
        &'a self,
        webhook: &'a str,
        identifier: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<InboundWebhook>, StoreError>> {
        self.store.mail(webhook, identifier, now)
    }

    fn mailbox(&self) -> BoxFuture<'_, Result<Vec<MailboxEntry>, StoreError>> {
        self.store.mailbox()
    }

    fn discard<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.discard(mail)
    }

    fn timers<'a>(&'a self, filter: &'a TimerFilter) -> BoxFuture<'a, Result<Vec<Timer>, StoreError>> {
        self.store.timers(filter)
    }

    fn remove_timer<'a>(&'a self, id: &'a TriggerId) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.store.remove_timer(id)
    }

    fn entry<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, StoreError>> {
        self.store.entry(kind, key)
    }

    fn entries<'a>(&'a self, filter: &'a EntryFilter) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        self.store.entries(filter)
    }

    fn put_entry<'a>(
        &'a self,
        kind: &'a str,
        key: &'a str,
        value: &'a serde_json::Value,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.store.put_entry(kind, key, value, expected)
    }

    fn remove_entry<'a>(&'a self, kind: &'a str, key: &'a str, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.remove_entry(kind, key, expected)
    }

    fn put_blob(&self, bytes: Vec<u8>, at: Timestamp) -> BoxFuture<'_, Result<String, StoreError>> {
        self.store.put_blob(bytes, at)
    }

    fn blob<'a>(&'a self, sha256: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        self.store.blob(sha256)
    }

    fn sweep_blobs(&self, before: Timestamp) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.store.sweep_blobs(before)
    }

    fn acquire_lease(&self) -> BoxFuture<'_, Result<Lease, StoreError>> {
        self.store.acquire_lease()
    }

    fn is_lease_live<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.store.is_lease_live(owner)
    }

    fn renew_lease<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.renew_lease(owner)
    }

    fn due<'a>(&'a self, filter: &'a DueFilter) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        self.store.due(filter)
    }

    fn defer<'a>(&'a self, run: &'a RunId, next: Seq, deferral: &'a Deferral) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.defer(run, next, deferral)
    }

    fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
        self.store.watch(run, watcher);
    }
}
