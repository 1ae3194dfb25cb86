//! The queue of runs with work: reservations, pauses and refusals.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use positronic_core::record::{RunId, Seq, Timestamp};
use positronic_core::store::{Deferral, DueFilter, DueRun, REFUSALS};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::columns::{column, decode, encode, limit};
use super::failure::DbError;
use super::leases::Workers;
use super::query::text;

/// Returns whether any run matches.
pub(super) fn any(db: &Connection, workers: &Workers, filter: &DueFilter) -> Result<bool, DbError> {
    Ok(!found(db, workers, filter, 1)?.is_empty())
}

/// Reserves the runs that match and returns them.
pub(super) fn reserve(db: &Connection, workers: &Workers, filter: &DueFilter) -> Result<Vec<DueRun>, DbError> {
    let mut due = Vec::new();
    let until = after(filter.reserve);
    for (key, summary, failures) in found(db, workers, filter, filter.limit)? {
        let sql = "INSERT INTO deferrals (run, owner, until, failures, refusals) VALUES (?1, ?2, ?3, 0, '[]')
                   ON CONFLICT (run) DO UPDATE SET owner = ?2, until = ?3";
        db.prepare_cached(sql)?.execute(params![key, filter.owner, until])?;
        due.extend(decode("the row about a run", &summary).ok().map(|summary| DueRun::new(summary, failures)));
    }
    Ok(due)
}

/// Returns the owners of live leases among those that the table names, as a JSON array.
fn live(db: &Connection, workers: &Workers, now: Timestamp) -> Result<String, DbError> {
    let sql = "SELECT owner FROM runs WHERE wake <= ?1 AND owner IS NOT NULL
               UNION SELECT owner FROM deferrals WHERE owner IS NOT NULL";
    let mut statement = db.prepare_cached(sql)?;
    let owners = statement.query_map([now.0], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    let mut live = Vec::new();
    for owner in owners {
        if workers.is_lease_live(&owner)? {
            live.push(owner);
        }
    }
    Ok(encode(&live)?)
}

type Found = (i64, String, u32);

/// The liveness of leases is read with the rows: an owner that a row names has acquired its lease before.
fn found(db: &Connection, workers: &Workers, filter: &DueFilter, most: usize) -> Result<Vec<Found>, DbError> {
    let live = live(db, workers, filter.now)?;
    let runs = (!filter.runs.is_empty()).then(|| encode(&filter.runs)).transpose()?;
    let sql = "
        SELECT runs.key, runs.summary, coalesce(deferrals.failures, 0)
        FROM runs LEFT JOIN deferrals ON deferrals.run = runs.key
        WHERE runs.wake <= ?1
            AND (?2 IS NULL OR runs.run IN (SELECT value FROM json_each(?2)))
            AND (runs.owner IS NULL OR runs.owner NOT IN (SELECT value FROM json_each(?3)))
            AND (deferrals.until IS NULL OR deferrals.until <= ?4
                OR CASE WHEN deferrals.owner IS NULL THEN ?5
                    ELSE deferrals.owner NOT IN (SELECT value FROM json_each(?3)) END)
            AND (deferrals.run IS NULL
                OR NOT EXISTS (SELECT 1 FROM json_each(deferrals.refusals) WHERE value IN (?6, ?7)))
        ORDER BY runs.wake, runs.started, runs.run LIMIT ?8";
    let values =
        params![filter.now.0, runs, live, after(Duration::ZERO), filter.paused, filter.code, filter.owner, limit(most)];
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map(values, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Changes when a run is due again, unless its log has grown.
pub(super) fn defer(db: &Connection, run: &RunId, next: Seq, deferral: &Deferral) -> Result<(), DbError> {
    let sql = "SELECT runs.key, coalesce(deferrals.refusals, '[]')
               FROM runs LEFT JOIN deferrals ON deferrals.run = runs.key WHERE runs.run = ?1 AND runs.next = ?2";
    let mut statement = db.prepare_cached(sql)?;
    let found = statement.query_row(params![run.as_str(), column(next.0)], |row| {
        let refusals = serde_json::from_str::<VecDeque<String>>(text(row, 1).unwrap_or_default());
        Ok((row.get::<_, i64>(0)?, refusals.unwrap_or_default()))
    });
    let Some((key, mut refusals)) = found.optional()? else { return Ok(()) };
    match deferral {
        Deferral::Released => {
            let sql = "UPDATE deferrals SET owner = NULL, until = NULL WHERE run = ?1";
            db.prepare_cached(sql)?.execute([key])?;
        }
        Deferral::Paused { failures, pause } => {
            let sql = "INSERT INTO deferrals (run, until, failures, refusals) VALUES (?1, ?2, ?3, '[]')
                       ON CONFLICT (run) DO UPDATE SET owner = NULL, until = ?2, failures = ?3";
            db.prepare_cached(sql)?.execute(params![key, after(*pause), failures])?;
        }
        Deferral::Refused { code } => {
            refusals.retain(|known| known != code);
            refusals.push_back(code.clone());
            if refusals.len() > REFUSALS {
                refusals.pop_front();
            }
            let sql = "INSERT INTO deferrals (run, failures, refusals) VALUES (?1, 0, ?2)
                       ON CONFLICT (run) DO UPDATE SET owner = NULL, until = NULL, refusals = ?2";
            db.prepare_cached(sql)?.execute(params![key, encode(&refusals)?])?;
        }
    }
    Ok(())
}

/// Ends the reservation, the pause and the refusals of a run.
pub(super) fn end(db: &Connection, key: i64) -> Result<(), DbError> {
    let sql = "UPDATE deferrals SET owner = NULL, until = NULL, refusals = '[]' WHERE run = ?1";
    db.prepare_cached(sql)?.execute([key])?;
    db.prepare_cached("DELETE FROM deferrals WHERE run = ?1 AND failures = 0")?.execute([key])?;
    Ok(())
}

/// Returns a time on the store's clock: microseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the store's own clock, which no event depends on")]
fn after(pause: Duration) -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.saturating_add(pause).as_micros()).unwrap_or(i64::MAX)
}
