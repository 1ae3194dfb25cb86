//! The contents of files, in chunks, so that the server and the connection hold only a part at once.

use futures::TryStreamExt as _;
use positronic_core::record::Timestamp;
use positronic_core::store::StoreError;
use sqlx_core::executor::Executor as _;
use sqlx_postgres::PgConnection;

use crate::connections::{Statement, get, statement, unnamed};
use crate::failure::DbError;

/// The size of a chunk in bytes.
const CHUNK: usize = 1 << 20;

/// Returns the statement that updates the time of a stored file, if there is one.
pub(crate) fn touch(schema: &str, name: &str, at: Timestamp) -> Statement {
    let sql = format!("UPDATE {schema}.blobs SET at = greatest(at, $2) WHERE sha256 = $1 RETURNING id");
    statement(sql).bind(name.to_owned()).bind(at.0)
}

/// Stores a new file in one transaction. If another process stores it first, only its time is updated.
pub(crate) async fn put(
    db: &mut PgConnection,
    schema: &str,
    name: &str,
    bytes: &[u8],
    at: Timestamp,
) -> Result<(), DbError> {
    db.execute("BEGIN").await?;
    let sql = format!(
        "INSERT INTO {schema}.blobs AS b (sha256, size, at) VALUES ($1, $2, $3)
         ON CONFLICT (sha256) DO UPDATE SET at = greatest(b.at, excluded.at) RETURNING id, xmax = 0"
    );
    let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let row = unnamed(sql).bind(name.to_owned()).bind(size).bind(at.0).fetch_one(&mut *db).await?;
    let (id, is_new): (i64, bool) = (get(&row, 0)?, get(&row, 1)?);
    for (number, chunk) in (0_i32..).zip(bytes.chunks(CHUNK)).take_while(|_| is_new) {
        let sql = format!("INSERT INTO {schema}.blob_chunks (blob, number, bytes) VALUES ($1, $2, $3)");
        unnamed(sql).bind(id).bind(number).bind(chunk).execute(&mut *db).await?;
    }
    db.execute("COMMIT").await?;
    Ok(())
}

/// Returns a file. One statement reads all chunks, so that a concurrent sweep removes none of them.
pub(crate) async fn read(db: &mut PgConnection, schema: &str, name: &str) -> Result<Option<Vec<u8>>, DbError> {
    let sql = format!(
        "SELECT b.size, c.bytes FROM {schema}.blobs b LEFT JOIN {schema}.blob_chunks c ON c.blob = b.id
         WHERE b.sha256 = $1 ORDER BY c.number"
    );
    db.execute("BEGIN READ ONLY").await?;
    let mut rows = unnamed(sql).bind(name.to_owned()).fetch(&mut *db);
    let mut found: Option<Vec<u8>> = None;
    while let Some(row) = rows.try_next().await? {
        let size = usize::try_from(get::<i64>(&row, 0)?).unwrap_or_default();
        let bytes = found.get_or_insert_with(|| Vec::with_capacity(size.min(positronic_core::store::LARGEST_BLOB)));
        bytes.extend_from_slice(get::<Option<&[u8]>>(&row, 1)?.unwrap_or_default());
    }
    drop(rows);
    db.execute("COMMIT").await?;
    Ok(found)
}

/// Returns the statement that removes files without references. Its number of rows is the number of files.
pub(crate) fn sweep(schema: &str, before: Timestamp) -> Statement {
    let sql = format!(
        "DELETE FROM {schema}.blobs b
         WHERE b.at < $1 AND NOT EXISTS (SELECT FROM {schema}.run_blobs r WHERE r.sha256 = b.sha256) RETURNING b.id"
    );
    statement(sql).bind(before.0)
}

/// Runs work that takes long without yielding, such as hashing 32 MiB, on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let failed = |error: tokio::task::JoinError| StoreError::Failed { message: error.to_string() };
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}
