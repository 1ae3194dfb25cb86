//! A network between workers and their store, which delays, loses and cuts off messages.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use positronic_core::record::{Event, RunId, RunSummary, Seq, SignalId, Timer, Timestamp, TriggerId};
use positronic_core::store::{
    Append, BoxFuture, Deferral, DueFilter, DueRun, Entry, EntryFilter, EventMatches, EventSearch, EventStore,
    InboundWebhook, Lease, MailboxEntry, MemoryStore, PendingFilter, PendingItem, PostOutcome, RunFilter, Snapshot,
    StoreError, TimerFilter, Watcher,
};
use tokio::sync::watch;

/// How long a client waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Pseudo-random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// One machine's connection to the store.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    store: MemoryStore,
    line: Arc<Line>,
}

#[derive(Debug)]
struct Line {
    cut: watch::Sender<bool>,
    dice: Mutex<Dice>,
    /// One of so many messages is lost; zero for none.
    loses: u64,
    /// The longest delay of a message in milliseconds.
    delay: u64,
    watchers: Mutex<Vec<Arc<RemoteWatcher>>>,
}

impl Connection {
    /// Connects a machine. One of `loses` messages is lost in each direction.
    pub(crate) fn new(store: &MemoryStore, seed: u64, loses: u64, delay: u64) -> Self {
        let (cut, dice, watchers) = (watch::Sender::new(false), Mutex::new(Dice(seed)), Mutex::default());
        Self { store: store.clone(), line: Arc::new(Line { cut, dice, loses, delay, watchers }) }
    }

    /// Cuts the machine off, or connects it again.
    pub(crate) fn cut(&self, cut: bool) {
        self.line.cut.send_replace(cut);
        if !cut {
            for watcher in &*self.line.watchers.lock().unwrap() {
                watcher.catch_up();
            }
        }
    }

    /// Delivers a message, or fails if it does not arrive in time.
    async fn deliver(&self) -> Result<(), StoreError> {
        let (delay, lost) = {
            let (mut dice, line) = (self.line.dice.lock().unwrap(), &self.line);
            let delay = dice.below(line.delay + 1);
            (Duration::from_millis(delay), line.loses > 0 && dice.below(line.loses) == 0)
        };
        tokio::time::sleep(delay).await;
        let failed = || StoreError::Failed { message: "no answer".to_owned() };
        if lost {
            tokio::time::sleep(TIMEOUT).await;
            return Err(failed());
        }
        let mut cut = self.line.cut.subscribe();
        match tokio::time::timeout(TIMEOUT, cut.wait_for(|cut| !*cut)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(failed()),
        }
    }

    async fn read_from<T>(&self, read: BoxFuture<'_, Result<T, StoreError>>) -> Result<T, StoreError> {
        self.deliver().await?;
        let answer = read.await;
        self.deliver().await?;
        answer
    }

    async fn written<T>(&self, write: BoxFuture<'_, Result<T, StoreError>>) -> Result<T, StoreError> {
        self.deliver().await?;
        let answer = write.await;
        match self.deliver().await {
            Ok(()) => answer,
            Err(_) => Err(StoreError::Unknown { message: "the answer was lost".to_owned() }),
        }
    }
}

/// A watcher that gets nothing while its machine is cut off, and everything afterwards.
struct RemoteWatcher {
    watcher: Weak<dyn Watcher>,
    cut: watch::Receiver<bool>,
    missed: Mutex<Vec<(RunId, Seq)>>,
}

impl RemoteWatcher {
    fn catch_up(&self) {
        let missed = std::mem::take(&mut *self.missed.lock().unwrap());
        for (run, next) in missed {
            self.appended(&run, next);
        }
    }
}

impl std::fmt::Debug for RemoteWatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RemoteWatcher")
    }
}

impl Watcher for RemoteWatcher {
    fn appended(&self, run: &RunId, next: Seq) {
        match self.watcher.upgrade() {
            Some(_) if *self.cut.borrow() => self.missed.lock().unwrap().push((run.clone(), next)),
            Some(watcher) => watcher.appended(run, next),
            None => {}
        }
    }
}

