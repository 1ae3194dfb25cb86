//! Positions of durable sinks in runs.

use positronic_core::record::{RunId, Seq};
use sqlx_postgres::PgRow;

use crate::append::owned;
use crate::columns::{limit, number, seq};
use crate::connections::{Statement, get, statement};
use crate::failure::DbError;
use crate::text::value;

/// Returns the statement that finds the next event of a run for a sink.
pub(crate) fn position(schema: &str, run: &RunId, sink: &str) -> Statement {
    let sql = format!(
        "SELECT s.next FROM {schema}.runs r JOIN {schema}.sinks s ON s.key = r.key WHERE r.run = $1 AND s.sink = $2"
    );
    statement(sql).bind(owned(run.as_str())).bind(owned(sink))
}

/// Reads the next event.
pub(crate) fn next(rows: &[PgRow]) -> Result<Option<Seq>, DbError> {
    rows.first().map(|row| get(row, 0).map(seq)).transpose()
}

/// Returns the statement that sets the next event of a run for a sink.
pub(crate) fn set(schema: &str, run: &RunId, sink: &str, next: Seq, done: Option<&str>) -> Statement {
    statement(format!("SELECT {schema}.set_sink_position($1, $2, $3, $4)"))
        .bind(owned(run.as_str()))
        .bind(owned(sink))
        .bind(number(next.0))
        .bind(done.map(owned))
}

/// Returns the statement that makes a worker feed the runs of workers without a live lease.
pub(crate) fn take(schema: &str, sink: &str, owner: &str, most: usize) -> Statement {
    let sql = format!("SELECT run FROM {schema}.take_sink($1, $2, $3)");
    statement(sql).bind(owned(sink)).bind(owned(owner)).bind(limit(most))
}

/// Reads the runs.
pub(crate) fn taken(rows: &[PgRow]) -> Result<Vec<RunId>, DbError> {
    rows.iter().map(|row| Ok(RunId::from(value(get(row, 0)?)))).collect()
}
