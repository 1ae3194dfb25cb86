//! The pool of connections.
//!
//! Unlike the pool of sqlx it sends nothing when a connection is taken or returned: an append is one round trip. A
//! connection is used again only if its last statement has ended, so one whose caller was cancelled is closed.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sqlx_core::arguments::Arguments as _;
use sqlx_core::connection::{ConnectOptions as _, Connection as _};
use sqlx_core::encode::Encode;
use sqlx_core::executor::Executor as _;
use sqlx_core::query::Query;
use sqlx_core::row::Row as _;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_core::types::Type;
use sqlx_postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow, Postgres};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::failure::{DbError, explained};

/// After which pause a connection is checked before its next use: the server or a firewall may have closed it.
const UNCHECKED: Duration = Duration::from_secs(1);
/// How much longer than the server this waits for an answer, so that the server's own timeout says what happened.
const GRACE: Duration = Duration::from_secs(2);
/// How long to wait between attempts to connect.
const RETRY: Duration = Duration::from_millis(100);
/// How often a statement is repeated that the server undid because of another one.
const TRIES: usize = 5;

/// A statement with its values.
pub(crate) type Statement = Query<'static, Postgres, PgArguments>;

/// Creates a statement. The text must contain no values, only the name of the schema.
pub(crate) fn statement(sql: String) -> Statement {
    sqlx_core::query::query(AssertSqlSafe(sql))
}

/// Creates a statement without a name, for a transaction that has begun: it is parsed each time, and also works behind a
/// pooler that does not know prepared statements.
pub(crate) fn unnamed(sql: String) -> Statement {
    statement(sql).persistent(false)
}

/// A statement that is built from a filter.
pub(crate) struct Select {
    sql: String,
    values: PgArguments,
    count: usize,
}

impl Select {
    /// Begins a statement.
    pub(crate) fn new(sql: String) -> Self {
        Self { sql, values: PgArguments::default(), count: 0 }
    }

    /// Continues the statement.
    pub(crate) fn push(&mut self, sql: impl AsRef<str>) -> &mut Self {
        self.sql.push_str(sql.as_ref());
        self
    }

    /// Continues the statement with a value.
    pub(crate) fn bind<T>(&mut self, value: T) -> &mut Self
    where
        T: for<'t> Encode<'t, Postgres> + Type<Postgres>,
    {
        match self.values.add(value) {
            Ok(()) => self.count += 1,
            Err(error) => tracing::error!(%error, "cannot encode a value of a filter"),
        }
        self.sql.push('$');
        self.sql.push_str(&self.count.to_string());
        self
    }

    /// Returns the statement.
    pub(crate) fn statement(self) -> Statement {
        sqlx_core::query::query_with(AssertSqlSafe(self.sql), self.values)
    }
}

/// A pool of connections.
#[derive(Debug)]
pub(crate) struct Connections {
    options: PgConnectOptions,
    places: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<IdleConnection>>>,
    connect_timeout: Duration,
    answer_timeout: Duration,
    /// The SQL that begins the transaction of each statement, if statements are not prepared.
    begin: Option<Arc<str>>,
}

#[derive(Debug)]
struct IdleConnection {
    db: PgConnection,
    since: Instant,
}

impl Connections {
    /// Creates a pool without connections.
    pub(crate) fn new(
        options: PgConnectOptions,
        most: usize,
        connect_timeout: Duration,
        statement_timeout: Duration,
    ) -> Self {
        let places = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        let answer_timeout = statement_timeout + GRACE;
        Self { options, places, idle: Arc::default(), connect_timeout, answer_timeout, begin: None }
    }

    /// Executes each statement without preparing it, in a transaction that `begin` starts: a pooler in transaction mode may give
    /// two transactions two connections of the server.
    pub(crate) fn unprepared(self, begin: String) -> Self {
        Self { begin: Some(begin.into()), ..self }
    }

