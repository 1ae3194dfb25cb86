//! Opening connections to the database file.

use std::time::Duration;

use positronic_core::private;
use positronic_core::store::StoreError;
use rusqlite::{Connection, OpenFlags};

use super::failure::{DbError, StoreFile};
use super::options::{Durability, SqliteOptions};
use super::schema;

/// How often switching to WAL is retried while another process creates the file.
const TRIES: u32 = 50;
/// Capacity of a connection's cache of prepared statements.
const STATEMENTS: usize = 128;
/// To what size SQLite truncates the write-ahead log (WAL) after a burst, in bytes.
const JOURNAL_BYTES: i64 = 16 << 20;
/// At how many WAL pages SQLite checkpoints within a commit: 32 MB. The checkpoint thread is usually earlier.
const JOURNAL_PAGES: i64 = 16_000;

/// Opens the file for writing; creates it or migrates it to the newest format.
pub(super) fn to_write(options: &SqliteOptions, store_file: &StoreFile) -> Result<Connection, DbError> {
    // SQLite would create it readable by all users, and its side files inherit its permissions. A failure here recurs
    // below, with SQLite's reason.
    _ = private::options().write(true).create_new(true).open(&store_file.path);
    let create = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut db = Connection::open_with_flags(&store_file.path, create | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    prepare(&db, store_file)?;
    let new = schema::is_new(&db, store_file)?;
    // SQLite opens a file that it cannot write in read-only mode.
    if db.is_readonly(rusqlite::MAIN_DB)? {
        return Err(StoreError::Unusable { message: store_file.not_writable() }.into());
    }
    if new {
        // A commit writes full pages and an append changes few rows; an empty table takes a page (0008).
        db.pragma_update(None, "page_size", 2048)?;
        db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    write_ahead(&db, store_file)?;
    sync(&db, options)?;
    db.pragma_update(None, "journal_size_limit", JOURNAL_BYTES)?;
    db.pragma_update(None, "wal_autocheckpoint", JOURNAL_PAGES)?;
    schema::migrate(&mut db, store_file)?;
    if new && let Err(error) = db.execute_batch("VACUUM") {
        tracing::debug!(%error, "skipped VACUUM of the new store: another process already writes to it");
    }
    Ok(db)
}

/// Opens the prepared file for the thread that checkpoints it.
pub(super) fn to_checkpoint(options: &SqliteOptions, store_file: &StoreFile) -> Result<Connection, DbError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(&store_file.path, flags)?;
    prepare(&db, store_file)?;
    sync(&db, options)?;
    Ok(db)
}

/// Sets when SQLite syncs written data to the disk.
fn sync(db: &Connection, options: &SqliteOptions) -> Result<(), DbError> {
    let synchronous = match options.durability {
        Durability::ProcessCrash => "NORMAL",
        Durability::PowerLoss => "FULL",
    };
    db.pragma_update(None, "synchronous", synchronous)?;
    // Affects only systems whose fsync does not reach the disk (macOS).
    db.pragma_update(None, "fullfsync", options.durability == Durability::PowerLoss)?;
    Ok(db.pragma_update(None, "checkpoint_fullfsync", true)?)
}

/// Opens the file read-only.
pub(super) fn to_read(store_file: &StoreFile) -> Result<Connection, DbError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(&store_file.path, flags)?;
    prepare(&db, store_file)?;
    let is_of_use = match schema::is_new(&db, store_file) {
        Ok(new) => !new && schema::is_current(&db)?,
        // In WAL mode a reader also writes side files.
        Err(db_error) if db_error.is_read_only() => {
            return Err(StoreError::Unusable { message: store_file.read_only_folder() }.into());
        }
        Err(db_error) => return Err(db_error),
    };
    if !is_of_use {
        return Err(StoreError::Older { store: store_file.path.display().to_string() }.into());
    }
    Ok(db)
}

fn prepare(db: &Connection, store_file: &StoreFile) -> Result<(), DbError> {
    db.busy_timeout(store_file.busy_timeout)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(db.pragma_update(None, "temp_store", "MEMORY")?)
}

/// Switches to WAL mode, in which readers and the writer do not block each other. While another process does the same,
/// SQLite fails at once, without its busy timeout.
fn write_ahead(db: &Connection, store_file: &StoreFile) -> Result<(), DbError> {
    let pause = Duration::from_millis(1).max(store_file.busy_timeout / TRIES);
    for tried in 1.. {
        let mode = db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode.map_err(DbError::from) {
            Ok(mode) if mode == "wal" => break,
            Ok(_) => {
                let file = store_file.path.display();
                let message =
                    format!("the file system of `{file}` does not support shared memory: use a path on another one");
                return Err(StoreError::Unusable { message }.into());
            }
            Err(db_error) if db_error.is_busy() && tried < TRIES => std::thread::sleep(pause),
            Err(db_error) => return Err(db_error),
        }
    }
    Ok(())
}
