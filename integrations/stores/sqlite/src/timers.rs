//! The table of timers.

use positronic_core::record::{Timer, Timestamp, TriggerId};
use positronic_core::store::{StoreError, TimerChange, TimerFilter, TimerOwner};
use rusqlite::{Connection, params};

use super::columns::{decode, encode};
use super::failure::DbError;
use super::query::{Select, text};

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
    let mut select = Select::new("SELECT id, due, fired, content FROM timers");
    if let Some(id) = &filter.id {
        select.and("id = ?", [id.as_str().to_owned().into()]);
    }
    if let Some(due) = filter.due {
        select.and("due <= ?", [due.0.into()]);
    }
    if let Some(owner) = &filter.owner {
        let (condition, name) = match owner {
            TimerOwner::Conversation(id) => ("conversation = ?", id.as_str()),
            TimerOwner::User(name) => ("conversation IS NULL AND user = ?", name.as_str()),
            TimerOwner::Origin(run) => ("conversation IS NULL AND user IS NULL AND origin = ?", run.as_str()),
        };
        select.and(condition, [name.to_owned().into()]);
    }
    select.order("due, id", filter.limit);
    let mut timers = Vec::new();
    select.each(db, |row| {
        let mut timer: Timer = decode(&format!("the timer `{}`", text(row, 0)?), text(row, 3)?)?;
        (timer.trigger.due, timer.fired) = (Timestamp(row.get(1)?), row.get(2)?);
        timers.push(timer);
        Ok(())
    })?;
    Ok(timers)
}
