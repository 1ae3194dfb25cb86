//! The one thread that writes, and the groups it commits.
//!
//! It takes all jobs that wait into one transaction. Each job has a savepoint, so that one that is refused leaves no
//! trace while the others are committed. A job that comes alone is committed at once. Where the transaction as a whole
//! fails, for instance since one of its jobs does not fit on the disk, each job is tried alone.
//!
//! The thread also notices what other processes have committed: before each group, and while somebody watches also when
//! there is nothing to do.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::channel::oneshot;
use rusqlite::Connection;

use super::failure::{Place, Trouble, ended};
use super::rows::seq;
use crate::record::{RunId, Seq};
use crate::store::StoreError;
use crate::store::watchers::Watchers;

/// How many jobs are committed at once.
const GROUP: usize = 512;
/// How often the file is asked whether another process has written, while somebody watches.
const LOOK: Duration = Duration::from_millis(50);

/// What the writer is sent.
enum Message {
    /// Something to write.
    Job(Box<dyn Job>),
    /// Somebody watches from now on.
    Watched,
}

/// Something to write.
trait Job: Send {
    /// Writes it. It may be called again after what it wrote was undone.
    fn attempt(&mut self, unit: &mut Unit<'_>) -> Result<(), Trouble>;
    /// Answers whoever asked for it.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct Task<T, F> {
    work: F,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnMut(&mut Unit<'_>) -> Result<T, Trouble> + Send> Job for Task<T, F> {
    fn attempt(&mut self, unit: &mut Unit<'_>) -> Result<(), Trouble> {
        self.result = Some((self.work)(unit)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { result, reply, .. } = *self;
        _ = reply.send(outcome.and_then(|()| result.ok_or_else(ended)));
    }
}

/// The transaction that a job is a part of.
pub(super) struct Unit<'a> {
    db: &'a Connection,
    change: i64,
    told: Vec<(RunId, Seq)>,
    freed: bool,
}

impl<'a> Unit<'a> {
    /// Returns the connection.
    pub(super) const fn db(&self) -> &'a Connection {
        self.db
    }

    /// Says that a run's next number changes, and returns the number of the change.
    pub(super) fn changes(&mut self, run: &RunId, next: Seq) -> i64 {
        self.change += 1;
        self.told.push((run.clone(), next));
        self.change
    }

    /// Returns the number of the last change.
    pub(super) const fn change(&self) -> i64 {
        self.change
    }

    /// Says that pages of the file were given back, so that its end should be cut off.
    pub(super) const fn frees(&mut self) {
        self.freed = true;
    }
}

/// The way to the thread that writes.
pub(super) struct Writer {
    jobs: Sender<Message>,
    watchers: Arc<Mutex<Watchers>>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(db: Connection, place: Place) -> Result<(Self, JoinHandle<()>), Trouble> {
        let (jobs, receiver) = channel();
        let watchers = Arc::new(Mutex::new(Watchers::default()));
        let seen = last_change(&db)?;
        let version = data_version(&db)?;
        let thread = Thread { db, place, jobs: receiver, watchers: Arc::clone(&watchers), seen, version };
        let thread = std::thread::Builder::new().name("positronic-writer".to_owned()).spawn(move || thread.work());
        let thread = thread.map_err(|error| StoreError::Failed { message: error.to_string() })?;
        Ok((Self { jobs, watchers }, thread))
    }

    /// Has something written, together with whatever else waits to be.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Unit<'_>) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Task { work, result: None, reply });
        self.jobs.send(Message::Job(job)).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }

    /// Tells a watcher of appends from now on.
    pub(super) fn watch(&self, add: impl FnOnce(&mut Watchers)) {
        add(&mut self.watchers.lock().unwrap_or_else(PoisonError::into_inner));
        _ = self.jobs.send(Message::Watched);
    }
}

/// What came of a group: each job's outcome, and who has grown.
struct Committed {
    outcomes: Vec<Result<(), StoreError>>,
    told: Vec<(RunId, Seq)>,
}

struct Thread {
    db: Connection,
    place: Place,
    jobs: Receiver<Message>,
    watchers: Arc<Mutex<Watchers>>,
    /// The last change whose watchers were told.
    seen: i64,
    /// Tells whether another connection has written since.
    version: i64,
}

impl Thread {
    fn work(mut self) {
        while let Some(first) = self.next() {
            let mut group = vec![first];
            while group.len() < GROUP
                && let Ok(message) = self.jobs.try_recv()
            {
                if let Message::Job(job) = message {
                    group.push(job);
                }
            }
            self.commit(group);
        }
        // Closing the last connection to the file checkpoints it; another one may be open elsewhere.
        _ = self.db.execute_batch("PRAGMA wal_checkpoint(PASSIVE)");
    }

