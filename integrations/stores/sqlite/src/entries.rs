//! The table of entries.

use positronic_core::store::{Entry, EntryFilter, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use super::columns::{column, decode};
use super::failure::DbError;
use super::query::{Select, text};

/// Returns an entry.
pub(super) fn one(db: &Connection, kind: &str, key: &str) -> Result<Option<Entry>, DbError> {
    let sql = "SELECT key, revision, value FROM entries WHERE kind = ?1 AND key = ?2";
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query([kind, key])?;
    rows.next()?.map(|row| entry(kind, row)).transpose()
}

/// Lists entries in the order of their keys.
pub(super) fn list(db: &Connection, filter: &EntryFilter) -> Result<Vec<Entry>, DbError> {
    let EntryFilter { kind, prefix, after, reverse, limit, .. } = filter;
    let mut select = Select::new("SELECT key, revision, value FROM entries");
    select.and("kind = ?", [kind.clone().into()]);
    if !prefix.is_empty() {
        select.and(
            "key >= ? AND substr(key, 1, length(?)) = ?",
            [prefix.clone(), prefix.clone(), prefix.clone()].map(Into::into),
        );
    }
    if let Some(after) = after {
        select.and(if *reverse { "key < ?" } else { "key > ?" }, [after.clone().into()]);
    }
    select.order(if *reverse { "key DESC" } else { "key" }, *limit);
    let mut entries = Vec::new();
    select.each(db, |row| {
        entries.push(entry(kind, row)?);
        Ok(())
    })?;
    Ok(entries)
}

fn entry(kind: &str, row: &Row<'_>) -> Result<Entry, DbError> {
    let key = text(row, 0)?;
    let value: Value = decode(&format!("the entry `{key}` of kind `{kind}`"), text(row, 2)?)?;
    let revision: i64 = row.get(1)?;
    Ok(Entry::new(key, revision.try_into().unwrap_or_default(), value))
}

/// Creates or changes an entry, and returns its revision.
pub(super) fn put(db: &Connection, kind: &str, key: &str, value: &str, expected: Option<u64>) -> Result<u64, DbError> {
    let written: Option<i64> = match expected {
        None => {
            let sql = "INSERT INTO entries (kind, key, revision, value) VALUES (?1, ?2, 1, ?3)
                       ON CONFLICT DO NOTHING RETURNING revision";
            db.prepare_cached(sql)?.query_row([kind, key, value], |row| row.get(0)).optional()?
        }
        Some(expected) => {
            let sql = "UPDATE entries SET revision = revision + 1, value = ?3
                       WHERE kind = ?1 AND key = ?2 AND revision = ?4 RETURNING revision";
            let row = params![kind, key, value, column(expected)];
            db.prepare_cached(sql)?.query_row(row, |row| row.get(0)).optional()?
        }
    };
    let written = written.ok_or_else(|| changed(kind, key))?;
    Ok(written.try_into().unwrap_or_default())
}

/// Removes an entry.
pub(super) fn remove(db: &Connection, kind: &str, key: &str, expected: u64) -> Result<(), DbError> {
    let sql = "DELETE FROM entries WHERE kind = ?1 AND key = ?2 AND revision = ?3";
    let removed = db.prepare_cached(sql)?.execute(params![kind, key, column(expected)])?;
    if removed == 0 && one(db, kind, key)?.is_some() {
        return Err(changed(kind, key));
    }
    Ok(())
}

fn changed(kind: &str, key: &str) -> DbError {
    StoreError::EntryChanged { kind: kind.to_owned(), key: key.to_owned() }.into()
}
