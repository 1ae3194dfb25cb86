//! The store.

mod event_store;

use std::sync::Arc;

use positronic_core::record::{RunId, RunSummary, Seq, Timestamp};
use positronic_core::store::{
    EventMatches, EventSearch, Lease, PendingFilter, PendingItem, RunFilter, StoreError, content_hash, verify_content,
};
use sqlx_core::connection::ConnectOptions as _;
use sqlx_postgres::{PgConnectOptions, PgRow};
use tokio::task::AbortHandle;

use crate::address::{database, parsed};
use crate::append::{Encoded, owned};
use crate::connections::{Connections, Statement, get};
use crate::failure::{DatabaseName, DbError, StatementKind};
use crate::notifications::StoreChanges;
use crate::options::PostgresOptions;
use crate::{blobs, leases, query, schema, search};

/// The schema if neither the options nor the address name one.
const SCHEMA: &str = "positronic";

/// Stores logs in PostgreSQL, which the processes of several machines may use at the same time. Clones share their
/// connections.
///
/// It belongs to the tokio runtime in which it was opened. An append that has returned is committed; dropping the last
/// clone closes the connections.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

struct Shared {
    place: DatabaseName,
    /// The quoted name of the schema.
    schema: String,
    options: PostgresOptions,
    connect: PgConnectOptions,
    connections: Arc<Connections>,
    leases: Connections,
    changes: Arc<StoreChanges>,
    tasks: Vec<AbortHandle>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PostgresStore").field(&self.shared.place.to_string()).finish()
    }
}

impl PostgresStore {
    /// Opens a store with the default options, and creates its schema if it does not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unusable`] when a person must act: the address is invalid, the server refuses the user, the database
    /// does not exist or is not in UTF8, or a newer release wrote it. [`StoreError::Failed`] when the store cannot be
    /// opened now: the server does not answer.
    pub async fn open(url: impl Into<String>) -> Result<Self, StoreError> {
        Self::with(PostgresOptions::builder().url(url).build()).await
    }

    /// Opens a store.
    ///
    /// # Errors
    ///
    /// See [`open`](Self::open). [`StoreError::Older`] when it is opened read-only and its schema does not exist or has an
    /// older format.
    pub async fn with(options: PostgresOptions) -> Result<Self, StoreError> {
        #[cfg(feature = "tls")]
        crate::tls::choose_cryptography();
        let address = parsed(&options.url)?;
        let mut connect = address.options;
        let is_prepared = options.prepared_statements && address.prepared_statements;
        let name = options.schema.clone().or(address.schema).unwrap_or_else(|| SCHEMA.to_owned());
        let quoted = schema::quoted(&name)?;
        if connect.get_application_name().is_none() {
            connect = connect.application_name("positronic");
        }
        let limit = options.statement_timeout.as_millis().to_string();
        connect = connect.extra_float_digits(None).disable_statement_logging();
        if is_prepared {
            // A pooler may refuse it.
            connect = connect.options([("statement_timeout", &limit)]);
        }
        let place = DatabaseName { database: database(&connect), schema: name };
        let change =
            schema::SchemaChange { read_only: options.read_only, search_index: options.search_index, is_prepared };
        let prepared = schema::prepare(&connect, &place, change);
        let prepared = tokio::time::timeout(search::LIMIT, prepared).await;
        let prepared = prepared.unwrap_or_else(|_| Err(DbError::Unconnected("it did not answer".to_owned())));
        prepared.map_err(|error| place.explain(error, StatementKind::Read))?;
        let pool = |most| {
            let pool = Connections::new(connect.clone(), most, options.connect_timeout, options.statement_timeout);
            let begin = || format!("BEGIN; SET LOCAL statement_timeout = {limit}");
            if is_prepared { pool } else { pool.unprepared(begin()) }
        };
        let (connections, leases) = (Arc::new(pool(options.connections)), pool(1));
        let changes = Arc::new(StoreChanges::new(unique(), &place.schema, &quoted));
        // No pooler in transaction mode forwards notifications.
        let tasks = changes.start(&connections, is_prepared.then_some(&connect), options.read_only);
        Ok(Self {
            shared: Arc::new(Shared { place, schema: quoted, options, connect, connections, leases, changes, tasks }),
        })
    }

    /// Reads rows, and converts them.
    pub(crate) async fn read_rows<T>(
        &self,
        statement: impl Fn(&str) -> Statement,
        read: impl FnOnce(Vec<PgRow>) -> Result<T, DbError>,
    ) -> Result<T, StoreError> {
        let rows = self.shared.connections.rows(|| statement(&self.shared.schema)).await;
        rows.and_then(read).map_err(|error| self.shared.place.explain(error, StatementKind::Read))
    }

    /// Executes a statement that does nothing the second time.
    async fn write_rows<T>(
        &self,
        statement: impl Fn(&str) -> Statement,
        read: impl FnOnce(Vec<PgRow>) -> Result<T, DbError>,
    ) -> Result<T, StoreError> {
        self.writes()?;
        let rows = self.shared.connections.rows(|| statement(&self.shared.schema)).await;
        rows.and_then(read).map_err(|error| self.shared.place.explain(error, StatementKind::Write))
    }

    /// Executes a statement of leases on their own connection: searches and files may hold all others for minutes.
    async fn lease_rows(&self, statement: impl Fn(&str) -> Statement) -> Result<Vec<PgRow>, StoreError> {
        self.writes()?;
        let rows = self.shared.leases.rows(|| statement(&self.shared.schema)).await;
        rows.map_err(|error| self.shared.place.explain(error, StatementKind::Write))
    }

