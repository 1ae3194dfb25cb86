//! The SQLite store.

mod event_store;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use positronic_core::store::StoreError;

use super::failure::{DbError, StoreFile};
use super::group_commit::Tx;
use super::leases::Workers;
use super::options::{Durability, SqliteOptions};
use super::reader::{READERS, Readers};
use super::writer::Writer;
use super::{backup, connection};

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
