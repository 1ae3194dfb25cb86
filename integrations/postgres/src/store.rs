//! The store.

use std::sync::{Arc, Weak};

use positronic_core::record::{Event, RunId, RunSummary, Seq, SignalId, Timer, Timestamp, TriggerId};
use positronic_core::store::{
    Append, BoxFuture, Deferral, DueFilter, DueRun, Entry, EntryFilter, EventMatches, EventSearch, EventStore,
    InboundWebhook, Lease, MailboxEntry, PendingFilter, PendingItem, PostOutcome, RunFilter, SavedPrompts, Snapshot,
    StoreError, TimerFilter, Watcher, content_hash, verify_content,
};
use serde_json::Value;
use sqlx_core::connection::ConnectOptions as _;
use sqlx_postgres::{PgConnectOptions, PgRow};
use tokio::task::AbortHandle;

use crate::append::{Encoded, owned};
use crate::changes::Changes;
use crate::connections::{Connections, Statement, get, statement};
use crate::failure::{Access, DbError, Place};
use crate::options::PostgresOptions;
use crate::rows::{encode, no_such, seq};
use crate::{blobs, entries, leases, mailbox, query, schema, search, sinks, timers};

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
    place: Place,
    /// The quoted name of the schema.
    schema: String,
    options: PostgresOptions,
    connect: PgConnectOptions,
    connections: Arc<Connections>,
    leases: Connections,
    changes: Arc<Changes>,
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
        let (mut connect, of_url) = parsed(&options.url)?;
        let name = options.schema.clone().or(of_url).unwrap_or_else(|| SCHEMA.to_owned());
        let quoted = schema::quoted(&name)?;
        if connect.get_application_name().is_none() {
            connect = connect.application_name("positronic");
        }
        let limit = options.statement_timeout.as_millis().to_string();
        connect = connect.options([("statement_timeout", limit)]).extra_float_digits(None).disable_statement_logging();
        let place = Place { database: database(&connect), schema: name };
        let prepared = schema::prepare(&connect, &place, options.read_only, options.search_index);
        let prepared = tokio::time::timeout(search::LIMIT, prepared).await;
        let prepared = prepared.unwrap_or_else(|_| Err(DbError::Unconnected("it did not answer".to_owned())));
        prepared.map_err(|error| place.explain(error, Access::Read))?;
        let connections = Arc::new(Connections::new(
            connect.clone(),
            options.connections,
            options.connect_timeout,
            options.statement_timeout,
        ));
        let leases = Connections::new(connect.clone(), 1, options.connect_timeout, options.statement_timeout);
        let changes = Arc::new(Changes::new(unique(), &place.schema, &quoted));
        let tasks = changes.start(&connections, &connect, options.read_only);
        Ok(Self {
            shared: Arc::new(Shared { place, schema: quoted, options, connect, connections, leases, changes, tasks }),
        })
    }

    /// Reads rows, and converts them.
    async fn read_rows<T>(
        &self,
        statement: impl Fn(&str) -> Statement,
        read: impl FnOnce(Vec<PgRow>) -> Result<T, DbError>,
    ) -> Result<T, StoreError> {
        let rows = self.shared.connections.rows(|| statement(&self.shared.schema)).await;
        rows.and_then(read).map_err(|error| self.shared.place.explain(error, Access::Read))
    }

    /// Executes a statement that does nothing the second time.
    async fn write_rows<T>(
        &self,
        statement: impl Fn(&str) -> Statement,
        read: impl FnOnce(Vec<PgRow>) -> Result<T, DbError>,
    ) -> Result<T, StoreError> {
        self.writes()?;
        let rows = self.shared.connections.rows(|| statement(&self.shared.schema)).await;
        rows.and_then(read).map_err(|error| self.shared.place.explain(error, Access::Write))
    }

    /// Executes a statement of leases on their own connection: searches and files may hold all others for minutes.
    async fn lease_rows(&self, statement: impl Fn(&str) -> Statement) -> Result<Vec<PgRow>, StoreError> {
        self.writes()?;
        let rows = self.shared.leases.rows(|| statement(&self.shared.schema)).await;
        rows.map_err(|error| self.shared.place.explain(error, Access::Write))
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
        written.map_err(|error| shared.place.explain(error, Access::Write))?;
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
            read(rows).map_err(|error| self.shared.place.explain(error, Access::Read))?;
            // A page with unreadable rows is filled up.
            if left.is_none_or(|left| count < left || Some(listed.len()) >= filter.limit) {
                return Ok(listed);
            }
        }
    }

    async fn list_pending(&self, filter: &PendingFilter) -> Result<Vec<PendingItem>, StoreError> {
        let mut after = filter.after.as_ref().map(|after| {
            let (run, since) = (owned(after.run.as_str()), crate::rows::number(after.since.0));
            (after.at.0, run, since, owned(after.call.as_str()))
        });
        let mut listed = Vec::new();
        loop {
            let left = filter.limit.map(|limit| limit - listed.len());
            let rows = self.read_rows(|schema| query::pending(schema, filter, after.as_ref(), left), Ok).await?;
            let place = rows.last().map(query::pending_place).transpose();
            after = place.map_err(|error| self.shared.place.explain(error, Access::Read))?;
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
        written.map_err(|error| place.explain(error, Access::Write))?;
        Ok(name)
    }

    async fn load_blob(&self, sha256: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Shared { connections, schema, place, options, .. } = &*self.shared;
        let read = match connections.acquire().await {
            Ok(mut db) => db.run(options.statement_timeout, async |db| blobs::read(db, schema, sha256).await).await,
            Err(error) => Err(error),
        };
        let Some(bytes) = read.map_err(|error| place.explain(error, Access::Read))? else { return Ok(None) };
        let name = sha256.to_owned();
        blobs::blocking(move || verify_content(&name, bytes)).await.map(Some)
    }

    async fn find_text(&self, search: &EventSearch) -> Result<EventMatches, StoreError> {
        let Shared { connections, schema, place, .. } = &*self.shared;
        let found = match connections.acquire().await {
            Ok(mut db) => db.run(search::LIMIT, async |db| search::search(db, schema, search).await).await,
            Err(error) => Err(error),
        };
        found.map_err(|error| place.explain(error, Access::Read))
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
    #[expect(clippy::disallowed_methods, reason = "the name does not affect a run's outcome")]
    let id = uuid::Uuid::now_v7().simple().to_string();
    id.get(12..).unwrap_or_default().to_owned()
}

/// Parses an address. Returns the name of its schema, too, which is not a parameter of the server.
fn parsed(url: &str) -> Result<(PgConnectOptions, Option<String>), StoreError> {
    // The errors of the parsers may contain the address, and so the password.
    let invalid = |reason: &str| StoreError::Unusable {
        message: format!("invalid address of a PostgreSQL database: {reason}; write postgres://user@host/database"),
    };
    let mut url: sqlx_core::Url = url.parse().map_err(|_| invalid("it is not a URL"))?;
    if !matches!(url.scheme(), "postgres" | "postgresql") {
        return Err(invalid("its scheme is not `postgres`"));
    }
    let mut schema = None;
    let rest: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    url.query_pairs_mut().clear().extend_pairs(rest.iter().filter(|(name, value)| {
        let is_schema = name == "schema";
        if is_schema {
            schema = Some(value.clone());
        }
        !is_schema
    }));
    let options = PgConnectOptions::from_url(&url).map_err(|_| invalid("a part of it is invalid"))?;
    Ok((options, schema))
}

/// Describes a database without its password.
fn database(options: &PgConnectOptions) -> String {
    let name = options.get_database().unwrap_or_else(|| options.get_username());
    match options.get_socket() {
        Some(socket) => format!("the PostgreSQL database `{name}` at {}", socket.display()),
        None => format!("the PostgreSQL database `{name}` at {}:{}", options.get_host(), options.get_port()),
    }
}

impl EventStore for PostgresStore {
    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.writes()?;
            let encoded = Encoded::new(run, append)?;
            self.append_encoded(run, &encoded).await
        })
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| query::read(schema, run, from, most),
            move |rows| query::events(&rows, run, from, most),
        ))
    }

    fn run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunSummary, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| {
                statement(format!("SELECT summary FROM {schema}.runs WHERE run = $1")).bind(owned(run.as_str()))
            },
            move |rows| {
                let row = rows.first().ok_or_else(|| no_such(run))?;
                query::summary(run.as_str(), get(row, 0)?)
            },
        ))
    }

    fn runs<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunSummary>, StoreError>> {
        Box::pin(self.list_runs(filter))
    }

    fn unreadable<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<(RunId, StoreError)>, StoreError>> {
        let after = filter.after.as_ref().map(|after| (after.started.0, owned(after.run.as_str())));
        Box::pin(self.read_rows(
            move |schema| query::runs(schema, filter, after.as_ref(), filter.limit),
            move |rows| {
                let mut unreadable = Vec::new();
                for row in &rows {
                    let run = crate::text::value(get(row, 1)?);
                    let error = query::summary(&run, get(row, 0)?).err();
                    let explain = |error| self.shared.place.explain(error, Access::Read);
                    unreadable.extend(error.map(|error| (RunId::from(run), explain(error))));
                }
                Ok(unreadable)
            },
        ))
    }

    fn pending<'a>(&'a self, filter: &'a PendingFilter) -> BoxFuture<'a, Result<Vec<PendingItem>, StoreError>> {
        Box::pin(self.list_pending(filter))
    }

    fn search<'a>(&'a self, search: &'a EventSearch) -> BoxFuture<'a, Result<EventMatches, StoreError>> {
        Box::pin(self.find_text(search))
    }

    fn accepted<'a>(&'a self, run: &'a RunId, signal: &'a SignalId) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| {
                let sql = format!(
                    "SELECT s.seq FROM {schema}.runs r LEFT JOIN {schema}.signals s ON s.key = r.key AND s.signal = $2
                     WHERE r.run = $1"
                );
                statement(sql).bind(owned(run.as_str())).bind(owned(signal.as_str()))
            },
            move |rows| {
                let row = rows.first().ok_or_else(|| no_such(run))?;
                Ok(get::<Option<i64>>(row, 0)?.map(seq))
            },
        ))
    }

    fn snapshot<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Snapshot>, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| {
                let sql = format!(
                    "SELECT s.next, s.version, s.content FROM {schema}.runs r
                     JOIN {schema}.snapshots s ON s.key = r.key WHERE r.run = $1"
                );
                statement(sql).bind(owned(run.as_str()))
            },
            |rows| {
                let Some(row) = rows.first() else { return Ok(None) };
                let version = get::<i64>(row, 1)?.try_into().unwrap_or_default();
                Ok(Some(Snapshot { next: seq(get(row, 0)?), version, content: get(row, 2)? }))
            },
        ))
    }

    fn saved_prompts<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<SavedPrompts>, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| {
                let sql = format!(
                    "SELECT p.first, p.next, p.version, p.content FROM {schema}.runs r
                     JOIN {schema}.saved_prompts p ON p.key = r.key WHERE r.run = $1 ORDER BY p.next"
                );
                statement(sql).bind(owned(run.as_str()))
            },
            |rows| {
                let part = |row: &PgRow| {
                    let version = get::<i64>(row, 2)?.try_into().unwrap_or_default();
                    let (from, next) = (seq(get(row, 0)?), seq(get(row, 1)?));
                    Ok(SavedPrompts { from, next, version, content: get(row, 3)? })
                };
                rows.iter().map(part).collect()
            },
        ))
    }

    fn sink_position<'a>(&'a self, run: &'a RunId, sink: &'a str) -> BoxFuture<'a, Result<Option<Seq>, StoreError>> {
        Box::pin(self.read_rows(move |schema| sinks::position(schema, run, sink), |rows| sinks::next(&rows)))
    }

    fn set_sink_position<'a>(
        &'a self,
        run: &'a RunId,
        sink: &'a str,
        next: Seq,
        done: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.write_rows(move |schema| sinks::set(schema, run, sink, next, done), |_| Ok(())))
    }

    fn take_sink<'a>(
        &'a self,
        sink: &'a str,
        owner: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunId>, StoreError>> {
        Box::pin(self.write_rows(move |schema| sinks::take(schema, sink, owner, limit), |rows| sinks::taken(&rows)))
    }

    fn remove<'a>(&'a self, runs: &'a [RunId]) -> BoxFuture<'a, Result<usize, StoreError>> {
        Box::pin(async move {
            let mut removed = 0;
            for run in runs {
                let remove =
                    |schema: &str| statement(format!("SELECT {schema}.remove_run($1)")).bind(owned(run.as_str()));
                let first = |rows: Vec<PgRow>| rows.first().map_or(Ok(false), |row| get(row, 0));
                removed += usize::from(self.write_rows(remove, first).await?);
            }
            Ok(removed)
        })
    }

    fn post<'a>(&'a self, mail: &'a InboundWebhook) -> BoxFuture<'a, Result<PostOutcome, StoreError>> {
        Box::pin(async move {
            let content = encode(mail)?;
            let outcome = |rows: Vec<PgRow>| {
                let row = rows.first().ok_or_else(|| DbError::unreadable("the outcome of a post", "it has no row"))?;
                mailbox::posted(row)
            };
            self.write_rows(|schema| mailbox::post(schema, mail, &content), outcome).await
        })
    }

    fn mail<'a>(
        &'a self,
        webhook: &'a str,
        identifier: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<InboundWebhook>, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| mailbox::oldest(schema, webhook, identifier, now),
            |rows| rows.first().map(|row| crate::rows::decode("a webhook", get(row, 0)?)).transpose(),
        ))
    }

    fn mailbox(&self) -> BoxFuture<'_, Result<Vec<MailboxEntry>, StoreError>> {
        Box::pin(
            self.read_rows(|schema| mailbox::entries(schema, None), |rows| rows.iter().map(mailbox::entry).collect()),
        )
    }

    fn mailbox_entry<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<Option<MailboxEntry>, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| mailbox::entries(schema, Some(mail)),
            |rows| rows.first().map(mailbox::entry).transpose(),
        ))
    }

    fn discard<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.write_rows(
            move |schema| {
                let sql = format!("DELETE FROM {schema}.mail WHERE id = $1 AND taken_by IS NULL");
                statement(sql).bind(owned(mail.as_str()))
            },
            |_| Ok(()),
        ))
    }

    fn timers<'a>(&'a self, filter: &'a TimerFilter) -> BoxFuture<'a, Result<Vec<Timer>, StoreError>> {
        Box::pin(
            self.read_rows(
                move |schema| timers::select(schema, filter),
                |rows| rows.iter().map(timers::timer).collect(),
            ),
        )
    }

    fn remove_timer<'a>(&'a self, id: &'a TriggerId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.write_rows(
            move |schema| {
                let sql = format!("DELETE FROM {schema}.timers WHERE id = $1 RETURNING id");
                statement(sql).bind(owned(id.as_str()))
            },
            |rows| Ok(!rows.is_empty()),
        ))
    }

    fn put_blob(&self, bytes: Vec<u8>, at: Timestamp) -> BoxFuture<'_, Result<String, StoreError>> {
        Box::pin(self.store_blob(bytes, at))
    }

    fn blob<'a>(&'a self, sha256: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(self.load_blob(sha256))
    }

    fn sweep_blobs(&self, before: Timestamp) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.write_rows(move |schema| blobs::sweep(schema, before), |rows| Ok(rows.len())))
    }

    fn entry<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, StoreError>> {
        Box::pin(self.read_rows(
            move |schema| entries::one(schema, kind, key),
            |rows| rows.first().map(entries::entry).transpose(),
        ))
    }

    fn entries<'a>(&'a self, filter: &'a EntryFilter) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        Box::pin(
            self.read_rows(
                move |schema| entries::select(schema, filter),
                |rows| rows.iter().map(entries::entry).collect(),
            ),
        )
    }

    fn put_entry<'a>(
        &'a self,
        kind: &'a str,
        key: &'a str,
        value: &'a Value,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            self.writes()?;
            let document = encode(value)?;
            // A repetition after a lost answer would find the entry changed.
            let put = || entries::put(&self.shared.schema, kind, key, &document, expected);
            let rows = self.shared.connections.rows_once(put).await;
            let revision = rows.and_then(|rows| rows.first().map(|row| get::<i64>(row, 0)).transpose());
            let revision = revision.map_err(|error| self.shared.place.explain(error, Access::Write))?;
            revision.and_then(|revision| revision.try_into().ok()).ok_or_else(|| entries::changed(kind, key))
        })
    }

    fn remove_entry<'a>(&'a self, kind: &'a str, key: &'a str, expected: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let remove = |schema: &str| entries::remove(schema, kind, key, expected);
            let has_changed = |rows: Vec<PgRow>| rows.first().map_or(Ok(false), |row| get(row, 0));
            if self.write_rows(remove, has_changed).await? { Err(entries::changed(kind, key)) } else { Ok(()) }
        })
    }

    fn acquire_lease(&self) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(self.new_lease())
    }

    fn renew_lease<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let ttl = self.shared.options.lease_ttl;
            match self.lease_rows(|schema| leases::renew(schema, owner, ttl)).await?.is_empty() {
                true => Err(StoreError::LeaseLapsed { owner: owner.to_owned() }),
                false => Ok(()),
            }
        })
    }

    fn is_lease_live<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.read_rows(move |schema| leases::find(schema, owner), |rows| Ok(!rows.is_empty())))
    }

    fn due<'a>(&'a self, filter: &'a DueFilter) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        Box::pin(async move {
            self.writes()?;
            // Not repeated if the connection is lost: the first try may have reserved runs, which the caller does not know.
            let rows = self.shared.connections.rows_once(|| leases::due(&self.shared.schema, filter)).await;
            let due = rows.and_then(|rows| leases::due_runs(&rows));
            due.map_err(|error| self.shared.place.explain(error, Access::Write))
        })
    }

    fn defer<'a>(&'a self, run: &'a RunId, next: Seq, deferral: &'a Deferral) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.write_rows(move |schema| leases::defer(schema, run, next, deferral), |_| Ok(())))
    }

    fn watch(&self, run: Option<&RunId>, watcher: Weak<dyn Watcher>) {
        self.shared.changes.watch(run, watcher);
    }
}
