//! Groups of jobs, each group in one transaction.
//!
//! Where a group has several jobs, each has a savepoint, so that one that is refused leaves no trace while the others are
//! committed. Where the transaction as a whole fails, for instance since one of its jobs does not fit on the disk, each
//! job is tried alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::channel::oneshot;
use rusqlite::Connection;

use super::append::Row;
use super::copier::Copies;
use super::failure::{Place, Trouble, caught, ended};
use super::gone::Opened;
use super::rows::seq;
use crate::record::{RunId, Seq};
use crate::store::StoreError;
use crate::store::watchers::Watchers;

/// After how many jobs the log of commits is copied into the file: some 4,000 pages where events are small. SQLite does
/// it by itself, within a commit, where they are very large.
const COPY_EVERY: usize = 1024;

/// How many rows about runs are known at most.
const ROWS: usize = 1024;

/// Rows as the last appends of this process have written them, while no other process writes.
type Rows = HashMap<RunId, Row>;

/// Something to write.
pub(super) trait Job: Send {
    /// Writes it. It may be called again after what it wrote was undone.
    fn attempt(&mut self, unit: &mut Unit<'_>) -> Result<(), Trouble>;
    /// Answers whoever asked for it.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// A job that answers with what its work returned.
pub(super) struct Task<T, F> {
    work: F,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Task<T, F> {
    /// Makes a job of some work.
    pub(super) const fn new(work: F, reply: oneshot::Sender<Result<T, StoreError>>) -> Self {
        Self { work, result: None, reply }
    }
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
    rows: &'a mut Rows,
    change: i64,
    told: Vec<(RunId, Seq)>,
    freed: bool,
}

impl<'a> Unit<'a> {
    /// Returns the connection.
    pub(super) const fn db(&self) -> &'a Connection {
        self.db
    }

    /// Returns the row about a run where it is known from an append before. It is not known from then on.
    pub(super) fn known(&mut self, run: &RunId) -> Option<Row> {
        self.rows.remove(run)
    }

    /// Keeps a row that was just written.
    pub(super) fn knows(&mut self, run: &RunId, row: Row) {
        if self.rows.len() >= ROWS {
            self.rows.clear();
        }
        self.rows.insert(run.clone(), row);
    }

    /// Says that runs were removed, so that no row is known any more.
    pub(super) fn forgets(&mut self) {
        self.rows.clear();
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

/// Commits groups, and tells watchers of them.
pub(super) struct Committer {
    db: Connection,
    place: Place,
    watchers: Arc<Mutex<Watchers>>,
    /// The last change whose watchers were told.
    seen: i64,
    /// Tells whether another connection has written since.
    version: i64,
    /// How many jobs were written since a copy of the log of commits into the file was asked for, and the way to ask.
    uncopied: usize,
    copies: Option<Copies>,
    /// The run that was written to last.
    last: Option<RunId>,
    rows: Rows,
    opened: Opened,
}

/// What was written in a transaction: each job's outcome, the version of the file before it, the last change, who has
/// grown, and whether pages were freed.
struct Filled {
    outcomes: Vec<Result<(), StoreError>>,
    version: i64,
    change: i64,
    told: Vec<(RunId, Seq)>,
    freed: bool,
}

/// What came of each job of a group, for whoever asked. Answers are sent when the committer is free again, since whoever
/// gets one may come back at once.
#[must_use]
pub(super) struct Answers(Vec<(Box<dyn Job>, Result<(), StoreError>)>);

impl Answers {
    /// Sends them.
    pub(super) fn send(self) {
        for (job, outcome) in self.0 {
            job.answer(outcome);
        }
    }
}

impl Committer {
    /// Makes a committer of the connection that writes.
    pub(super) fn new(
        db: Connection,
        place: Place,
        watchers: Arc<Mutex<Watchers>>,
        copies: Copies,
    ) -> Result<Self, Trouble> {
        // In this order: what is written in between is then found later.
        let version = data_version(&db)?;
        let seen = last_change(&db)?;
        let opened = Opened::at(&place.path);
        Ok(Self {
            db,
            place,
            watchers,
            seen,
            version,
            uncopied: 0,
            copies: Some(copies),
            last: None,
            rows: Rows::new(),
            opened,
        })
    }

    /// Commits a group.
    pub(super) fn commit(&mut self, mut group: Vec<Box<dyn Job>>) -> Answers {
        match self.attempt(&mut group) {
            Ok(outcomes) => Answers(group.into_iter().zip(outcomes).collect()),
            Err(trouble) if group.len() == 1 || trouble.is_busy() => {
                let error = self.place.explain(trouble);
                Answers(group.into_iter().map(|job| (job, Err(error.clone()))).collect())
            }
            Err(_) => Answers(group.into_iter().flat_map(|job| self.commit(vec![job]).0).collect()),
        }
    }

    /// Commits a job of a run that is alone, or gives it back: where another run was written to last, or where it would
    /// have to wait for another process.
    pub(super) fn commit_alone(&mut self, run: &RunId, job: Box<dyn Job>) -> Result<Answers, Box<dyn Job>> {
        let is_alone = self.last.as_ref() == Some(run);
        if !is_alone || self.db.busy_timeout(Duration::ZERO).is_err() {
            return Err(job);
        }
        let mut group = [job];
        let outcome = self.attempt(&mut group);
        _ = self.db.busy_timeout(self.place.patience);
        let [job] = group;
        match outcome {
            Ok(_) => Ok(Answers(vec![(job, Ok(()))])),
            Err(trouble) if trouble.is_busy() => Err(job),
            Err(trouble) => Ok(Answers(vec![(job, Err(self.place.explain(trouble)))])),
        }
    }

    /// Asks for no copy any more, so that the thread that makes them ends.
    pub(super) fn ends_copies(&mut self) {
        self.copies = None;
    }

    fn ask_for_copy(&mut self) {
        if self.uncopied >= COPY_EVERY {
            self.uncopied = 0;
            if let Some(copies) = &self.copies {
                copies.ask();
            }
        }
    }

    /// Copies the log of commits into the file, as far as nobody reads it.
    pub(super) fn copy(&mut self) {
        self.uncopied = 0;
        if let Err(error) = self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
            tracing::debug!(%error, "the log of commits is copied later");
        }
    }

    /// Writes a group in one transaction, and tells watchers. When it fails as a whole, nothing of it was written.
    fn attempt(&mut self, group: &mut [Box<dyn Job>]) -> Result<Vec<Result<(), StoreError>>, Trouble> {
        self.opened.check(&self.place, group.len())?;
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let done = caught(|| {
            let done = self.fill(group)?;
            self.db.prepare_cached("COMMIT")?.execute([])?;
            Ok(done)
        });
        match done {
            Ok(Filled { outcomes, version, change, told, freed }) => {
                (self.version, self.seen) = (version, change);
                self.uncopied += group.len();
                if freed {
                    // The end of the file goes when the log of commits is copied into it.
                    self.copy();
                }
                self.ask_for_copy();
                self.tell(&told);
                if let Some((run, _)) = told.into_iter().next_back() {
                    self.last = Some(run);
                }
                Ok(outcomes)
            }
            Err(trouble) => {
                self.rows.clear();
                if !self.db.is_autocommit() {
                    _ = self.db.execute_batch("ROLLBACK");
                }
                Err(trouble)
            }
        }
    }

    fn fill(&mut self, group: &mut [Box<dyn Job>]) -> Result<Filled, Trouble> {
        let version = data_version(&self.db)?;
        let (mut change, mut told) = (self.seen, Vec::new());
        if version != self.version {
            self.rows.clear();
            change = last_change(&self.db)?;
            if change != self.seen && self.is_watched() {
                told = self.changed()?;
            }
        }
        let mut unit = Unit { db: &self.db, rows: &mut self.rows, change, told, freed: false };
        let outcomes = match group {
            [job] => {
                job.attempt(&mut unit)?;
                vec![Ok(())]
            }
            jobs => jobs.iter_mut().map(|job| attempt_one(&self.place, job, &mut unit)).collect::<Result<_, _>>()?,
        };
        let Unit { change, told, freed, .. } = unit;
        Ok(Filled { outcomes, version, change, told, freed })
    }

    fn is_watched(&self) -> bool {
        !self.watchers.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Tells of what other processes have written.
    pub(super) fn look(&mut self) {
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
                self.rows.clear();
                self.tell(&told);
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

    fn tell(&self, grown: &[(RunId, Seq)]) {
        for (run, next) in grown {
            let watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner).of(run);
            for watcher in watchers {
                // One that panics must not take those with it who write.
                _ = caught(|| {
                    watcher.appended(run, *next);
                    Ok(())
                });
            }
        }
    }
}

/// Writes a job in a savepoint, so that others stay when it is refused. It fails as a whole where they do not.
fn attempt_one(place: &Place, job: &mut Box<dyn Job>, unit: &mut Unit<'_>) -> Result<Result<(), StoreError>, Trouble> {
    let (told, change) = (unit.told.len(), unit.change);
    unit.db.prepare_cached("SAVEPOINT job")?.execute([])?;
    let outcome = match job.attempt(unit) {
        Ok(()) => Ok(()),
        // Some errors undo the whole transaction, and then the jobs before are undone, too.
        Err(trouble) if unit.db.is_autocommit() => return Err(trouble),
        Err(trouble) => {
            unit.told.truncate(told);
            unit.change = change;
            unit.db.prepare_cached("ROLLBACK TO job")?.execute([])?;
            Err(place.explain(trouble))
        }
    };
    unit.db.prepare_cached("RELEASE job")?.execute([])?;
    Ok(outcome)
}

fn last_change(db: &Connection) -> Result<i64, Trouble> {
    let sql = "SELECT max(change, (SELECT coalesce(max(change), 0) FROM runs)) FROM counter";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

fn data_version(db: &Connection) -> Result<i64, Trouble> {
    Ok(db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
}
