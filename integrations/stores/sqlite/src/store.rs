//! The SQLite store.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use positronic_core::record::{Event, RunId, RunSummary, Seq, SignalId, Timer, Timestamp, TriggerId};
use positronic_core::store::{
    Append, BlobStore, BoxFuture, Deferral, DueFilter, DueRun, Entry, EntryFilter, EntryStore, EventLog, EventMatches,
    EventSearch, FigureFilter, Figures, InboundWebhook, Lease, LeaseStore, MailboxEntry, MailboxStore, PendingFilter,
    PendingItem, PostOutcome, RunCounts, RunFilter, RunIndex, SavedPrompts, SinkStore, Snapshot, StoreError,
    TimerFilter, TimerStore, Watcher, content_hash, verify_content,
};
use serde_json::Value;

use super::append::{self, Encoded};
use super::failure::{DbError, StoreFile};
use super::group::Tx;
use super::leases::Workers;
use super::options::{Durability, SqliteOptions};
use super::reader::Readers;
use super::rows::encode;
use super::writer::Writer;
use super::{backup, blobs, connection, due, entries, figures, mailbox, pending, query, remove, sinks, timers};

/// Number of reader threads: two, so that one long log does not block all other reads.
const READERS: usize = 2;
/// How many runs one commit removes.
const REMOVED: usize = 64;

/// Stores logs in a SQLite file, which several processes may use at the same time. Clones share it.
///
/// SQLite adds `<file>-wal` and `<file>-shm` while the file is in use, and workers lock files in `<file>-workers/` to
/// show that they are alive. The file must be on a local file system.
///
/// Dropping the last clone waits for pending writes.
///
/// ```
/// use positronic_core::model::scripted::{Reply, ScriptedModel};
/// use positronic_core::prelude::*;
/// use positronic_core::record::Status;
/// use positronic_core::runner::Runner;
/// use positronic_core::store::RunIndex as _;
/// use positronic_sqlite::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("runs.db");
/// let store = SqliteStore::open(path)?;
/// let model = ScriptedModel::new([Reply::text("Good morning.")]);
/// let runner = Runner::new(model).store(store.clone());
///
/// let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet.").input("Hello!"));
/// let run = runner.start(&greeter, ()).await?;
/// run.result().await?;
///
/// assert_eq!(store.run(run.id()).await?.status, Status::Completed);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

struct Shared {
    store_file: StoreFile,
    read_only: bool,
    durability: Durability,
    workers: Workers,
    /// `None` while the store is dropped, like the readers.
    writer: Option<Writer>,
    readers: Option<Readers>,
    searches: Option<Readers>,
    writing: Option<JoinHandle<()>>,
    reading: Vec<JoinHandle<()>>,
}

