//! The index of pending items.

use std::collections::HashMap;
use std::sync::Arc;

use positronic_core::record::{
    BudgetRequest, Gate, Path, Pending, PendingKind, RunId, RunSummary, Timestamp, WaitSpec,
};
use positronic_core::store::{PendingCursor, PendingFilter, PendingItem, StoreError, WaitingRun};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::columns::{EVENTS, column, decode, encode, event_id, seq};
use super::failure::DbError;
use super::query::{Select, text};

/// A pending item, encoded for the table.
pub(super) struct EncodedItem {
    since: i64,
    person: bool,
    waits: Vec<(String, String)>,
    call: String,
    tool: String,
    arguments: String,
    kind: String,
}

impl EncodedItem {
    /// Encodes a pending item.
    pub(super) fn new(pending: &Pending) -> Result<Self, StoreError> {
        let waits = pending.kind.waits().iter();
        Ok(Self {
            since: column(pending.since.0),
            person: pending.kind.is_for_person(),
            waits: waits.map(|wait| (wait.webhook.clone(), wait.identifier.clone())).collect(),
            call: pending.call.as_str().to_owned(),
            tool: pending.tool.clone(),
            arguments: encode(&pending.arguments)?,
            kind: encode(&StoredKind(pending.kind.clone()))?,
        })
    }

    /// Returns whether the stored row equals this entry.
    fn is(&self, old: &PendingRow) -> bool {
        (&self.call, self.since, &self.tool, &self.arguments, &self.kind)
            == (&old.call, old.since, &old.tool, &old.arguments, &old.kind)
    }
}

/// A stored row.
struct PendingRow {
    id: i64,
    at: i64,
    since: i64,
    call: String,
    tool: String,
    arguments: String,
    kind: String,
}

/// Replaces the pending items of a run. Items that were pending before keep their time.
pub(super) fn replace(db: &Connection, key: i64, about: &RunSummary, entries: &[EncodedItem]) -> Result<(), DbError> {
    let before = rows_of(db, key)?;
    // By key, since a batch may have thousands of calls, each of which is approved alone.
    let known: HashMap<_, _> = before.iter().map(|old| ((old.call.as_str(), old.since), old)).collect();
    let waits: HashMap<_, _> = entries.iter().map(|entry| ((entry.call.as_str(), entry.since), entry)).collect();
    let stays = |old: &PendingRow| waits.get(&(old.call.as_str(), old.since)).is_some_and(|entry| entry.is(old));
    for old in before.iter().filter(|old| !stays(old)) {
        remove(db, old)?;
    }
    let first = before.last().map_or(event_id(key, 0), |old| old.id + 1);
    let same = |entry: &EncodedItem| known.get(&(entry.call.as_str(), entry.since)).copied();
    let new = entries.iter().filter(|entry| !same(entry).is_some_and(|old| entry.is(old)));
    for (id, entry) in (first..).zip(new) {
        let at = same(entry).map_or(about.at.0, |old| old.at);
        let sql = "INSERT INTO pending (id, at, run, brain, since, person, call, tool, arguments, kind)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let (run, brain) = (about.run.as_str(), &about.brain);
        let EncodedItem { since, person, call, tool, arguments, kind, .. } = entry;
        let row = params![id, at, run, brain, since, person, call, tool, arguments, kind];
        db.prepare_cached(sql)?.execute(row)?;
        for (webhook, identifier) in &entry.waits {
            let sql = "INSERT OR IGNORE INTO waits (webhook, identifier, pending) VALUES (?1, ?2, ?3)";
            db.prepare_cached(sql)?.execute(params![webhook, identifier, id])?;
        }
    }
    Ok(())
}

/// Removes all pending items of a run.
pub(super) fn remove_all(db: &Connection, key: i64) -> Result<(), DbError> {
    rows_of(db, key)?.iter().try_for_each(|old| remove(db, old))
}

fn remove(db: &Connection, old: &PendingRow) -> Result<(), DbError> {
    match serde_json::from_str::<StoredKind>(&old.kind) {
        Ok(kind) => {
            for wait in kind.0.waits() {
                let sql = "DELETE FROM waits WHERE webhook = ?1 AND identifier = ?2 AND pending = ?3";
                db.prepare_cached(sql)?.execute(params![wait.webhook, wait.identifier, old.id])?;
            }
        }
        Err(_) => _ = db.prepare_cached("DELETE FROM waits WHERE pending = ?1")?.execute([old.id])?,
    }
    db.prepare_cached("DELETE FROM pending WHERE id = ?1")?.execute([old.id])?;
    Ok(())
}

