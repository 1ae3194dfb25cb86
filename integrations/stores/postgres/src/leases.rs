//! Leases of workers, and the queue of runs with work, by the server's clock.
//!
//! A lease has a time to live, which its worker extends. One that has lapsed never comes back: the next look at the queue
//! deletes it, and frees the runs of its owner. So the queue is an index of free runs with work, however many runs wait or
//! are claimed.

use std::time::Duration;

use positronic_core::record::{RunId, Seq};
use positronic_core::store::{Deferral, DueFilter, DueRun};
use sqlx_core::connection::ConnectOptions as _;
use sqlx_core::executor::Executor as _;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_postgres::{PgConnectOptions, PgRow};

use crate::append::owned;
use crate::columns::{limit, number};
use crate::connections::{Statement, get, statement};
use crate::failure::DbError;

/// Returns the statement that acquires a lease.
pub(crate) fn acquire(schema: &str, owner: &str, ttl: Duration) -> Statement {
    // The first of two tries may have written it.
    let sql = format!(
        "INSERT INTO {schema}.leases (owner, until) VALUES ($1, clock_timestamp() + $2 * interval '1 ms')
         ON CONFLICT (owner) DO UPDATE SET until = excluded.until"
    );
    statement(sql).bind(owned(owner)).bind(millis(ttl))
}

/// Returns the statement that extends a live lease. It returns no row if the lease has lapsed.
pub(crate) fn renew(schema: &str, owner: &str, ttl: Duration) -> Statement {
    let sql = format!(
        "UPDATE {schema}.leases SET until = clock_timestamp() + $2 * interval '1 ms'
         WHERE owner = $1 AND until > clock_timestamp() RETURNING owner"
    );
    statement(sql).bind(owned(owner)).bind(millis(ttl))
}

/// Returns the statement that finds a live lease.
pub(crate) fn find(schema: &str, owner: &str) -> Statement {
    let sql = format!("SELECT owner FROM {schema}.leases WHERE owner = $1 AND until > clock_timestamp()");
    statement(sql).bind(owned(owner))
}

/// Returns the statement that reserves due runs.
pub(crate) fn due(schema: &str, filter: &DueFilter) -> Statement {
    let runs: Option<Vec<_>> =
        (!filter.runs.is_empty()).then(|| filter.runs.iter().map(|run| owned(run.as_str())).collect());
    statement(format!("SELECT summary, failures FROM {schema}.due_runs($1, $2, $3, $4, $5, $6, $7)"))
        .bind(filter.now.0)
        .bind(owned(&filter.owner))
        .bind(owned(&filter.code))
        .bind(runs)
        .bind(filter.paused)
        .bind(limit(filter.limit))
        .bind(millis(filter.reserve))
}

/// Decodes the due runs. It skips those that it cannot decode.
pub(crate) fn due_runs(rows: &[PgRow]) -> Result<Vec<DueRun>, DbError> {
    let mut due = Vec::with_capacity(rows.len());
    for row in rows {
        let failures = get::<i64>(row, 1)?.try_into().unwrap_or(u32::MAX);
        due.extend(serde_json::from_str(get(row, 0)?).ok().map(|summary| DueRun::new(summary, failures)));
    }
    Ok(due)
}

/// Returns the statement that changes when a run is due again.
pub(crate) fn defer(schema: &str, run: &RunId, next: Seq, deferral: &Deferral) -> Statement {
    let changes = match deferral {
        Deferral::Released => "hold_until = NULL",
        Deferral::Paused { .. } => "hold_until = clock_timestamp() + $3 * interval '1 ms', failures = $4",
        Deferral::Refused { .. } => {
            "hold_until = NULL, refusals = array_append((array_remove(refusals, $3))[array_length(array_remove(refusals, $3), 1) - 14:], $3)"
        }
    };
    let sql = format!("UPDATE {schema}.runs SET hold_owner = NULL, {changes} WHERE run = $1 AND next = $2");
    let statement = statement(sql).bind(owned(run.as_str())).bind(number(next.0));
    match deferral {
        Deferral::Released => statement,
        Deferral::Paused { failures, pause } => statement.bind(millis(*pause)).bind(i64::from(*failures)),
        Deferral::Refused { code } => statement.bind(owned(code)),
    }
}

/// Converts a duration to a column: at most a hundred years, which the server can add to its time.
fn millis(duration: Duration) -> i64 {
    const LONGEST: i64 = 100 * 365 * 24 * 60 * 60 * 1000;
    i64::try_from(duration.as_millis()).unwrap_or(LONGEST).min(LONGEST)
}

/// Releases a lease on drop, so that other workers need not wait for its end.
///
/// It has a connection and a runtime of its own: at the end of a process the runtime of the store may be gone.
pub(crate) struct Guard {
    pub(crate) connect: PgConnectOptions,
    pub(crate) schema: String,
    pub(crate) owner: String,
}

/// How long a drop waits for the release at most; then the lease lapses.
const PATIENCE: Duration = Duration::from_millis(500);

impl Drop for Guard {
    fn drop(&mut self) {
        let connect = self.connect.clone();
        // A statement without parameters is one message, so it also works behind a pooler.
        let release = format!("SELECT {}.end_leases('{}')", self.schema, self.owner.replace('\'', "''"));
        let work = move || -> Result<(), String> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            runtime.block_on(async {
                let released = tokio::time::timeout(PATIENCE, async {
                    let mut db = connect.connect().await?;
                    db.execute(AssertSqlSafe(release)).await
                });
                released.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
                Ok(())
            })
        };
        let thread = std::thread::Builder::new().name("positronic-release".to_owned()).spawn(work);
        let released = thread
            .map_err(|error| error.to_string())
            .and_then(|thread| thread.join().unwrap_or_else(|_| Err("it panicked".to_owned())));
        if let Err(error) = released {
            tracing::debug!(owner = self.owner, error, "cannot release a lease; it will lapse");
        }
    }
}
