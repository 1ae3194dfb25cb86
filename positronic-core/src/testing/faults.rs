//! A store that fails on demand.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::record::{Event, RunId, RunSummary, Seq, SignalId, Timer, Timestamp, TriggerId};
use crate::store::{
    Append, BoxFuture, Deferral, DueFilter, DueRun, Entry, EntryFilter, EventMatches, EventSearch, EventStore,
    InboundWebhook, Lease, MailboxEntry, PendingFilter, PendingItem, PostOutcome, RunFilter, SavedPrompts, Snapshot,
    StoreError, TimerFilter, Watcher,
};

/// A fault of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It writes nothing and fails.
    Refused(StoreError),
    /// It writes everything and fails, as if the reply were lost.
    Unanswered(StoreError),
    /// It takes this long and succeeds.
    Slow(Duration),
    /// It writes everything at once, and the reply takes this long.
    Late(Duration),
}

type Plan = Arc<dyn Fn(&RunId, &Append) -> Option<Fault> + Send + Sync>;
type Reads = Arc<dyn Fn(&'static str) -> Option<StoreError> + Send + Sync>;
type Pauses = Arc<dyn Fn(&'static str) -> Option<Duration> + Send + Sync>;

/// Wraps a store, whose appends and reads fail or take long on demand.
///
/// ```
/// use positronic_core::store::{MemoryStore, StoreError};
/// use positronic_core::testing::{Fault, FaultyStore};
///
/// let full = StoreError::Failed { message: "the disk is full".to_owned() };
/// let store = FaultyStore::new(MemoryStore::new(), move |_, append| {
///     (append.expected.0 >= 10).then(|| Fault::Refused(full.clone()))
/// });
/// ```
#[derive(Clone)]
pub struct FaultyStore<S> {
    inner: S,
    plan: Plan,
    reads: Reads,
    pauses: Pauses,
}

impl<S: EventStore> FaultyStore<S> {
    /// Wraps a store; `plan` chooses the fault of each append.
    pub fn new(inner: S, plan: impl Fn(&RunId, &Append) -> Option<Fault> + Send + Sync + 'static) -> Self {
        Self { inner, plan: Arc::new(plan), reads: Arc::new(|_| None), pauses: Arc::new(|_| None) }
    }

    /// Makes reads and file writes fail, too: `reads` gets the name of the method, such as `"mail"`.
    #[must_use]
    pub fn reading(self, reads: impl Fn(&'static str) -> Option<StoreError> + Send + Sync + 'static) -> Self {
        Self { reads: Arc::new(reads), ..self }
    }

    /// Delays the methods of [`FaultyStore::reading`]: `pauses` gets the name of the method.
    #[must_use]
    pub fn slowly(self, pauses: impl Fn(&'static str) -> Option<Duration> + Send + Sync + 'static) -> Self {
        Self { pauses: Arc::new(pauses), ..self }
    }

    fn read_or<'a, T: Send + 'a>(
        &self,
        method: &'static str,
        read: impl FnOnce() -> BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        let answer = match (self.reads)(method) {
            Some(error) => Box::pin(std::future::ready(Err(error))),
            None => read(),
        };
        match (self.pauses)(method) {
            Some(pause) => Box::pin(async move {
                tokio::time::sleep(pause).await;
                answer.await
            }),
            None => answer,
        }
    }
}

impl<S: EventStore> EventStore for FaultyStore<S> {
    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>> {
        match (self.plan)(run, &append) {
            None => self.inner.append(run, append),
            Some(Fault::Refused(error)) => Box::pin(std::future::ready(Err(error))),
            Some(Fault::Unanswered(error)) => Box::pin(async move {
                self.inner.append(run, append).await?;
                Err(error)
            }),
            Some(Fault::Late(pause)) => Box::pin(async move {
                self.inner.append(run, append).await?;
                tokio::time::sleep(pause).await;
                Ok(())
            }),
            Some(Fault::Slow(pause)) => Box::pin(async move {
                tokio::time::sleep(pause).await;
                self.inner.append(run, append).await
            }),
        }
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        self.read_or("read", || self.inner.read(run, from, most))
    }

    fn run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunSummary, StoreError>> {
        self.read_or("run", || self.inner.run(run))
    }

    fn runs<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunSummary>, StoreError>> {
        self.read_or("runs", || self.inner.runs(filter))
    }

    fn pending<'a>(&'a self, filter: &'a PendingFilter) -> BoxFuture<'a, Result<Vec<PendingItem>, StoreError>> {
        self.read_or("pending", || self.inner.pending(filter))
    }

    fn search<'a>(&'a self, search: &'a EventSearch) -> BoxFuture<'a, Result<EventMatches, StoreError>> {
        self.inner.search(search)
    }

    fn accepted<'a>(&'a self, run: &'a RunId, signal: &'a SignalId) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        self.read_or("accepted", || self.inner.accepted(run, signal))
    }

    fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>> {
        self.read_or("snapshot", || self.inner.snapshot(run))
    }

    fn saved_prompts<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<SavedPrompts>, StoreError>> {
        self.read_or("saved_prompts", || self.inner.saved_prompts(run))
    }

    fn sink_position<'a>(&'a self, run: &'a RunId, sink: &'a str) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        self.inner.sink_position(run, sink)
    }

    fn set_sink_position<'a>(
        &'a self,
        run: &'a RunId,
        sink: &'a str,
        next: Seq,
        done: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.set_sink_position(run, sink, next, done)
    }

    fn take_sink<'a>(
        &'a self,
        sink: &'a str,
        owner: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunId>, StoreError>> {
        self.inner.take_sink(sink, owner, limit)
    }

    fn remove<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<usize, StoreError>> {
        self.inner.remove(runs)
    }

    fn post<'a>(&'a self, mail: &'a InboundWebhook) -> BoxFuture<'a, Result<PostOutcome, StoreError>> {
        self.inner.post(mail)
    }

    fn mail<'a>(
        &'a self,
        webhook: &'a str,
        identifier: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<InboundWebhook>, StoreError>> {
        self.read_or("mail", || self.inner.mail(webhook, identifier, now))
    }

    fn mailbox(&self) -> BoxFuture<'_, Result<Vec<MailboxEntry>, StoreError>> {
        self.inner.mailbox()
    }

    fn mailbox_entry<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<Option<MailboxEntry>, StoreError>> {
        self.read_or("entry", || self.inner.mailbox_entry(mail))
    }

    fn discard<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.discard(mail)
    }

    fn timers<'a>(&'a self, filter: &'a TimerFilter) -> BoxFuture<'a, Result<Vec<Timer>, StoreError>> {
        self.read_or("timers", || self.inner.timers(filter))
    }

    fn remove_timer<'a>(&'a self, id: &'a TriggerId) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.inner.remove_timer(id)
    }

    fn entry<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, StoreError>> {
        self.read_or("entry", || self.inner.entry(kind, key))
    }

    fn entries<'a>(&'a self, filter: &'a EntryFilter) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        self.read_or("entries", || self.inner.entries(filter))
    }

    fn put_entry<'a>(
        &'a self,
        kind: &'a str,
        key: &'a str,
        value: &'a serde_json::Value,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.read_or("put_entry", || self.inner.put_entry(kind, key, value, expected))
    }

    fn remove_entry<'a>(&'a self, kind: &'a str, key: &'a str, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        self.read_or("remove_entry", || self.inner.remove_entry(kind, key, expected))
    }

    fn put_blob(&self, bytes: Vec<u8>, at: Timestamp) -> BoxFuture<'_, Result<String, StoreError>> {
        self.read_or("put_blob", || self.inner.put_blob(bytes, at))
    }

    fn blob<'a>(&'a self, sha256: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        self.read_or("blob", || self.inner.blob(sha256))
    }

    fn sweep_blobs(&self, before: Timestamp) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.inner.sweep_blobs(before)
    }

    fn acquire_lease(&self) -> BoxFuture<'_, Result<Lease, StoreError>> {
        self.inner.acquire_lease()
    }

    fn is_lease_live<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.inner.is_lease_live(owner)
    }

    fn renew_lease<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        self.read_or("renew_lease", || self.inner.renew_lease(owner))
    }

    fn due<'a>(&'a self, filter: &'a DueFilter) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        self.read_or("due", || self.inner.due(filter))
    }

    fn defer<'a>(&'a self, run: &'a RunId, next: Seq, deferral: &'a Deferral) -> BoxFuture<'a, Result<(), StoreError>> {
        self.read_or("defer", || self.inner.defer(run, next, deferral))
    }

    fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
        self.inner.watch(run, watcher);
    }
}

impl<S: fmt::Debug> fmt::Debug for FaultyStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FaultyStore").field(&self.inner).finish()
    }
}