fn rows_of(db: &Connection, key: i64) -> Result<Vec<PendingRow>, DbError> {
    let sql = "SELECT id, at, since, call, tool, arguments, kind FROM pending WHERE id >= ?1 AND id < ?2 ORDER BY id";
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([event_id(key, 0), event_id(key, EVENTS)], |row| {
        let (id, at, since, call) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(PendingRow { id, at, since, call, tool: row.get(4)?, arguments: row.get(5)?, kind: row.get(6)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Lists pending items. It skips those that it cannot decode, so that the others can still be answered.
pub(super) fn list(db: &Connection, filter: &PendingFilter) -> Result<Vec<PendingItem>, DbError> {
    let mut after = filter.after.as_ref().map(|PendingCursor { at, run, since, call }| {
        (at.0, run.as_str().to_owned(), column(since.0), call.as_str().to_owned())
    });
    let mut items = Vec::new();
    loop {
        let left = filter.limit.map(|limit| limit - items.len());
        let mut found = 0;
        select_items(filter, after.take(), left).each(db, |row| {
            found += 1;
            match item(row) {
                Ok(item) => items.push(item),
                Err(db_error) => tracing::warn!(?db_error, "skipped an unreadable pending item"),
            }
            after = Some((row.get(2)?, row.get(0)?, row.get(6)?, row.get(3)?));
            Ok(())
        })?;
        // A page with unreadable items is filled up.
        if left.is_none_or(|left| found < left || Some(items.len()) >= filter.limit) {
            break;
        }
    }
    if filter.limit.is_none() {
        // Sorts by cached keys, since items are large.
        items.sort_by_cached_key(PendingItem::cursor);
    }
    Ok(items)
}

/// A place in the list, as columns.
type Place = (i64, String, i64, String);

fn select_items(filter: &PendingFilter, after: Option<Place>, limit: Option<usize>) -> Select {
    // The pending items come first, since their index has the order of the list.
    let mut select = Select::new(&format!(
        "SELECT p.run, p.brain, p.at, p.call, p.tool, p.arguments, p.since, p.kind, r.summary
         FROM pending p CROSS JOIN runs r ON r.key = p.id / {EVENTS}"
    ));
    if let Some(run) = &filter.run {
        let key = "(SELECT key FROM runs WHERE run = ?)";
        let run = || run.as_str().to_owned().into();
        select.and(&format!("p.id >= {key} * {EVENTS} AND p.id < ({key} + 1) * {EVENTS}"), [run(), run()]);
    }
    if let Some(user) = &filter.user {
        select.and("r.user = ?", [user.clone().into()]);
    }
    if filter.person {
        select.and("p.person", []);
    }
    if let Some((webhook, identifier)) = &filter.webhook {
        let waits = "p.id IN (SELECT pending FROM waits WHERE webhook = ? AND identifier = ?)";
        select.and(waits, [webhook.clone().into(), identifier.clone().into()]);
    }
    if filter.child {
        select.and("p.id IN (SELECT pending FROM waits WHERE webhook = ?)", [WaitSpec::CHILD.to_owned().into()]);
    }
    if let Some((at, run, since, call)) = after {
        select.and("(p.at, p.run, p.since, p.call) > (?, ?, ?, ?)", [at.into(), run.into(), since.into(), call.into()]);
    }
    // Reading all of them is faster in table order than in index order.
    let order = if limit.is_some() { "p.at, p.run, p.since, p.call" } else { "p.id" };
    select.order(order, limit);
    select
}

fn item(row: &rusqlite::Row<'_>) -> Result<PendingItem, DbError> {
    let what = "a pending item";
    let unreadable = |error| DbError::unreadable(what, error);
    let pending = Pending {
        call: Path::parse(text(row, 3)?).map_err(unreadable)?,
        tool: row.get(4)?,
        arguments: Arc::new(decode(what, text(row, 5)?)?),
        since: seq(row.get(6)?),
        kind: decode::<StoredKind>(what, text(row, 7)?)?.0,
    };
    // An item whose run has an unreadable row can still be answered.
    let about: WaitingRun = serde_json::from_str(text(row, 8)?).unwrap_or_default();
    Ok(PendingItem { run: RunId::from(text(row, 0)?), brain: row.get(1)?, at: Timestamp(row.get(2)?), pending, about })
}

/// What a call waits for, as a column.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct StoredKind(#[serde(with = "KindColumn")] PendingKind);

/// The form of the column. The tag is external, so that serde reads it in one pass: decoding takes most of the time of a
/// list.
#[derive(Serialize, Deserialize)]
#[serde(remote = "PendingKind", rename_all = "snake_case")]
enum KindColumn {
    Approval {
        gate: Gate,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Timestamp>,
    },
    Budget(BudgetRequest),
    Answer {
        waits: Vec<WaitSpec>,
    },
}