    /// Waits for a job, and tells of what others write meanwhile. `None` at the end.
    fn next(&mut self) -> Option<Box<dyn Job>> {
        loop {
            let message = if self.watched() {
                match self.jobs.recv_timeout(LOOK) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Timeout) => {
                        self.look();
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => return None,
                }
            } else {
                self.jobs.recv().ok()?
            };
            if let Message::Job(job) = message {
                return Some(job);
            }
        }
    }

    fn commit(&mut self, mut group: Vec<Box<dyn Job>>) {
        match self.attempt(&mut group) {
            Ok(committed) => {
                self.tell(committed.told);
                for (job, outcome) in group.into_iter().zip(committed.outcomes) {
                    job.answer(outcome);
                }
            }
            Err(trouble) if group.len() == 1 || trouble.is_busy() => {
                let error = self.place.explain(trouble);
                for job in group {
                    job.answer(Err(error.clone()));
                }
            }
            Err(_) => {
                for job in group {
                    self.commit(vec![job]);
                }
            }
        }
    }

    /// Writes a group in one transaction. When it fails as a whole, nothing of it was written.
    fn attempt(&mut self, group: &mut [Box<dyn Job>]) -> Result<Committed, Trouble> {
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let done = self.fill(group).and_then(|done| {
            self.db.prepare_cached("COMMIT")?.execute([])?;
            Ok(done)
        });
        match done {
            Ok((committed, change, freed)) => {
                self.seen = change;
                if freed {
                    // The end of the file goes when the log of commits is copied into it.
                    let result = self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
                    if let Err(error) = result {
                        tracing::debug!(%error, "the file's free end stays until later");
                    }
                }
                Ok(committed)
            }
            Err(trouble) => {
                if !self.db.is_autocommit() {
                    _ = self.db.execute_batch("ROLLBACK");
                }
                Err(trouble)
            }
        }
    }

    fn fill(&self, group: &mut [Box<dyn Job>]) -> Result<(Committed, i64, bool), Trouble> {
        let change = last_change(&self.db)?;
        let told = if change == self.seen || !self.watched() { Vec::new() } else { self.changed()? };
        let mut unit = Unit { db: &self.db, change, told, freed: false };
        let mut outcomes = Vec::with_capacity(group.len());
        for job in group {
            let before = unit.told.len();
            self.db.prepare_cached("SAVEPOINT job")?.execute([])?;
            let outcome = match job.attempt(&mut unit) {
                Ok(()) => Ok(()),
                // Some errors undo the whole transaction, and then the jobs before are undone, too.
                Err(trouble) if self.db.is_autocommit() => return Err(trouble),
                Err(trouble) => {
                    unit.told.truncate(before);
                    self.db.prepare_cached("ROLLBACK TO job")?.execute([])?;
                    Err(self.place.explain(trouble))
                }
            };
            self.db.prepare_cached("RELEASE job")?.execute([])?;
            outcomes.push(outcome);
        }
        let Unit { change, told, freed, .. } = unit;
        Ok((Committed { outcomes, told }, change, freed))
    }

    fn watched(&self) -> bool {
        !self.watchers.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Tells of what other processes have written.
    fn look(&mut self) {
        let looked = data_version(&self.db).and_then(|version| {
            if version == self.version {
                return Ok(None);
            }
            let change = last_change(&self.db)?;
            Ok(Some((version, change, self.changed()?)))
        });
        match looked {
            Ok(None) => {}
            Ok(Some((version, change, told))) => {
                (self.version, self.seen) = (version, change);
                self.tell(told);
            }
            Err(trouble) => tracing::debug!(?trouble, "what others write is looked for later"),
        }
    }

    /// Lists the runs that have changed since the last look.
    fn changed(&self) -> Result<Vec<(RunId, Seq)>, Trouble> {
        let mut statement = self.db.prepare_cached("SELECT run, next FROM runs WHERE change > ?1 ORDER BY change")?;
        let rows = statement.query_map([self.seen], |row| {
            let (run, next): (String, _) = (row.get(0)?, row.get(1)?);
            Ok((RunId::from(run), seq(next)))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn tell(&self, grown: Vec<(RunId, Seq)>) {
        for (run, next) in grown {
            let watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner).of(&run);
            for watcher in watchers {
                watcher.appended(&run, next);
            }
        }
    }
}

fn last_change(db: &Connection) -> Result<i64, Trouble> {
    let sql = "SELECT max(change, (SELECT coalesce(max(change), 0) FROM runs)) FROM counter";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

fn data_version(db: &Connection) -> Result<i64, Trouble> {
    Ok(db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
}

#[cfg(test)]
mod tests;
