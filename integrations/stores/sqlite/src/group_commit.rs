//! Group commit: several jobs in one transaction.
//!
//! Each of several jobs has a savepoint, so that a refused one leaves no trace while the others are committed. When the
//! transaction fails, for instance because one job does not fit on the disk, each job is retried alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::oneshot;
use parking_lot::Mutex;
use positronic_core::record::{RunId, Seq};
use positronic_core::store::StoreError;
use positronic_core::store::Watchers;
use rusqlite::Connection;

use super::append::StoredRow;
use super::checkpointer::CheckpointRequests;
use super::columns::seq;
use super::failure::{DbError, StoreFile, catch_panic, store_closed};
use super::file_identity::OpenedFiles;

/// How many jobs a commit takes at most.
pub(super) const GROUP: usize = 512;

/// After how many jobs a checkpoint is requested: about 4,000 pages of small events. With very large events, SQLite
/// checkpoints earlier, within a commit.
const CHECKPOINT_EVERY: usize = 1024;

/// How many run rows are cached at most.
const ROWS: usize = 1024;

/// Cache of run rows as last written by this process; valid while no other process writes.
type Rows = HashMap<RunId, StoredRow>;

/// A write operation.
pub(super) trait Job: Send {
    /// Executes the write. It may be called again after a rollback.
    fn attempt(&mut self, tx: &mut Tx<'_>) -> Result<(), DbError>;
    /// Sends the outcome to the caller.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// A job that replies with the result of its closure.
pub(super) struct Task<T, F> {
    work: F,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Task<T, F> {
    /// Creates a job.
    pub(super) const fn new(work: F, reply: oneshot::Sender<Result<T, StoreError>>) -> Self {
        Self { work, result: None, reply }
    }
}

impl<T: Send, F: FnMut(&mut Tx<'_>) -> Result<T, DbError> + Send> Job for Task<T, F> {
    fn attempt(&mut self, tx: &mut Tx<'_>) -> Result<(), DbError> {
        self.result = Some((self.work)(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { result, reply, .. } = *self;
        _ = reply.send(outcome.and_then(|()| result.ok_or_else(store_closed)));
    }
}

/// The transaction of a job.
pub(super) struct Tx<'a> {
    db: &'a Connection,
    rows: &'a mut Rows,
    change: i64,
    grown: Vec<(RunId, Seq)>,
    freed: bool,
}

impl<'a> Tx<'a> {
    /// Returns the connection.
    pub(super) const fn db(&self) -> &'a Connection {
        self.db
    }

    /// Removes the cached row of a run and returns it.
    pub(super) fn known(&mut self, run: &RunId) -> Option<StoredRow> {
        self.rows.remove(run)
    }

    /// Caches a row that was just written.
    pub(super) fn knows(&mut self, run: &RunId, row: StoredRow) {
        if self.rows.len() >= ROWS {
            self.rows.clear();
        }
        self.rows.insert(run.clone(), row);
    }

    /// Clears the cache, since runs were removed.
    pub(super) fn forgets(&mut self) {
        self.rows.clear();
    }

    /// Records a run's new next number, and returns the number of the change.
    pub(super) fn changes(&mut self, run: &RunId, next: Seq) -> i64 {
        self.change += 1;
        self.grown.push((run.clone(), next));
        self.change
    }

    /// Returns the number of the last change.
    pub(super) const fn change(&self) -> i64 {
        self.change
    }

    /// Records that pages were freed, so that the file should be truncated.
    pub(super) const fn frees(&mut self) {
        self.freed = true;
    }
}

/// Commits groups, and notifies watchers.
pub(super) struct Committer {
    db: Connection,
    store_file: StoreFile,
    watchers: Arc<Mutex<Watchers>>,
    /// The last change that watchers were notified of.
    seen: i64,
    /// SQLite's data version, which changes when another connection writes.
    version: i64,
    /// How many jobs were written since the last request for a checkpoint.
    jobs_since_checkpoint: usize,
    checkpoints: Option<CheckpointRequests>,
    /// The run that was last written to.
    last: Option<RunId>,
    rows: Rows,
    opened: OpenedFiles,
}

/// A group that was written in a transaction.
struct WrittenGroup {
    outcomes: Vec<Result<(), StoreError>>,
    version: i64,
    change: i64,
    grown: Vec<(RunId, Seq)>,
    freed: bool,
}

/// The outcomes of a group's jobs. They are sent after the committer is unlocked, since a caller may write again at once.
#[must_use]
pub(super) struct Answers(Vec<(Box<dyn Job>, Result<(), StoreError>)>);

impl Answers {
    /// Sends them to the callers.
    pub(super) fn send(self) {
        for (job, outcome) in self.0 {
            job.answer(outcome);
        }
    }
}

impl Committer {
    /// Creates a committer with the connection for writing.
    pub(super) fn new(
        db: Connection,
        store_file: StoreFile,
        watchers: Arc<Mutex<Watchers>>,
        checkpoints: CheckpointRequests,
    ) -> Result<Self, DbError> {
        // In this order, so that a write in between is found later.
        let version = data_version(&db)?;
        let seen = last_change(&db)?;
        let opened = OpenedFiles::at(&store_file.path);
        Ok(Self {
            db,
            store_file,
            watchers,
            seen,
            version,
            jobs_since_checkpoint: 0,
            checkpoints: Some(checkpoints),
            last: None,
            rows: Rows::new(),
            opened,
        })
    }

    /// Commits a group of jobs.
    pub(super) fn commit(&mut self, mut group: Vec<Box<dyn Job>>) -> Answers {
        match self.attempt(&mut group) {
            Ok(outcomes) => Answers(group.into_iter().zip(outcomes).collect()),
            Err(db_error) if group.len() == 1 || db_error.is_busy() => {
                let error = self.store_file.explain(db_error);
                Answers(group.into_iter().map(|job| (job, Err(error.clone()))).collect())
            }
            Err(_) => Answers(group.into_iter().flat_map(|job| self.commit(vec![job]).0).collect()),
        }
    }

    /// Commits a single job of a run, or returns it if another run was written to last or another process holds the lock.
    pub(super) fn commit_alone(&mut self, run: &RunId, job: Box<dyn Job>) -> Result<Answers, Box<dyn Job>> {
        let is_alone = self.last.as_ref() == Some(run);
        if !is_alone || self.db.busy_timeout(Duration::ZERO).is_err() {
            return Err(job);
        }
        let mut group = [job];
        let outcome = self.attempt(&mut group);
        _ = self.db.busy_timeout(self.store_file.busy_timeout);
        let [job] = group;
        match outcome {
            Ok(_) => Ok(Answers(vec![(job, Ok(()))])),
            Err(db_error) if db_error.is_busy() => Err(job),
            Err(db_error) => Ok(Answers(vec![(job, Err(self.store_file.explain(db_error)))])),
        }
    }

    /// Drops the channel for requests, so that the checkpoint thread ends.
    pub(super) fn stop_checkpoints(&mut self) {
        self.checkpoints = None;
    }

    fn request_checkpoint(&mut self) {
        if self.jobs_since_checkpoint >= CHECKPOINT_EVERY {
            self.jobs_since_checkpoint = 0;
            if let Some(checkpoints) = &self.checkpoints {
                checkpoints.ask();
            }
        }
    }

    /// Checkpoints the WAL as far as no reader blocks it.
    pub(super) fn checkpoint(&mut self) {
        self.jobs_since_checkpoint = 0;
        if let Err(error) = self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
            tracing::debug!(%error, "checkpoint postponed");
        }
    }

    /// Writes a group in one transaction and notifies watchers. An error means that nothing was written.
    fn attempt(&mut self, group: &mut [Box<dyn Job>]) -> Result<Vec<Result<(), StoreError>>, DbError> {
        self.opened.check(&self.store_file)?;
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let done = catch_panic(|| {
            let done = self.fill(group)?;
            self.db.prepare_cached("COMMIT")?.execute([])?;
            Ok(done)
        });
        match done {
            Ok(WrittenGroup { outcomes, version, change, grown, freed }) => {
                (self.version, self.seen) = (version, change);
                self.jobs_since_checkpoint += group.len();
                if freed {
                    // The checkpoint truncates the file.
                    self.checkpoint();
                }
                self.request_checkpoint();
                self.notify(&grown);
                if let Some((run, _)) = grown.into_iter().next_back() {
                    self.last = Some(run);
                }
                Ok(outcomes)
            }
            Err(db_error) => {
                self.rows.clear();
                if !self.db.is_autocommit() {
                    _ = self.db.execute_batch("ROLLBACK");
                }
                Err(db_error)
            }
        }
    }

    fn fill(&mut self, group: &mut [Box<dyn Job>]) -> Result<WrittenGroup, DbError> {
        let version = data_version(&self.db)?;
        let (mut change, mut grown) = (self.seen, Vec::new());
        if version != self.version {
            self.rows.clear();
            change = last_change(&self.db)?;
            if change != self.seen && self.is_watched() {
                grown = self.changed()?;
            }
        }
        let mut tx = Tx { db: &self.db, rows: &mut self.rows, change, grown, freed: false };
        let outcomes = match group {
            [job] => {
                job.attempt(&mut tx)?;
                vec![Ok(())]
            }
            jobs => jobs.iter_mut().map(|job| attempt_one(&self.store_file, job, &mut tx)).collect::<Result<_, _>>()?,
        };
        let Tx { change, grown, freed, .. } = tx;
        Ok(WrittenGroup { outcomes, version, change, grown, freed })
    }

    fn is_watched(&self) -> bool {
        !self.watchers.lock().is_empty()
    }

    /// Notifies watchers of what other processes have written.
    pub(super) fn poll(&mut self) {
        let polled = data_version(&self.db).and_then(|version| {
            if version == self.version {
                return Ok(None);
            }
            let change = last_change(&self.db)?;
            Ok(Some((version, change, self.changed()?)))
        });
        match polled {
            Ok(None) => {}
            Ok(Some((version, change, grown))) => {
                (self.version, self.seen) = (version, change);
                self.rows.clear();
                self.notify(&grown);
            }
            Err(db_error) => tracing::debug!(?db_error, "polling for changes of other processes failed; retrying"),
        }
    }

    /// Lists the runs that have changed since the last poll.
    fn changed(&self) -> Result<Vec<(RunId, Seq)>, DbError> {
        let mut statement = self.db.prepare_cached("SELECT run, next FROM runs WHERE change > ?1 ORDER BY change")?;
        let rows = statement.query_map([self.seen], |row| {
            let (run, next): (String, _) = (row.get(0)?, row.get(1)?);
            Ok((RunId::from(run), seq(next)))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn notify(&self, grown: &[(RunId, Seq)]) {
        for (run, next) in grown {
            let watchers = self.watchers.lock().of(run);
            for watcher in watchers {
                // A panicking watcher must not fail the writers.
                _ = catch_panic(|| {
                    watcher.appended(run, *next);
                    Ok(())
                });
            }
        }
    }
}

/// Writes a job in a savepoint, so that a refused job does not affect others. An error is one of the transaction.
fn attempt_one(
    store_file: &StoreFile,
    job: &mut Box<dyn Job>,
    tx: &mut Tx<'_>,
) -> Result<Result<(), StoreError>, DbError> {
    let (grown, change) = (tx.grown.len(), tx.change);
    tx.db.prepare_cached("SAVEPOINT job")?.execute([])?;
    let outcome = match job.attempt(tx) {
        Ok(()) => Ok(()),
        // Some errors roll back the transaction, and with it the earlier jobs.
        Err(db_error) if tx.db.is_autocommit() => return Err(db_error),
        Err(db_error) => {
            tx.grown.truncate(grown);
            tx.change = change;
            tx.db.prepare_cached("ROLLBACK TO job")?.execute([])?;
            Err(store_file.explain(db_error))
        }
    };
    tx.db.prepare_cached("RELEASE job")?.execute([])?;
    Ok(outcome)
}

fn last_change(db: &Connection) -> Result<i64, DbError> {
    let sql = "SELECT max(change, (SELECT coalesce(max(change), 0) FROM runs)) FROM counter";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

fn data_version(db: &Connection) -> Result<i64, DbError> {
    Ok(db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
}
