//! One append, in the transaction of its group.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::Trouble;
use super::group::Unit;
use super::pending::{self, Entry};
use super::rows::{EVENTS, column, encode, epoch, event_id, seq};
use super::{blobs, mailbox, timers};
use crate::record::{Epoch, RunId, RunSummary, Seq, SignalId, Status};
use crate::store::{Append, Snapshot, StoreError};

/// An append as it is written: its documents are encoded before the writer has it.
pub(super) struct Encoded {
    run: RunId,
    expected: Seq,
    epoch: Option<Epoch>,
    claims: Option<Epoch>,
    lines: Vec<Box<str>>,
    row: RunSummary,
    summary: String,
    pending: Option<Vec<Entry>>,
    takes: Vec<SignalId>,
    blobs: Vec<String>,
    signals: Vec<(SignalId, Seq)>,
    timers: Vec<timers::Change>,
    snapshot: Option<Snapshot>,
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
            blobs: append.blobs().map(str::to_owned).collect(),
            signals: append.signals().map(|(signal, seq)| (signal.clone(), seq)).collect(),
            lines,
            summary: encode(&append.index.summary)?,
            pending: pending.map(|pending| pending.iter().map(Entry::new).collect()).transpose()?,
            row: append.index.summary,
            takes: append.takes,
            timers: append.timers.into_iter().map(timers::Change::new).collect::<Result<_, _>>()?,
            snapshot: append.snapshot,
        })
    }
}

/// What is in the table about a run.
pub(super) struct Row {
    key: i64,
    next: i64,
    epoch: i64,
    /// The columns that rarely change, each of which has an index.
    rare: Rare,
}

#[derive(PartialEq)]
struct Rare {
    status: String,
    brain: Arc<str>,
    user: Option<String>,
    started: i64,
    wake: Option<i64>,
}

impl Rare {
    fn of(row: &RunSummary) -> Self {
        Self {
            status: row.status.as_str().to_owned(),
            brain: Arc::clone(&row.brain),
            user: row.user.clone(),
            started: row.started.0,
            // Of what is due, a run that is running or whose mail may be unread comes first, at any time.
            wake: match row.status {
                Status::Running => Some(i64::MIN),
                Status::Waiting if row.mail => Some(i64::MIN),
                Status::Waiting => row.wake.map(|wake| wake.0),
                Status::Paused | Status::Completed | Status::Failed | Status::Cancelled => None,
            },
        }
    }
}

/// Writes an append, or says why it may not be.
pub(super) fn write(unit: &mut Unit<'_>, append: &Encoded) -> Result<(), Trouble> {
    let db = unit.db();
    let row = match unit.known(&append.run) {
        Some(row) => Some(row),
        None => find(db, &append.run)?,
    };
    let next = seq(row.as_ref().map_or(0, |row| row.next));
    if next != append.expected {
        return Err(StoreError::Conflict { next }.into());
    }
    let held = epoch(row.as_ref().map_or(0, |row| row.epoch));
    if append.epoch.is_some_and(|own| own < held) {
        return Err(StoreError::Fenced { held }.into());
    }
    if row.is_none()
        && let Some(before) = &append.row.after
        && find(db, before)?.is_none()
    {
        return Err(StoreError::NoRunBefore { run: append.run.clone(), before: before.clone() }.into());
    }
    for mail in &append.takes {
        if let Some((run, seq)) = mailbox::taker(db, mail)? {
            return Err(StoreError::Taken { mail: mail.clone(), run, seq }.into());
        }
    }
    for change in &append.timers {
        timers::write(db, change)?;
    }
    let first = column(next.0);
    let after = first + column(append.lines.len() as u64);
    if after > EVENTS {
        let message = format!("the run `{}` has {EVENTS} events, and no run can have more", append.run);
        return Err(StoreError::Failed { message }.into());
    }
    let epoch = column(append.claims.unwrap_or_default().max(held).0);
    let change = unit.changes(&append.run, seq(after));
    let rare = Rare::of(&append.row);
    let key = match &row {
        Some(row) => update(db, row, append, &rare, [after, epoch, change])?,
        None => insert(db, append, &rare, [after, epoch, change])?,
    };
    let mut statement = db.prepare_cached("INSERT INTO events (id, line) VALUES (?1, ?2)")?;
    for (number, line) in (first..).zip(&append.lines) {
        statement.execute(params![event_id(key, number), line])?;
    }
    if let Some(entries) = &append.pending {
        pending::replace(db, key, &append.row, entries)?;
    }
    for mail in &append.takes {
        take(db, mail, &append.run, first)?;
    }
    for name in &append.blobs {
        blobs::refer(db, key, name)?;
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
    unit.knows(&append.run, Row { key, next: after, epoch, rare });
    Ok(())
}

fn find(db: &Connection, run: &RunId) -> Result<Option<Row>, Trouble> {
    let sql = "SELECT key, next, epoch, status, brain, user, started, wake FROM runs WHERE run = ?1";
    let row = db.prepare_cached(sql)?.query_row([run.as_str()], |row| {
        let rare = Rare {
            status: row.get(3)?,
            brain: row.get(4)?,
            user: row.get(5)?,
            started: row.get(6)?,
            wake: row.get(7)?,
        };
        Ok(Row { key: row.get(0)?, next: row.get(1)?, epoch: row.get(2)?, rare })
    });
    Ok(row.optional()?)
}

fn insert(db: &Connection, append: &Encoded, rare: &Rare, numbers: [i64; 3]) -> Result<i64, Trouble> {
    let sql = "INSERT INTO runs
               (run, next, epoch, change, status, brain, user, started, at, wake, summary, conversation, converses)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    let Rare { status, brain, user, started, wake } = rare;
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
        converses
    ];
    Ok(db.prepare_cached(sql)?.insert(row)?)
}

fn update(db: &Connection, before: &Row, append: &Encoded, rare: &Rare, numbers: [i64; 3]) -> Result<i64, Trouble> {
    let (key, [next, epoch, change]) = (before.key, numbers);
    let sql = "UPDATE runs SET next = ?2, epoch = ?3, change = ?4, at = ?5, summary = ?6 WHERE key = ?1";
    db.prepare_cached(sql)?.execute(params![key, next, epoch, change, append.row.at.0, append.summary])?;
    // Setting a column costs its index an entry even where it is the same.
    if *rare != before.rare {
        let sql = "UPDATE runs SET status = ?2, brain = ?3, user = ?4, started = ?5, wake = ?6 WHERE key = ?1";
        let Rare { status, brain, user, started, wake } = rare;
        db.prepare_cached(sql)?.execute(params![key, status, brain, user, started, wake])?;
    }
    Ok(key)
}

/// Marks mail as taken by an append. What is left of it only says so.
fn take(db: &Connection, mail: &SignalId, run: &RunId, first: i64) -> Result<(), Trouble> {
    let sql = "UPDATE mail SET taken_by = ?2, taken_at = ?3, content = NULL WHERE id = ?1";
    db.prepare_cached(sql)?.execute(params![mail.as_str(), run.as_str(), first])?;
    Ok(())
}
