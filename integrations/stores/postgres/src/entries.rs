//! Entries: small documents beside the logs.

use positronic_core::store::{Entry, EntryFilter, StoreError};
use sqlx_postgres::PgRow;

use crate::append::owned;
use crate::columns::{decode, limit, number};
use crate::connections::{Select, Statement, get, statement};
use crate::failure::DbError;
use crate::text::value;

/// Returns the statement that finds an entry.
pub(crate) fn one(schema: &str, kind: &str, key: &str) -> Statement {
    statement(format!("SELECT key, revision, value FROM {schema}.entries WHERE kind = $1 AND key = $2"))
        .bind(owned(kind))
        .bind(owned(key))
}

/// Returns the statement that lists entries in the order of their keys.
pub(crate) fn select(schema: &str, filter: &EntryFilter) -> Statement {
    let mut query = Select::new(format!("SELECT key, revision, value FROM {schema}.entries WHERE kind = "));
    query.bind(owned(&filter.kind));
    if !filter.prefix.is_empty() {
        let prefix = owned(&filter.prefix);
        query.push(" AND key >= ").bind(prefix.clone());
        query.push(" AND starts_with(key, ").bind(prefix).push(")");
    }
    if let Some(after) = &filter.after {
        query.push(if filter.reverse { " AND key < " } else { " AND key > " }).bind(owned(after));
    }
    query.push(if filter.reverse { " ORDER BY key DESC" } else { " ORDER BY key" });
    if let Some(most) = filter.limit {
        query.push(" LIMIT ").bind(limit(most));
    }
    query.statement()
}

/// Reads an entry.
pub(crate) fn entry(row: &PgRow) -> Result<Entry, DbError> {
    let key = value(get(row, 0)?);
    let document = decode(&format!("the entry `{key}`"), get::<&str>(row, 2)?)?;
    Ok(Entry::new(key, get::<i64>(row, 1)?.try_into().unwrap_or_default(), document))
}

/// Returns the statement that creates or changes an entry. It returns the revision, or no row if the entry has changed.
pub(crate) fn put(schema: &str, kind: &str, key: &str, document: &str, expected: Option<u64>) -> Statement {
    let sql = match expected {
        None => format!(
            "INSERT INTO {schema}.entries (kind, key, value, revision) VALUES ($1, $2, $3, 1)
             ON CONFLICT DO NOTHING RETURNING revision"
        ),
        Some(_) => format!(
            "UPDATE {schema}.entries SET value = $3, revision = revision + 1
             WHERE kind = $1 AND key = $2 AND revision = $4 RETURNING revision"
        ),
    };
    let put = statement(sql).bind(owned(kind)).bind(owned(key)).bind(document.to_owned());
    match expected {
        None => put,
        Some(expected) => put.bind(number(expected)),
    }
}

/// Returns the statement that removes an entry. It returns whether the entry exists with another revision.
pub(crate) fn remove(schema: &str, kind: &str, key: &str, expected: u64) -> Statement {
    let sql = format!(
        "WITH removed AS (DELETE FROM {schema}.entries WHERE kind = $1 AND key = $2 AND revision = $3)
         SELECT EXISTS (SELECT FROM {schema}.entries WHERE kind = $1 AND key = $2 AND revision <> $3)"
    );
    statement(sql).bind(owned(kind)).bind(owned(key)).bind(number(expected))
}

/// Returns the error for an entry with another revision.
pub(crate) fn changed(kind: &str, key: &str) -> StoreError {
    StoreError::EntryChanged { kind: kind.to_owned(), key: key.to_owned() }
}
