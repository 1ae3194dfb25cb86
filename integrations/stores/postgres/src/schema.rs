//! The schema with the tables, and its migrations.
//!
//! A released migration is never changed; a new format adds a file. Functions find their tables by the schema in which
//! they were created.

use std::borrow::Cow;
use std::time::Duration;

use positronic_core::store::StoreError;
use sqlx_core::connection::ConnectOptions as _;
use sqlx_core::executor::Executor as _;
use sqlx_core::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx_core::query_scalar::query_scalar;
use sqlx_core::sql_str::{AssertSqlSafe, SqlSafeStr as _};
use sqlx_postgres::{PgConnectOptions, PgConnection, Postgres};

use crate::connections::{get, unnamed};
use crate::failure::{DatabaseName, DbError, POOLER, explained};

/// The migrations in their order: description and statements.
const MIGRATIONS: &[(&str, &str)] = &[
    ("store", include_str!("../migrations/0001_store.sql")),
    ("figures", include_str!("../migrations/0002_figures.sql")),
    ("models", include_str!("../migrations/0003_models.sql")),
];
/// The oldest supported server.
const OLDEST_SERVER: i32 = 130_000;
/// The longest name of a schema in bytes.
const MAX_NAME: usize = 63;
/// How often a process asks for the lock that it holds while it creates or migrates a schema.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// Quotes the name of a schema.
pub(crate) fn quoted(name: &str) -> Result<String, StoreError> {
    if name.is_empty() || name.len() > MAX_NAME || name.contains('\0') {
        let message = format!("`{name}` cannot be the name of a schema: it must have 1 to {MAX_NAME} bytes");
        return Err(StoreError::Unusable { message });
    }
    Ok(format!("\"{}\"", name.replace('"', "\"\"")))
}

/// What may be changed when a store is opened.
#[derive(Clone, Copy)]
pub(crate) struct SchemaChange {
    pub(crate) read_only: bool,
    pub(crate) search_index: bool,
    /// Whether the connection keeps its session between transactions, as a migration needs it.
    pub(crate) is_prepared: bool,
}

/// Checks that the store can be used, and creates or migrates it if it may be written.
pub(crate) async fn prepare(
    options: &PgConnectOptions,
    place: &DatabaseName,
    change: SchemaChange,
) -> Result<(), DbError> {
    let SchemaChange { read_only, search_index, is_prepared } = change;
    let mut db = options.connect().await.map_err(|error| refused_connection(place, &error))?;
    db.execute("BEGIN READ ONLY").await?;
    check_server(&mut db, place).await?;
    let schema = quoted(&place.schema)?;
    let found = format_of(&mut db, &schema).await?;
    db.execute("COMMIT").await?;
    if found > newest() {
        let message = format!(
            "the event store in {place} has format {found}, but this release reads only up to {}: use the release \
             that wrote it, or a newer one",
            newest()
        );
        return Err(StoreError::Unusable { message }.into());
    }
    if read_only {
        return if found == newest() { Ok(()) } else { Err(StoreError::Older { store: place.to_string() }.into()) };
    }
    if !is_prepared && found < newest() {
        let message = format!(
            "cannot create or migrate the event store in {place} through a pooler: open it once with the address of the \
             server itself, without `prepared_statements=false`"
        );
        return Err(StoreError::Unusable { message }.into());
    }
    if found < newest() {
        migrate(&mut db, place, &schema).await?;
    }
    if search_index && is_prepared {
        index_text(&mut db, place, &schema).await?;
    }
    Ok(())
}

fn newest() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Returns the error for the first connection, which may be wrong for ever.
fn refused_connection(place: &DatabaseName, error: &sqlx_core::Error) -> DbError {
    let advice = match error {
        sqlx_core::Error::Database(error) => match error.code().as_deref() {
            Some(code) if code.starts_with("28") => Some("check the user and the password of its address"),
            Some("3D000") => Some("create the database first"),
            // PgBouncer refuses the parameters of a session.
            Some("08P01") => Some(POOLER),
            _ => None,
        },
        sqlx_core::Error::Tls(_) | sqlx_core::Error::Configuration(_) if cfg!(not(feature = "tls")) => {
            Some("encrypted connections need the feature `tls` of positronic-postgres")
        }
        sqlx_core::Error::Tls(_) | sqlx_core::Error::Configuration(_) => Some(
            "check `sslmode` and `sslrootcert` of its address, and whether the server accepts encrypted connections",
        ),
        sqlx_core::Error::Io(io) if io.kind() == std::io::ErrorKind::InvalidData => None,
        error => return DbError::Unconnected(error.to_string()),
    };
    let advice = advice.map_or_else(String::new, |advice| format!("; {advice}"));
    let message = format!("cannot open the event store in {}: {}{advice}", place.database, explained(error));
    StoreError::Unusable { message }.into()
}

