//! Leases: which workers are alive, by the server's clock.
//!
//! A lease has a time to live, which its worker extends. One that has lapsed never comes back: the worker acquires a new
//! one under another name.

use std::sync::Arc;
use std::time::Duration;

use crate::append::owned;
use crate::connections::{Connections, Statement, statement};

/// Returns the statement that acquires a lease.
pub(crate) fn acquire(schema: &str, owner: &str, ttl: Duration) -> Statement {
    let sql =
        format!("INSERT INTO {schema}.leases (owner, until) VALUES ($1, clock_timestamp() + $2 * interval '1 ms')");
    statement(sql).bind(owned(owner)).bind(millis(ttl))
}

/// Returns the statement that releases a lease.
pub(crate) fn release(schema: &str, owner: &str) -> Statement {
    statement(format!("DELETE FROM {schema}.leases WHERE owner = $1")).bind(owned(owner))
}

/// Returns the statement that finds a live lease.
pub(crate) fn find(schema: &str, owner: &str) -> Statement {
    let sql = format!("SELECT owner FROM {schema}.leases WHERE owner = $1 AND until > clock_timestamp()");
    statement(sql).bind(owned(owner))
}

pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Releases a lease on drop, if a runtime is at hand; otherwise the lease lapses.
pub(crate) struct Guard {
    pub(crate) connections: Arc<Connections>,
    pub(crate) schema: String,
    pub(crate) owner: String,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (connections, schema, owner) =
            (Arc::clone(&self.connections), std::mem::take(&mut self.schema), std::mem::take(&mut self.owner));
        runtime.spawn(async move {
            if let Err(error) = connections.rows(|| release(&schema, &owner)).await {
                tracing::debug!(?error, "cannot release a lease; it will lapse");
            }
        });
    }
}
