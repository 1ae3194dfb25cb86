//! Removing runs, and giving back their room.

use rusqlite::{OptionalExtension as _, params};

use super::failure::Trouble;
use super::group::Unit;
use super::pending;
use super::rows::EVENTS;
use crate::record::{RunId, Status};

/// How many pages of the file are given back at once, so that nobody else waits long.
const PAGES: u32 = 1000;

/// Finds a run, and says whether another one of its conversation, which began later, goes on after it.
const NEEDED: &str = "
    SELECT key, status, EXISTS (
        SELECT 1 FROM runs AS later
        WHERE later.conversation = runs.conversation AND later.started >= runs.started
            AND CASE WHEN json_valid(later.summary) THEN json_extract(later.summary, '$.after') END = runs.run
    ) FROM runs WHERE run = ?1";

/// Removes runs that are over and that no other one of their conversation goes on after, and says how many there were.
pub(super) fn runs(unit: &mut Unit<'_>, runs: &[RunId]) -> Result<usize, Trouble> {
    unit.forgets();
    runs.iter().try_fold(0, |removed, one| Ok(removed + usize::from(run(unit, one)?)))
}

fn run(unit: &Unit<'_>, run: &RunId) -> Result<bool, Trouble> {
    let db = unit.db();
    let found = db
        .prepare_cached(NEEDED)?
        .query_row([run.as_str()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, bool>(2)?)))
        .optional()?;
    let is_over = |word: &String| Status::ALL.iter().any(|status| status.is_over() && status.as_str() == word);
    let Some((key, ..)) = found.filter(|(_, status, needed)| is_over(status) && !needed) else { return Ok(false) };
    db.prepare_cached("UPDATE counter SET change = max(change, ?1)")?.execute([unit.change()])?;
    let start = key * EVENTS;
    db.prepare_cached("DELETE FROM events WHERE id >= ?1 AND id < ?2")?.execute(params![start, start + EVENTS])?;
    pending::remove_all(db, key)?;
    for sql in [
        "DELETE FROM snapshots WHERE run = ?1",
        "DELETE FROM run_blobs WHERE run = ?1",
        "DELETE FROM signals WHERE run = ?1",
        "DELETE FROM runs WHERE key = ?1",
    ] {
        db.prepare_cached(sql)?.execute([key])?;
    }
    Ok(true)
}

/// Gives some of the file's free pages back to the file system, and says whether there are more to give. A file that was made anew
/// by another program may not say which pages could be moved; then none is.
pub(super) fn free(unit: &mut Unit<'_>) -> Result<bool, Trouble> {
    let db = unit.db();
    let pages = || db.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0));
    let before = pages()?;
    let mut statement = db.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
    let mut steps = statement.query([])?;
    while steps.next()?.is_some() {}
    let left = pages()?;
    unit.frees();
    Ok(0 < left && left < before)
}
