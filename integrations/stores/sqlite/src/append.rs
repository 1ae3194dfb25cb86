//! Writing one append within a transaction.

use std::sync::Arc;

use positronic_core::record::{Epoch, RunId, RunSummary, Seq, SignalId, Status};
use positronic_core::store::{Append, SavedPrompts, Snapshot, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::columns::{EVENTS, column, encode, epoch, event_id, seq};
use super::failure::DbError;
use super::group_commit::Tx;
use super::pending::{self, EncodedItem};
use super::{blobs, due, mailbox, sinks, timers};

/// An append with its documents already encoded, so that the writer thread does not have to.
pub(super) struct Encoded {
    run: RunId,
    expected: Seq,
    epoch: Option<Epoch>,
    claims: Option<Epoch>,
    ends_deferral: bool,
    events: u64,
    lines: Box<str>,
    row: RunSummary,
    summary: String,
    pending: Option<Vec<EncodedItem>>,
    deliveries: Vec<SignalId>,
    blobs: Vec<String>,
    signals: Vec<(SignalId, Seq)>,
    timers: Vec<timers::Change>,
    snapshot: Option<Snapshot>,
    prompts: Option<SavedPrompts>,
    sinks: Vec<String>,
    claimant: Option<String>,
}

impl Encoded {
    /// Encodes an append.
    pub(super) fn new(run: &RunId, append: Append) -> Result<Self, StoreError> {
        let lines = append.lines()?;
        let pending = append.index.pending.as_ref();
        Ok(Self {
            run: run.clone(),
            expected: append.expected,
            epoch: append.epoch,
            claims: append.claims(),
            claimant: append.claimant().map(str::to_owned),
            ends_deferral: append.ends_deferral(),
            blobs: Append::files(&lines).map(str::to_owned).collect(),
            signals: append.signals().map(|(signal, seq)| (signal.clone(), seq)).collect(),
            events: append.events.len() as u64,
            lines,
            summary: encode(&append.index.summary)?,
            pending: pending.map(|pending| pending.iter().map(EncodedItem::new).collect()).transpose()?,
            row: append.index.summary,
            deliveries: append.deliveries,
            timers: append.timers.into_iter().map(timers::Change::new).collect::<Result<_, _>>()?,
            snapshot: append.snapshot,
            prompts: append.prompts,
            sinks: append.sinks,
        })
    }
}

/// The current values of a run's row.
pub(super) struct StoredRow {
    key: i64,
    next: i64,
    epoch: i64,
    /// The indexed columns, which rarely change.
    indexed: IndexedColumns,
}

#[derive(PartialEq)]
struct IndexedColumns {
    status: String,
    brain: Arc<str>,
    user: Option<String>,
    started: i64,
    wake: Option<i64>,
    owner: Option<Arc<str>>,
}

impl IndexedColumns {
    fn of(row: &RunSummary) -> Self {
        Self {
            status: row.status.as_str().to_owned(),
            brain: Arc::clone(&row.brain),
            user: row.user.clone(),
            started: row.started.0,
            // Running runs, and runs with possibly unread webhooks, are due at any time, and first.
            wake: match row.status {
                Status::Running => Some(i64::MIN),
                Status::Waiting if row.mail => Some(i64::MIN),
                Status::Waiting => row.wake.map(|wake| wake.0),
                Status::Paused | Status::Completed | Status::Failed | Status::Cancelled => None,
            },
            owner: row.claim.as_ref().filter(|claim| !claim.released).map(|claim| Arc::clone(&claim.owner)),
        }
    }
}

/// Writes an append, or returns the reason for its refusal.
pub(super) fn write(tx: &mut Tx<'_>, append: &Encoded) -> Result<(), DbError> {
    let db = tx.db();
    let row = match tx.known(&append.run) {
        Some(row) => Some(row),
        None => find(db, &append.run)?,
    };
    let next = seq(row.as_ref().map_or(0, |row| row.next));
    if next != append.expected {
        return Err(StoreError::Conflict { next }.into());
    }
    let current = epoch(row.as_ref().map_or(0, |row| row.epoch));
    if append.epoch.is_some_and(|own| own < current) {
        return Err(StoreError::Fenced { current }.into());
    }
    if row.is_none()
        && let Some(before) = &append.row.after
        && find(db, before)?.is_none()
    {
        return Err(StoreError::NoRunBefore { run: append.run.clone(), before: before.clone() }.into());
    }
    for mail in &append.deliveries {
        if let Some((run, seq)) = mailbox::taker(db, mail)? {
            return Err(StoreError::Taken { mail: mail.clone(), run, seq }.into());
        }
    }
    for change in &append.timers {
        timers::write(db, change)?;
    }
    let first = column(next.0);
    let after = first + column(append.events);
    if after > EVENTS {
        let message = format!("the run `{}` has reached the maximum of {EVENTS} events", append.run);
        return Err(StoreError::Failed { message }.into());
    }
    let epoch = column(append.claims.unwrap_or_default().max(current).0);
    let change = tx.changes(&append.run, seq(after));
    let indexed = IndexedColumns::of(&append.row);
    let key = match &row {
        Some(row) => update(db, row, append, &indexed, [after, epoch, change])?,
        None => insert(db, append, &indexed, [after, epoch, change])?,
    };
    if append.ends_deferral && row.is_some() {
        due::end(db, key)?;
    }
    let mut statement = db.prepare_cached("INSERT INTO events (id, line) VALUES (?1, ?2)")?;
    for (number, line) in (first..).zip(append.lines.lines()) {
        statement.execute(params![event_id(key, number), line])?;
    }
    if let Some(entries) = &append.pending {
        pending::replace(db, key, &append.row, entries)?;
    }
    for mail in &append.deliveries {
        take(db, mail, &append.run, first)?;
    }
    for name in &append.blobs {
        blobs::add_reference(db, key, name)?;
    }
    for (signal, seq) in &append.signals {
        let sql = "INSERT OR IGNORE INTO signals (run, signal, seq) VALUES (?1, ?2, ?3)";
        db.prepare_cached(sql)?.execute(params![key, signal.as_str(), column(seq.0)])?;
    }
    if let Some(snapshot) = &append.snapshot {
        let sql = "INSERT OR REPLACE INTO snapshots (run, next, version, content) VALUES (?1, ?2, ?3, ?4)";
        let row = params![key, column(snapshot.next.0), snapshot.version, snapshot.content];
        db.prepare_cached(sql)?.execute(row)?;
    }
    if let Some(owner) = &append.claimant {
        sinks::claim(db, key, &append.sinks, owner)?;
    }
    if let Some(part) = &append.prompts {
        if part.from == Seq(0) {
            forget_prompts(db, key)?;
        }
        let sql = "INSERT OR REPLACE INTO saved_prompts (id, first, version, content) VALUES (?1, ?2, ?3, ?4)";
        let row = params![event_id(key, column(part.next.0)), column(part.from.0), part.version, part.content];
        db.prepare_cached(sql)?.execute(row)?;
    }
    tx.knows(&append.run, StoredRow { key, next: after, epoch, indexed });
    Ok(())
}

/// Removes the saved prompts of a run.
pub(super) fn forget_prompts(db: &Connection, key: i64) -> Result<(), DbError> {
    let sql = "DELETE FROM saved_prompts WHERE id >= ?1 AND id < ?2";
    db.prepare_cached(sql)?.execute([event_id(key, 0), event_id(key, EVENTS)])?;
    Ok(())
}

fn find(db: &Connection, run: &RunId) -> Result<Option<StoredRow>, DbError> {
    let sql = "SELECT key, next, epoch, status, brain, user, started, wake, owner FROM runs WHERE run = ?1";
    let row = db.prepare_cached(sql)?.query_row([run.as_str()], |row| {
        let indexed = IndexedColumns {
            status: row.get(3)?,
            brain: row.get(4)?,
            user: row.get(5)?,
            started: row.get(6)?,
            wake: row.get(7)?,
            owner: row.get(8)?,
        };
        Ok(StoredRow { key: row.get(0)?, next: row.get(1)?, epoch: row.get(2)?, indexed })
    });
    Ok(row.optional()?)
}

fn insert(db: &Connection, append: &Encoded, indexed: &IndexedColumns, numbers: [i64; 3]) -> Result<i64, DbError> {
    let sql = "INSERT INTO runs
               (run, next, epoch, change, status, brain, user, started, at, wake, summary, conversation, converses,
                owner)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    let IndexedColumns { status, brain, user, started, wake, owner } = indexed;
    let [next, epoch, change] = numbers;
    let (run, at) = (append.run.as_str(), append.row.at.0);
    let (conversation, converses) = (&append.row.conversation, append.row.converses());
    let row = params![
        run,
        next,
        epoch,
        change,
        status,
        brain,
        user,
        started,
        at,
        wake,
        append.summary,
        conversation,
        converses,
        owner
    ];
    Ok(db.prepare_cached(sql)?.insert(row)?)
}

fn update(
    db: &Connection,
    before: &StoredRow,
    append: &Encoded,
    indexed: &IndexedColumns,
    numbers: [i64; 3],
) -> Result<i64, DbError> {
    let (key, [next, epoch, change]) = (before.key, numbers);
    let sql = "UPDATE runs SET next = ?2, epoch = ?3, change = ?4, at = ?5, summary = ?6 WHERE key = ?1";
    db.prepare_cached(sql)?.execute(params![key, next, epoch, change, append.row.at.0, append.summary])?;
    // SQLite updates the index of an assigned column even if its value stays the same.
    if *indexed != before.indexed {
        let sql = "UPDATE runs SET status = ?2, brain = ?3, user = ?4, started = ?5, wake = ?6, owner = ?7
                   WHERE key = ?1";
        let IndexedColumns { status, brain, user, started, wake, owner } = indexed;
        db.prepare_cached(sql)?.execute(params![key, status, brain, user, started, wake, owner])?;
    }
    Ok(key)
}

/// Marks a webhook as delivered and deletes its content.
fn take(db: &Connection, mail: &SignalId, run: &RunId, first: i64) -> Result<(), DbError> {
    let sql = "UPDATE mail SET taken_by = ?2, taken_at = ?3, content = NULL WHERE id = ?1";
    db.prepare_cached(sql)?.execute(params![mail.as_str(), run.as_str(), first])?;
    Ok(())
}