impl SqliteStore {
    /// Opens a store with the default options, and creates the file if it does not exist. Blocks on the disk and on
    /// locks of other processes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unusable`] when the file cannot be a store: its folder does not exist, it is not writable, it is
    /// damaged, it belongs to another program, or a newer release wrote it. [`StoreError::Failed`] when it cannot be
    /// opened now: another process keeps it locked, or the disk is full.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::with(SqliteOptions::builder().path(path).build())
    }

    /// Opens a store.
    ///
    /// # Errors
    ///
    /// See [`open`](Self::open).
    pub fn with(mut options: SqliteOptions) -> Result<Self, StoreError> {
        let given = options.path.display();
        let absolute = std::path::absolute(&options.path)
            .map_err(|error| StoreError::Unusable { message: format!("invalid path `{given}`: {error}") })?;
        options.path = absolute;
        let store_file = StoreFile { path: options.path.clone(), busy_timeout: options.busy_timeout };
        if options.path.is_dir() {
            return Err(StoreError::Unusable { message: store_file.is_folder() });
        }
        Self::start(&options, &store_file).map_err(|db_error| store_file.explain(db_error))
    }

    /// Copies the store into a new file: everything that is committed now, also what is still in the write-ahead log, which
    /// a copy of the file alone lacks. Other threads and processes may use the store meanwhile.
    ///
    /// To restore it, stop all processes and put the copy in the place of the store's file, without the files beside that
    /// end in `-wal` and `-shm`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unusable`] if the file exists already or cannot be created, [`StoreError::Failed`] if it cannot be
    /// written.
    pub async fn back_up(&self, to: impl Into<PathBuf>) -> Result<(), StoreError> {
        let (store_file, to) = (self.shared.store_file.clone(), to.into());
        let (reply, answer) = futures::channel::oneshot::channel();
        // Not on a thread that reads: it takes as long as the file is large.
        let copy = move || _ = reply.send(backup::copy(&store_file, &to).map_err(|error| store_file.explain(error)));
        let thread = std::thread::Builder::new().name("positronic-backup".to_owned()).spawn(copy);
        thread.map_err(|error| StoreError::Failed { message: error.to_string() })?;
        answer.await.map_err(|_| super::failure::store_closed())?
    }

    fn start(options: &SqliteOptions, store_file: &StoreFile) -> Result<Self, DbError> {
        let (db, checkpoints) = if options.read_only {
            (connection::to_read(store_file)?, connection::to_read(store_file)?)
        } else {
            (connection::to_write(options, store_file)?, connection::to_checkpoint(options, store_file)?)
        };
        // Processes that open the file by different paths must share the leases.
        let real = std::fs::canonicalize(&store_file.path).unwrap_or_else(|_| store_file.path.clone());
        let connections = |count| (0..count).map(|_| connection::to_read(store_file)).collect::<Result<Vec<_>, _>>();
        let (readers, mut reading) = Readers::start(store_file.clone(), connections(READERS)?)?;
        let (searches, more) = Readers::start(store_file.clone(), connections(1)?)?;
        reading.extend(more);
        let (writer, thread) = Writer::start(db, checkpoints, store_file.clone())?;
        Ok(Self {
            shared: Arc::new(Shared {
                store_file: store_file.clone(),
                read_only: options.read_only,
                durability: options.durability,
                workers: Workers::of(&real),
                writer: Some(writer),
                readers: Some(readers),
                searches: Some(searches),
                writing: Some(thread),
                reading,
            }),
        })
    }

    fn writer(&self) -> Result<&Writer, StoreError> {
        self.writes()?;
        match &self.shared.writer {
            Some(writer) => Ok(writer),
            None => Err(super::failure::store_closed()),
        }
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Tx<'_>) -> Result<T, DbError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer()?.write(work).await
    }

    /// Returns an error if the store is read-only.
    fn writes(&self) -> Result<(), StoreError> {
        if !self.shared.read_only {
            return Ok(());
        }
        let message = format!(
            "cannot write the event store `{}`: it was opened read-only",
            self.shared.store_file.path.display()
        );
        Err(StoreError::Unusable { message })
    }

    async fn ask<T: Send + 'static>(
        &self,
        query: impl FnOnce(&rusqlite::Connection) -> Result<T, DbError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.shared.readers {
            Some(readers) => readers.ask(query).await,
            None => Err(super::failure::store_closed()),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The last connection to close removes the WAL, and only the writer may.
        drop((self.readers.take(), self.searches.take()));
        join(std::mem::take(&mut self.reading));
        drop(self.writer.take());
        join(self.writing.take());
    }
}

/// Waits for threads to end, except for the current one: a watcher may drop the last clone.
fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    let own = std::thread::current().id();
    for thread in threads.into_iter().filter(|thread| thread.thread().id() != own) {
        _ = thread.join();
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SqliteStore").field(&self.shared.store_file.path).finish()
    }
}

impl EventLog for SqliteStore {
    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let encoded = Encoded::new(run, append)?;
            let (writer, work) = (self.writer()?, move |tx: &mut Tx<'_>| append::write(tx, &encoded));
            match self.shared.durability {
                Durability::ProcessCrash => writer.write_here(run, work).await,
                Durability::PowerLoss => writer.write(work).await,
            }
        })
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        let run = run.clone();
        Box::pin(self.ask(move |db| query::read(db, &run, from, most)))
    }

    fn accepted<'a>(&'a self, run: &'a RunId, signal: &'a SignalId) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        let (run, signal) = (run.clone(), signal.clone());
        Box::pin(self.ask(move |db| query::accepted(db, &run, &signal)))
    }

    fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>> {
        let run = run.clone();
        Box::pin(self.ask(move |db| query::snapshot(db, &run)))
    }

    fn saved_prompts<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<SavedPrompts>, StoreError>> {
        let run = run.clone();
        Box::pin(self.ask(move |db| query::saved_prompts(db, &run)))
    }

    fn remove<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<usize, StoreError>> {
        Box::pin(async move {
            let mut removed = 0;
            // In groups, so that concurrent appends do not wait for the full removal.
            for group in runs.chunks(REMOVED) {
                let group = group.to_vec();
                removed += self.write(move |tx| remove::runs(tx, &group)).await?;
            }
            while removed > 0 && self.write(remove::free).await? {}
            Ok(removed)
        })
    }

    fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
        if let Some(writer) = &self.shared.writer {
            writer.watch(|watchers| watchers.add(run, watcher));
        }
    }
}