    /// Takes a connection, or opens one.
    pub(crate) async fn acquire(&self) -> Result<Connection, DbError> {
        let deadline = Instant::now() + self.connect_timeout;
        let place = tokio::time::timeout_at(deadline, Arc::clone(&self.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            let limit = self.connect_timeout;
            return Err(DbError::Unconnected(format!("all connections of this store were in use for {limit:?}")));
        };
        let (idle, limit) = (Arc::clone(&self.idle), self.answer_timeout);
        let begin = self.begin.clone();
        let taken = |db| Connection { db: Some(db), clean: true, limit, idle, begin, _place: place };
        while let Some(mut found) = self.pop() {
            if found.since.elapsed() < UNCHECKED {
                return Ok(taken(found.db));
            }
            if matches!(tokio::time::timeout_at(deadline, found.db.ping()).await, Ok(Ok(()))) {
                return Ok(taken(found.db));
            }
        }
        Ok(taken(self.connect(deadline).await?))
    }

    fn pop(&self) -> Option<IdleConnection> {
        self.idle.lock().pop()
    }

    /// Connects, and waits for a server that is starting.
    async fn connect(&self, deadline: Instant) -> Result<PgConnection, DbError> {
        loop {
            let reason = match tokio::time::timeout_at(deadline, self.options.connect()).await {
                Ok(Ok(db)) => return Ok(db),
                Ok(Err(error)) => {
                    let reason = explained(&error);
                    if !is_starting(&error) {
                        return Err(DbError::Unconnected(reason));
                    }
                    reason
                }
                Err(_) => format!("it did not answer within {:?}", self.connect_timeout),
            };
            if Instant::now() + RETRY >= deadline {
                return Err(DbError::Unconnected(reason));
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Executes a statement that may be repeated: one that reads, or one that does nothing the second time. It is
    /// repeated once if the connection is lost.
    pub(crate) async fn rows(&self, statement: impl Fn() -> Statement) -> Result<Vec<PgRow>, DbError> {
        let first = self.rows_once(&statement).await;
        match first {
            Err(error) if error.is_lost() => self.rows_once(&statement).await,
            other => other,
        }
    }

    /// Executes a statement, and repeats it only if the server undid it.
    pub(crate) async fn rows_once(&self, statement: impl Fn() -> Statement) -> Result<Vec<PgRow>, DbError> {
        for _ in 1..TRIES {
            match self.acquire().await?.rows(statement()).await {
                Err(error) if error.is_transient() => {}
                other => return other,
            }
        }
        self.acquire().await?.rows(statement()).await
    }
}

/// Returns whether a server may accept a connection soon.
fn is_starting(error: &sqlx_core::Error) -> bool {
    match error {
        // A refused certificate is refused again.
        sqlx_core::Error::Io(error) => error.kind() != std::io::ErrorKind::InvalidData,
        // It starts, stops or recovers, or has too many connections.
        sqlx_core::Error::Database(error) => {
            error.code().is_some_and(|code| code.starts_with("57P") || code == "53300")
        }
        _ => false,
    }
}

/// A connection. On drop it returns to the pool if it can be used again.
#[derive(Debug)]
pub(crate) struct Connection {
    db: Option<PgConnection>,
    /// Whether no statement is running and no transaction is open.
    clean: bool,
    limit: Duration,
    idle: Arc<Mutex<Vec<IdleConnection>>>,
    begin: Option<Arc<str>>,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    /// Executes one statement, which commits when it ends.
    pub(crate) async fn rows(&mut self, statement: Statement) -> Result<Vec<PgRow>, DbError> {
        let (limit, begin) = (self.limit, self.begin.clone());
        self.run(limit, async |db| {
            let Some(begin) = begin else { return Ok(statement.fetch_all(db).await?) };
            db.execute(AssertSqlSafe(&*begin)).await?;
            let rows = statement.persistent(false).fetch_all(&mut *db).await?;
            db.execute("COMMIT").await?;
            Ok(rows)
        })
        .await
    }

    /// Runs statements on the connection, at most for a time. They must leave no transaction open if they succeed.
    pub(crate) async fn run<T>(
        &mut self,
        limit: Duration,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let Some(db) = &mut self.db else { return Err(DbError::Lost("it is closed".to_owned())) };
        self.clean = false;
        let done = tokio::time::timeout(limit, work(db)).await;
        let done = done.unwrap_or_else(|_| Err(DbError::Lost(format!("no answer within {limit:?}"))));
        self.clean = done.is_ok();
        done
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(db) = self.db.take().filter(|_| self.clean) {
            self.idle.lock().push(IdleConnection { db, since: Instant::now() });
        }
    }
}

/// Reads a column.
pub(crate) fn get<'r, T>(row: &'r PgRow, column: usize) -> Result<T, DbError>
where
    T: sqlx_core::decode::Decode<'r, Postgres> + Type<Postgres>,
{
    Ok(row.try_get(column)?)
}
