//! Positions of durable sinks in runs.

use positronic_core::record::{RunId, Seq};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::columns::{column, limit, seq};
use super::failure::DbError;
use super::leases::Workers;

/// Makes the claimant of a run the worker that feeds its sinks.
pub(super) fn claim(db: &Connection, key: i64, sinks: &[String], owner: &str) -> Result<(), DbError> {
    let sql = "INSERT INTO sinks (run, sink, next, feeder) VALUES (?1, ?2, 0, ?3)
               ON CONFLICT (run, sink) DO UPDATE SET feeder = ?3";
    for sink in sinks {
        db.prepare_cached(sql)?.execute(params![key, sink, owner])?;
    }
    Ok(())
}

/// Returns the next event of a run for a sink.
pub(super) fn position(db: &Connection, run: &RunId, sink: &str) -> Result<Option<Seq>, DbError> {
    let sql = "SELECT sinks.next FROM runs JOIN sinks ON sinks.run = runs.key WHERE runs.run = ?1 AND sinks.sink = ?2";
    let next = db.prepare_cached(sql)?.query_row([run.as_str(), sink], |row| row.get::<_, i64>(0));
    Ok(next.optional()?.map(seq))
}

/// Sets the next event of a run for a sink, and ends its feeding by a worker if it has all events.
pub(super) fn set(db: &Connection, run: &RunId, sink: &str, next: Seq, done: Option<&str>) -> Result<(), DbError> {
    let sql = "UPDATE sinks SET next = max(next, ?3), feeder = CASE WHEN feeder = ?4 AND ?3 >= (
                   SELECT runs.next FROM runs WHERE key = sinks.run
               ) THEN NULL ELSE feeder END
               WHERE run = (SELECT key FROM runs WHERE runs.run = ?1) AND sink = ?2";
    db.prepare_cached(sql)?.execute(params![run.as_str(), sink, column(next.0), done])?;
    Ok(())
}

/// Returns whether a worker without a live lease feeds a sink.
pub(super) fn any_lost(db: &Connection, workers: &Workers, sink: &str) -> Result<bool, DbError> {
    Ok(!lost_feeders(db, workers, sink)?.is_empty())
}

/// Makes a worker feed the runs of workers without a live lease, and returns these runs.
pub(super) fn take(
    db: &Connection,
    workers: &Workers,
    sink: &str,
    owner: &str,
    most: usize,
) -> Result<Vec<RunId>, DbError> {
    let mut taken = Vec::new();
    for feeder in lost_feeders(db, workers, sink)? {
        let sql = "SELECT runs.key, runs.run FROM sinks JOIN runs ON runs.key = sinks.run
                   WHERE sinks.sink = ?1 AND sinks.feeder = ?2 LIMIT ?3";
        let mut statement = db.prepare_cached(sql)?;
        let left = limit(most.saturating_sub(taken.len()));
        let rows = statement.query_map(params![sink, feeder, left], |row| {
            Ok((row.get::<_, i64>(0)?, RunId::from(row.get::<_, String>(1)?)))
        })?;
        for (key, run) in rows.collect::<Result<Vec<_>, _>>()? {
            let sql = "UPDATE sinks SET feeder = ?3 WHERE run = ?1 AND sink = ?2";
            db.prepare_cached(sql)?.execute(params![key, sink, owner])?;
            taken.push(run);
        }
    }
    Ok(taken)
}

fn lost_feeders(db: &Connection, workers: &Workers, sink: &str) -> Result<Vec<String>, DbError> {
    let sql = "SELECT DISTINCT feeder FROM sinks WHERE sink = ?1 AND feeder IS NOT NULL";
    let mut statement = db.prepare_cached(sql)?;
    let feeders = statement.query_map([sink], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    let mut lost = Vec::new();
    for feeder in feeders {
        if !workers.is_lease_live(&feeder)? {
            lost.push(feeder);
        }
    }
    Ok(lost)
}