impl RunIndex for SqliteStore {
    fn run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunSummary, StoreError>> {
        let run = run.clone();
        Box::pin(self.ask(move |db| query::run(db, &run)))
    }

    fn runs<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunSummary>, StoreError>> {
        let filter = filter.clone();
        Box::pin(self.ask(move |db| query::runs(db, &filter)))
    }

    fn counts<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<RunCounts, StoreError>> {
        let filter = filter.clone();
        Box::pin(self.ask(move |db| query::counts(db, &filter)))
    }

    fn unreadable<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<(RunId, StoreError)>, StoreError>> {
        let filter = filter.clone();
        Box::pin(async move {
            let found = self.ask(move |db| query::unreadable(db, &filter)).await?;
            let store_file = &self.shared.store_file;
            Ok(found.into_iter().map(|(run, db_error)| (run, store_file.explain(db_error))).collect())
        })
    }

    fn pending<'a>(&'a self, filter: &'a PendingFilter) -> BoxFuture<'a, Result<Vec<PendingItem>, StoreError>> {
        let filter = filter.clone();
        Box::pin(self.ask(move |db| pending::list(db, &filter)))
    }

    fn figures<'a>(&'a self, filter: &'a FigureFilter) -> BoxFuture<'a, Result<Figures, StoreError>> {
        let filter = filter.clone();
        Box::pin(self.ask(move |db| figures::figures(db, &filter)))
    }

    fn search<'a>(&'a self, search: &'a EventSearch) -> BoxFuture<'a, Result<EventMatches, StoreError>> {
        let search = search.clone();
        Box::pin(async move {
            match &self.shared.searches {
                Some(searches) => searches.ask(move |db| query::search(db, &search)).await,
                None => Err(super::failure::store_closed()),
            }
        })
    }
}

impl LeaseStore for SqliteStore {
    fn acquire_lease(&self) -> BoxFuture<'_, Result<Lease, StoreError>> {
        let workers = self.shared.workers.clone();
        Box::pin(async move {
            self.writes()?;
            self.ask(move |_| Ok(workers.acquire_lease()?)).await
        })
    }

    fn renew_lease<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        // A lease has no time to live: it is live until it is dropped.
        Box::pin(async move {
            let lapsed = || StoreError::LeaseLapsed { owner: owner.to_owned() };
            self.is_lease_live(owner).await?.then_some(()).ok_or_else(lapsed)
        })
    }

    fn is_lease_live<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        let (workers, owner) = (self.shared.workers.clone(), owner.to_owned());
        Box::pin(self.ask(move |_| Ok(workers.is_lease_live(&owner)?)))
    }

    fn due<'a>(&'a self, filter: &'a DueFilter) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        let (workers, filter) = (self.shared.workers.clone(), filter.clone());
        Box::pin(async move {
            let (read_workers, read_filter) = (workers.clone(), filter.clone());
            // Usually nothing is due, and then nothing is written.
            match self.ask(move |db| due::any(db, &read_workers, &read_filter)).await? {
                true => self.write(move |tx| due::reserve(tx.db(), &workers, &filter)).await,
                false => Ok(Vec::new()),
            }
        })
    }

    fn defer<'a>(&'a self, run: &'a RunId, next: Seq, deferral: &'a Deferral) -> BoxFuture<'a, Result<(), StoreError>> {
        let (run, deferral) = (run.clone(), deferral.clone());
        Box::pin(self.write(move |tx| due::defer(tx.db(), &run, next, &deferral)))
    }
}

impl MailboxStore for SqliteStore {
    fn post<'a>(&'a self, mail: &'a InboundWebhook) -> BoxFuture<'a, Result<PostOutcome, StoreError>> {
        let mail = mail.clone();
        Box::pin(async move {
            let content = encode(&mail)?;
            self.write(move |tx| mailbox::post(tx.db(), &mail, &content)).await
        })
    }

    fn mail<'a>(
        &'a self,
        webhook: &'a str,
        identifier: &'a str,
        since: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<InboundWebhook>, StoreError>> {
        let (webhook, identifier) = (webhook.to_owned(), identifier.to_owned());
        Box::pin(self.ask(move |db| mailbox::oldest(db, &webhook, &identifier, since, now)))
    }