impl EventStore for Connection {
    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.written(self.store.append(run, append)))
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        Box::pin(self.read_from(self.store.read(run, from, most)))
    }

    fn run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunSummary, StoreError>> {
        Box::pin(self.read_from(self.store.run(run)))
    }

    fn runs<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunSummary>, StoreError>> {
        Box::pin(self.read_from(self.store.runs(filter)))
    }

    fn unreadable<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<(RunId, StoreError)>, StoreError>> {
        Box::pin(self.read_from(self.store.unreadable(filter)))
    }

    fn pending<'a>(&'a self, filter: &'a PendingFilter) -> BoxFuture<'a, Result<Vec<PendingItem>, StoreError>> {
        Box::pin(self.read_from(self.store.pending(filter)))
    }

    fn search<'a>(&'a self, search: &'a EventSearch) -> BoxFuture<'a, Result<EventMatches, StoreError>> {
        Box::pin(self.read_from(self.store.search(search)))
    }

    fn accepted<'a>(&'a self, run: &'a RunId, signal: &'a SignalId) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        Box::pin(self.read_from(self.store.accepted(run, signal)))
    }

    fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>> {
        Box::pin(self.read_from(self.store.snapshot(run)))
    }

    fn remove<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<usize, StoreError>> {
        Box::pin(self.written(self.store.remove(runs)))
    }

    fn post<'a>(&'a self, mail: &'a InboundWebhook) -> BoxFuture<'a, Result<PostOutcome, StoreError>> {
        Box::pin(self.written(self.store.post(mail)))
    }

    fn mail<'a>(
        &'a self,
        webhook: &'a str,
        identifier: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<InboundWebhook>, StoreError>> {
        Box::pin(self.read_from(self.store.mail(webhook, identifier, now)))
    }

    fn mailbox(&self) -> BoxFuture<'_, Result<Vec<MailboxEntry>, StoreError>> {
        Box::pin(self.read_from(self.store.mailbox()))
    }

    fn mailbox_entry<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<Option<MailboxEntry>, StoreError>> {
        Box::pin(self.read_from(self.store.mailbox_entry(mail)))
    }

    fn discard<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.written(self.store.discard(mail)))
    }

    fn timers<'a>(&'a self, filter: &'a TimerFilter) -> BoxFuture<'a, Result<Vec<Timer>, StoreError>> {
        Box::pin(self.read_from(self.store.timers(filter)))
    }

    fn remove_timer<'a>(&'a self, id: &'a TriggerId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.written(self.store.remove_timer(id)))
    }

    fn entry<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, StoreError>> {
        Box::pin(self.read_from(self.store.entry(kind, key)))
    }

    fn entries<'a>(&'a self, filter: &'a EntryFilter) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        Box::pin(self.read_from(self.store.entries(filter)))
    }

    fn put_entry<'a>(
        &'a self,
        kind: &'a str,
        key: &'a str,
        value: &'a serde_json::Value,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(self.written(self.store.put_entry(kind, key, value, expected)))
    }

    fn remove_entry<'a>(&'a self, kind: &'a str, key: &'a str, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.written(self.store.remove_entry(kind, key, expected)))
    }

    fn put_blob(&self, bytes: Vec<u8>, at: Timestamp) -> BoxFuture<'_, Result<String, StoreError>> {
        Box::pin(self.written(self.store.put_blob(bytes, at)))
    }

    fn blob<'a>(&'a self, sha256: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(self.read_from(self.store.blob(sha256)))
    }

    fn sweep_blobs(&self, before: Timestamp) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.written(self.store.sweep_blobs(before)))
    }

    fn acquire_lease(&self) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(self.written(self.store.acquire_lease()))
    }

    fn renew_lease<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.written(self.store.renew_lease(owner)))
    }

    fn is_lease_live<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.read_from(self.store.is_lease_live(owner)))
    }

    fn due<'a>(&'a self, filter: &'a DueFilter) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        Box::pin(self.written(self.store.due(filter)))
    }

    fn defer<'a>(&'a self, run: &'a RunId, next: Seq, deferral: &'a Deferral) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.written(self.store.defer(run, next, deferral)))
    }

    fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
        let cut = self.line.cut.subscribe();
        let remote = Arc::new(RemoteWatcher { watcher, cut, missed: Mutex::default() });
        let shared: Arc<dyn Watcher> = Arc::clone(&remote) as Arc<dyn Watcher>;
        self.store.watch(run, Arc::downgrade(&shared) as Weak<dyn Watcher>);
        let mut watchers = self.line.watchers.lock().unwrap();
        watchers.retain(|known| known.watcher.strong_count() > 0);
        watchers.push(remote);
    }
}