    /// Returns an error if the store is read-only.
    fn writes(&self) -> Result<(), StoreError> {
        if !self.shared.options.read_only {
            return Ok(());
        }
        let message = format!("cannot write the event store in {}: it was opened read-only", self.shared.place);
        Err(StoreError::Unusable { message })
    }

    async fn append_encoded(&self, run: &RunId, encoded: &Encoded) -> Result<(), StoreError> {
        let shared = &self.shared;
        // Not repeated if the connection is lost: the first try may have written.
        let rows = shared.connections.rows_once(|| encoded.statement(&shared.schema)).await;
        let written = rows.and_then(|rows| encoded.outcome(&rows));
        written.map_err(|error| shared.place.explain(error, StatementKind::Write))?;
        shared.changes.appended(run, Seq(encoded.next()));
        Ok(())
    }

    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        let mut after = filter.after.as_ref().map(|after| (after.started.0, owned(after.run.as_str())));
        let mut listed = Vec::new();
        loop {
            let left = filter.limit.map(|limit| limit - listed.len());
            let rows = self.read_rows(|schema| query::runs(schema, filter, after.as_ref(), left), Ok).await?;
            let count = rows.len();
            let mut read = |rows: Vec<PgRow>| {
                after = rows.last().map(query::run_place).transpose()?;
                for row in &rows {
                    listed.extend(serde_json::from_str::<RunSummary>(get(row, 0)?).ok());
                }
                Ok(())
            };
            read(rows).map_err(|error| self.shared.place.explain(error, StatementKind::Read))?;
            // A page with unreadable rows is filled up.
            if left.is_none_or(|left| count < left || Some(listed.len()) >= filter.limit) {
                return Ok(listed);
            }
        }
    }

    async fn list_pending(&self, filter: &PendingFilter) -> Result<Vec<PendingItem>, StoreError> {
        let mut after = filter.after.as_ref().map(|after| {
            let (run, since) = (owned(after.run.as_str()), crate::columns::number(after.since.0));
            (after.at.0, run, since, owned(after.call.as_str()))
        });
        let mut listed = Vec::new();
        loop {
            let left = filter.limit.map(|limit| limit - listed.len());
            let rows = self.read_rows(|schema| query::pending(schema, filter, after.as_ref(), left), Ok).await?;
            let place = rows.last().map(query::pending_place).transpose();
            after = place.map_err(|error| self.shared.place.explain(error, StatementKind::Read))?;
            for row in &rows {
                match query::pending_item(row) {
                    Ok(item) => listed.push(item),
                    Err(error) => tracing::warn!(?error, "skipped an unreadable pending item"),
                }
            }
            if left.is_none_or(|left| rows.len() < left || Some(listed.len()) >= filter.limit) {
                return Ok(listed);
            }
        }
    }

    async fn store_blob(&self, bytes: Vec<u8>, at: Timestamp) -> Result<String, StoreError> {
        self.writes()?;
        let (name, bytes) = blobs::blocking(move || Ok((content_hash(&bytes)?, bytes))).await?;
        if self.write_rows(|schema| blobs::touch(schema, &name, at), |rows| Ok(!rows.is_empty())).await? {
            return Ok(name);
        }
        let Shared { connections, schema, place, options, .. } = &*self.shared;
        let written = match connections.acquire().await {
            Ok(mut db) => {
                let limit = options.statement_timeout;
                db.run(limit, async |db| blobs::put(db, schema, &name, &bytes, at).await).await
            }
            Err(error) => Err(error),
        };
        written.map_err(|error| place.explain(error, StatementKind::Write))?;
        Ok(name)
    }

    async fn load_blob(&self, sha256: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Shared { connections, schema, place, options, .. } = &*self.shared;
        let read = match connections.acquire().await {
            Ok(mut db) => db.run(options.statement_timeout, async |db| blobs::read(db, schema, sha256).await).await,
            Err(error) => Err(error),
        };
        let Some(bytes) = read.map_err(|error| place.explain(error, StatementKind::Read))? else { return Ok(None) };
        let name = sha256.to_owned();
        blobs::blocking(move || verify_content(&name, bytes)).await.map(Some)
    }

    async fn find_text(&self, search: &EventSearch) -> Result<EventMatches, StoreError> {
        let Shared { connections, schema, place, .. } = &*self.shared;
        let found = match connections.acquire().await {
            Ok(mut db) => db.run(search::LIMIT, async |db| search::search(db, schema, search).await).await,
            Err(error) => Err(error),
        };
        found.map_err(|error| place.explain(error, StatementKind::Read))
    }

    async fn new_lease(&self) -> Result<Lease, StoreError> {
        let Shared { connect, schema, options, .. } = &*self.shared;
        let owner = format!("{}-{}", std::process::id(), unique());
        self.lease_rows(|schema| leases::acquire(schema, &owner, options.lease_ttl)).await?;
        let guard = leases::Guard { connect: connect.clone(), schema: schema.clone(), owner: owner.clone() };
        Ok(Lease::expiring(owner, options.lease_ttl, guard))
    }
}

/// Returns a name that no other process returns.
fn unique() -> String {
    // The time part is not used; `now_v7` panics at a clock before 1970.
    let id = uuid::Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, 0, 0)).simple().to_string();
    id.get(12..).unwrap_or_default().to_owned()
}
