//! The bytes of files.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::Trouble;
use crate::record::Timestamp;

/// Says which bytes no run refers to, and that were kept last before a moment.
const LEFT: &str = "FROM blobs WHERE at < ?1
                    AND sha256 NOT IN (SELECT sha256 FROM run_blobs)";

/// Keeps bytes, and says when.
pub(super) fn put(db: &Connection, name: &str, bytes: &[u8], at: Timestamp) -> Result<(), Trouble> {
    let sql = "UPDATE blobs SET at = max(at, ?2) WHERE sha256 = ?1";
    if db.prepare_cached(sql)?.execute(params![name, at.0])? == 0 {
        let sql = "INSERT INTO blobs (sha256, at, bytes) VALUES (?1, ?2, ?3)";
        db.prepare_cached(sql)?.execute(params![name, at.0, bytes])?;
    }
    Ok(())
}

/// Returns bytes by their hash.
pub(super) fn get(db: &Connection, name: &str) -> Result<Option<Vec<u8>>, Trouble> {
    let mut statement = db.prepare_cached("SELECT bytes FROM blobs WHERE sha256 = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// Writes that a run refers to bytes.
pub(super) fn refer(db: &Connection, run: i64, name: &str) -> Result<(), Trouble> {
    let sql = "INSERT OR IGNORE INTO run_blobs (run, sha256) VALUES (?1, ?2)";
    db.prepare_cached(sql)?.execute(params![run, name])?;
    Ok(())
}

/// Removes what no run refers to, and says how many files that were.
pub(super) fn sweep(db: &Connection, before: Timestamp) -> Result<usize, Trouble> {
    Ok(db.prepare_cached(&format!("DELETE {LEFT}"))?.execute([before.0])?)
}

/// Says whether there is anything to sweep away, so that nothing is written where there is not.
pub(super) fn is_left(db: &Connection, before: Timestamp) -> Result<bool, Trouble> {
    Ok(db.prepare_cached(&format!("SELECT EXISTS (SELECT 1 {LEFT})"))?.query_row([before.0], |row| row.get(0))?)
}