async fn check_server(db: &mut PgConnection, place: &DatabaseName) -> Result<(), DbError> {
    let encoding = unnamed("SELECT current_setting('server_encoding')".to_owned()).fetch_one(&mut *db).await?;
    let version = unnamed("SELECT current_setting('server_version_num')::integer".to_owned()).fetch_one(db).await?;
    let (encoding, version): (String, i32) = (get(&encoding, 0)?, get(&version, 0)?);
    if encoding != "UTF8" {
        let message =
            format!("{} has the encoding {encoding}; an event store needs a database with UTF8", place.database);
        return Err(StoreError::Unusable { message }.into());
    }
    if version < OLDEST_SERVER {
        let (found, oldest) = (version / 10_000, OLDEST_SERVER / 10_000);
        let message = format!("{} is PostgreSQL {found}; an event store needs {oldest} or later", place.database);
        return Err(StoreError::Unusable { message }.into());
    }
    Ok(())
}

/// Returns the number of the last migration; 0 if there is no store.
async fn format_of(db: &mut PgConnection, schema: &str) -> Result<i64, DbError> {
    let table = format!("{schema}._sqlx_migrations");
    let exists = unnamed("SELECT to_regclass($1) IS NOT NULL".to_owned()).bind(table.clone());
    if !get::<bool>(&exists.fetch_one(&mut *db).await?, 0)? {
        return Ok(0);
    }
    let found = unnamed(format!("SELECT coalesce(max(version), 0) FROM {table}")).fetch_one(db).await?;
    get(&found, 0)
}

/// Waits for the lock that a process holds while it creates or migrates a schema.
///
/// It asks again and again: a session that waits inside of a statement keeps a snapshot, for whose end the creation of the
/// search index waits, and that is a deadlock.
async fn lock(db: &mut PgConnection) -> Result<(), DbError> {
    let sql = "SELECT pg_try_advisory_lock(hashtext('positronic'))";
    while !query_scalar::<Postgres, bool>(sql).fetch_one(&mut *db).await? {
        tokio::time::sleep(LOCK_POLL).await;
    }
    Ok(())
}

async fn migrate(db: &mut PgConnection, place: &DatabaseName, schema: &str) -> Result<(), DbError> {
    db.execute("SET statement_timeout = 0").await?;
    lock(db).await?;
    let exists: bool = query_scalar::<Postgres, _>("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)")
        .bind(&place.schema)
        .fetch_one(&mut *db)
        .await?;
    if !exists {
        db.execute(AssertSqlSafe(format!("CREATE SCHEMA {schema}"))).await?;
    }
    db.execute(AssertSqlSafe(format!("SET search_path TO {schema}"))).await?;
    let steps = (1..).zip(MIGRATIONS).map(|(version, (description, sql))| {
        Migration::new(version, Cow::Borrowed(*description), MigrationType::Simple, (*sql).into_sql_str(), false)
    });
    let migrator = Migrator::with_migrations(steps.collect());
    let migrated = migrator.run_direct(None, &mut *db, false).await;
    migrated.map_err(|error| match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => DbError::from(error),
        error => {
            let message = format!("cannot migrate the event store in {place}: {error}");
            StoreError::Unusable { message }.into()
        }
    })?;
    db.execute("SELECT pg_advisory_unlock_all()").await?;
    Ok(())
}

/// Creates the index of trigrams, without blocking appends.
async fn index_text(db: &mut PgConnection, place: &DatabaseName, schema: &str) -> Result<(), DbError> {
    db.execute("SET statement_timeout = 0").await?;
    lock(db).await?;
    let name = format!("{schema}.events_by_text");
    let sql = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)";
    let valid: Option<bool> = query_scalar::<Postgres, _>(sql).bind(&name).fetch_optional(&mut *db).await?;
    if valid != Some(true) {
        let created = db.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm").await;
        created.map_err(|error| StoreError::Unusable {
            message: format!(
                "cannot create the search index in {place}: {error}. Let an administrator execute `CREATE EXTENSION \
                 pg_trgm`, or open the store without a search index"
            ),
        })?;
        let sql = "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                   WHERE e.extname = 'pg_trgm'";
        let operators: String = query_scalar::<Postgres, _>(sql).fetch_one(&mut *db).await?;
        // A build that failed has left an invalid index.
        db.execute(AssertSqlSafe(format!("DROP INDEX IF EXISTS {name}"))).await?;
        let sql = format!(
            "CREATE INDEX CONCURRENTLY events_by_text ON {schema}.events USING gin (line {operators}.gin_trgm_ops)"
        );
        db.execute(AssertSqlSafe(sql)).await?;
    }
    db.execute("SELECT pg_advisory_unlock_all()").await?;
    Ok(())
}