    fn mailbox(&self) -> BoxFuture<'_, Result<Vec<MailboxEntry>, StoreError>> {
        Box::pin(self.ask(mailbox::all))
    }

    fn mailbox_entry<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<Option<MailboxEntry>, StoreError>> {
        let mail = mail.clone();
        Box::pin(self.ask(move |db| mailbox::one(db, &mail)))
    }

    fn discard<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<(), StoreError>> {
        let mail = mail.clone();
        Box::pin(self.write(move |tx| mailbox::discard(tx.db(), &mail)))
    }
}

impl TimerStore for SqliteStore {
    fn timers<'a>(&'a self, filter: &'a TimerFilter) -> BoxFuture<'a, Result<Vec<Timer>, StoreError>> {
        let filter = filter.clone();
        Box::pin(self.ask(move |db| timers::list(db, &filter)))
    }

    fn remove_timer<'a>(&'a self, id: &'a TriggerId) -> BoxFuture<'a, Result<bool, StoreError>> {
        let id = id.clone();
        Box::pin(self.write(move |tx| timers::remove(tx.db(), &id)))
    }
}

impl BlobStore for SqliteStore {
    fn put_blob(&self, bytes: Vec<u8>, at: Timestamp) -> BoxFuture<'_, Result<String, StoreError>> {
        Box::pin(async move {
            self.writes()?;
            // Not on the executor's thread: hashing 32 MiB takes 100 ms.
            let (name, bytes) = self.ask(move |_| Ok((content_hash(&bytes)?, bytes))).await?;
            let key = name.clone();
            self.write(move |tx| blobs::put(tx.db(), &key, &bytes, at)).await?;
            Ok(name)
        })
    }

    fn blob<'a>(&'a self, sha256: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        let sha256 = sha256.to_owned();
        Box::pin(self.ask(move |db| {
            let bytes = blobs::get(db, &sha256)?;
            Ok(bytes.map(|bytes| verify_content(&sha256, bytes)).transpose()?)
        }))
    }

    fn sweep_blobs(&self, before: Timestamp) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(async move {
            if !self.ask(move |db| blobs::any_unreferenced(db, before)).await? {
                return Ok(0);
            }
            let swept = self.write(move |tx| blobs::sweep(tx.db(), before)).await?;
            while swept > 0 && self.write(remove::free).await? {}
            Ok(swept)
        })
    }
}

impl EntryStore for SqliteStore {
    fn entry<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, StoreError>> {
        let (kind, key) = (kind.to_owned(), key.to_owned());
        Box::pin(self.ask(move |db| entries::one(db, &kind, &key)))
    }

    fn entries<'a>(&'a self, filter: &'a EntryFilter) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        let filter = filter.clone();
        Box::pin(self.ask(move |db| entries::list(db, &filter)))
    }

    fn put_entry<'a>(
        &'a self,
        kind: &'a str,
        key: &'a str,
        value: &'a Value,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        let (kind, key) = (kind.to_owned(), key.to_owned());
        Box::pin(async move {
            let value = encode(value)?;
            self.write(move |tx| entries::put(tx.db(), &kind, &key, &value, expected)).await
        })
    }

    fn remove_entry<'a>(&'a self, kind: &'a str, key: &'a str, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        let (kind, key) = (kind.to_owned(), key.to_owned());
        Box::pin(self.write(move |tx| entries::remove(tx.db(), &kind, &key, expected)))
    }
}

impl SinkStore for SqliteStore {
    fn sink_position<'a>(&'a self, run: &'a RunId, sink: &'a str) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        let (run, sink) = (run.clone(), sink.to_owned());
        Box::pin(self.ask(move |db| sinks::position(db, &run, &sink)))
    }

    fn set_sink_position<'a>(
        &'a self,
        run: &'a RunId,
        sink: &'a str,
        next: Seq,
        done: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (run, sink, done) = (run.clone(), sink.to_owned(), done.map(str::to_owned));
        Box::pin(self.write(move |tx| sinks::set(tx.db(), &run, &sink, next, done.as_deref())))
    }

    fn take_sink<'a>(
        &'a self,
        sink: &'a str,
        owner: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunId>, StoreError>> {
        let (workers, sink, owner) = (self.shared.workers.clone(), sink.to_owned(), owner.to_owned());
        Box::pin(async move {
            let (known, name) = (workers.clone(), sink.clone());
            // Mostly there are none, and a question delays no writer.
            if !self.ask(move |db| sinks::any_lost(db, &known, &name)).await? {
                return Ok(Vec::new());
            }
            self.write(move |tx| sinks::take(tx.db(), &workers, &sink, &owner, limit)).await
        })
    }
}
