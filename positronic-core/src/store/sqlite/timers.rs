//! The table of timers.

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use super::failure::DbError;
use super::rows::{decode, encode, limit};
use crate::record::{Timer, Timestamp, TriggerId};
use crate::store::{StoreError, TimerChange, TimerFilter, TimerOwner};

/// A change to a timer, with the encoded timer.
pub(super) struct Change {
    change: TimerChange,
    content: Option<String>,
}

impl Change {
    /// Encodes a change.
    pub(super) fn new(change: TimerChange) -> Result<Self, StoreError> {
        let content = match &change {
            TimerChange::Set(timer) => Some(encode(timer)?),
            TimerChange::Deleted(_) | TimerChange::Fired { .. } => None,
        };
        Ok(Self { change, content })
    }
}

/// Writes a change, or returns an error if the timer cannot fire.
pub(super) fn write(db: &Connection, Change { change, content }: &Change) -> Result<(), DbError> {
    match change {
        TimerChange::Set(timer) => {
            let sql = "INSERT OR REPLACE INTO timers (id, due, fired, conversation, user, origin, content)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let Timer { trigger, conversation, user, origin, fired, .. } = timer;
            let row = params![trigger.id.as_str(), trigger.due.0, fired, conversation, user, origin.as_str(), content];
            db.prepare_cached(sql)?.execute(row)?;
        }
        TimerChange::Deleted(id) => {
            remove(db, id)?;
        }
        TimerChange::Fired { id, due, next } => {
            let fired = match next {
                Some(next) => {
                    let sql = "UPDATE timers SET due = ?3, fired = fired + 1 WHERE id = ?1 AND due = ?2";
                    db.prepare_cached(sql)?.execute(params![id.as_str(), due.0, next.0])?
                }
                None => {
                    let sql = "DELETE FROM timers WHERE id = ?1 AND due = ?2";
                    db.prepare_cached(sql)?.execute(params![id.as_str(), due.0])?
                }
            };
            if fired == 0 {
                return Err(StoreError::NotDue { trigger: id.clone() }.into());
            }
        }
    }
    Ok(())
}

/// Removes a timer, and returns whether it existed.
pub(super) fn remove(db: &Connection, id: &TriggerId) -> Result<bool, DbError> {
    Ok(db.prepare_cached("DELETE FROM timers WHERE id = ?1")?.execute([id.as_str()])? > 0)
}

/// Lists timers, earliest due time first.
pub(super) fn list(db: &Connection, filter: &TimerFilter) -> Result<Vec<Timer>, DbError> {
    let (mut conditions, mut values) = (vec!["1"], Vec::new());
    let TimerFilter { id, due, owner, most } = filter;
    if let Some(id) = id {
        conditions.push("id = ?");
        values.push(Value::from(id.as_str().to_owned()));
    }
    if let Some(due) = due {
        conditions.push("due <= ?");
        values.push(Value::from(due.0));
    }
    if let Some(owner) = owner {
        let (condition, name) = match owner {
            TimerOwner::Conversation(id) => ("conversation = ?", id.as_str()),
            TimerOwner::User(name) => ("conversation IS NULL AND user = ?", name.as_str()),
            TimerOwner::Origin(run) => ("conversation IS NULL AND user IS NULL AND origin = ?", run.as_str()),
        };
        conditions.push(condition);
        values.push(Value::from(name.to_owned()));
    }
    values.push(Value::from(most.map_or(-1, limit)));
    let sql = format!(
        "SELECT id, due, fired, content FROM timers WHERE {} ORDER BY due, id LIMIT ?",
        conditions.join(" AND ")
    );
    let mut statement = db.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut timers = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let mut timer: Timer = decode(&format!("the timer `{id}`"), &row.get::<_, String>(3)?)?;
        (timer.trigger.due, timer.fired) = (Timestamp(row.get(1)?), row.get(2)?);
        timers.push(timer);
    }
    Ok(timers)
}
