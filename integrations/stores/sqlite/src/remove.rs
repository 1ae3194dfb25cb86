//! Removing runs and freeing their space.

use positronic_core::record::{RunId, Status};
use rusqlite::{OptionalExtension as _, params};

use super::columns::EVENTS;
use super::failure::DbError;
use super::group_commit::Tx;
use super::{append, pending};

/// How many pages a transaction frees at most, so that other writers do not wait long.
const PAGES: u32 = 1000;

/// Finds a run, and whether a later run of its conversation continues it.
const NEEDED: &str = "
    SELECT key, status, EXISTS (
        SELECT 1 FROM runs AS later
        WHERE later.conversation = runs.conversation AND later.started >= runs.started
            AND CASE WHEN json_valid(later.summary) THEN json_extract(later.summary, '$.after') END = runs.run
    ) FROM runs WHERE run = ?1";

/// Removes the runs that are over and not continued, and returns their count.
pub(super) fn runs(tx: &mut Tx<'_>, runs: &[RunId]) -> Result<usize, DbError> {
    tx.forgets();
    runs.iter().try_fold(0, |removed, one| Ok(removed + usize::from(run(tx, one)?)))
}

fn run(tx: &Tx<'_>, run: &RunId) -> Result<bool, DbError> {
    let db = tx.db();
    let found = db
        .prepare_cached(NEEDED)?
        .query_row([run.as_str()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, bool>(2)?)))
        .optional()?;
    let is_over = |word: &String| Status::ALL.iter().any(|status| status.is_over() && status.as_str() == word);
    let Some((key, ..)) = found.filter(|(_, status, needed)| is_over(status) && !needed) else { return Ok(false) };
    db.prepare_cached("UPDATE counter SET change = max(change, ?1)")?.execute([tx.change()])?;
    let start = key * EVENTS;
    db.prepare_cached("DELETE FROM events WHERE id >= ?1 AND id < ?2")?.execute(params![start, start + EVENTS])?;
    pending::remove_all(db, key)?;
    append::forget_prompts(db, key)?;
    for sql in [
        "DELETE FROM snapshots WHERE run = ?1",
        "DELETE FROM sinks WHERE run = ?1",
        "DELETE FROM run_blobs WHERE run = ?1",
        "DELETE FROM signals WHERE run = ?1",
        "DELETE FROM deferrals WHERE run = ?1",
        "DELETE FROM runs WHERE key = ?1",
    ] {
        db.prepare_cached(sql)?.execute([key])?;
    }
    Ok(true)
}

/// Returns some of the file's free pages to the file system, and whether there are more. A file that another program has
/// rebuilt may lack the information about movable pages; then this frees none.
pub(super) fn free(tx: &mut Tx<'_>) -> Result<bool, DbError> {
    let db = tx.db();
    let pages = || db.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0));
    let before = pages()?;
    let mut statement = db.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
    let mut steps = statement.query([])?;
    while steps.next()?.is_some() {}
    let left = pages()?;
    tx.frees();
    Ok(0 < left && left < before)
}
