//! File contents in SQLite.

use positronic_core::record::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::DbError;

/// Selects the files that no run references and that were last stored before a time.
const UNREFERENCED: &str = "FROM blobs WHERE at < ?1
                    AND sha256 NOT IN (SELECT sha256 FROM run_blobs)";

/// Stores a file, or updates its time.
pub(super) fn put(db: &Connection, name: &str, bytes: &[u8], at: Timestamp) -> Result<(), DbError> {
    let sql = "UPDATE blobs SET at = max(at, ?2) WHERE sha256 = ?1";
    if db.prepare_cached(sql)?.execute(params![name, at.0])? == 0 {
        let sql = "INSERT INTO blobs (sha256, at, bytes) VALUES (?1, ?2, ?3)";
        db.prepare_cached(sql)?.execute(params![name, at.0, bytes])?;
    }
    Ok(())
}

/// Returns a file by its hash.
pub(super) fn get(db: &Connection, name: &str) -> Result<Option<Vec<u8>>, DbError> {
    let mut statement = db.prepare_cached("SELECT bytes FROM blobs WHERE sha256 = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// Records that a run references a file.
pub(super) fn add_reference(db: &Connection, run: i64, name: &str) -> Result<(), DbError> {
    let sql = "INSERT OR IGNORE INTO run_blobs (run, sha256) VALUES (?1, ?2)";
    db.prepare_cached(sql)?.execute(params![run, name])?;
    Ok(())
}

/// Removes unreferenced files and returns their count.
pub(super) fn sweep(db: &Connection, before: Timestamp) -> Result<usize, DbError> {
    Ok(db.prepare_cached(&format!("DELETE {UNREFERENCED}"))?.execute([before.0])?)
}

/// Returns whether a sweep would remove anything, so that an idle sweep does not write.
pub(super) fn any_unreferenced(db: &Connection, before: Timestamp) -> Result<bool, DbError> {
    Ok(db
        .prepare_cached(&format!("SELECT EXISTS (SELECT 1 {UNREFERENCED})"))?
        .query_row([before.0], |row| row.get(0))?)
}
