//! Opening the file.

use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::failure::{Place, Trouble};
use super::options::{Durability, SqliteOptions};
use super::schema;
use crate::private;
use crate::store::StoreError;

/// How often a file is tried again that another process is just making.
const TRIES: u32 = 50;
/// How many statements a connection keeps prepared.
const STATEMENTS: usize = 128;
/// How large the file that holds the last commits may stay after a burst.
const JOURNAL_BYTES: i64 = 16 << 20;
/// After how many pages in it SQLite copies them by itself, within a commit: 32 MB. Mostly the thread that copies was faster.
const JOURNAL_PAGES: i64 = 16_000;

/// Opens the file to write, makes it or brings it to the newest format.
pub(super) fn to_write(options: &SqliteOptions, place: &Place) -> Result<Connection, Trouble> {
    // SQLite would make it readable by all, and gives the files beside it the permissions that it has. What fails here fails
    // below, with SQLite's reason.
    _ = private::options().write(true).create_new(true).open(&place.path);
    let create = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut db = Connection::open_with_flags(&place.path, create | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    prepare(&db, place)?;
    let new = schema::is_new(&db, place)?;
    // SQLite opens a file that it may not write as one to read.
    if db.is_readonly(rusqlite::MAIN_DB)? {
        return Err(StoreError::Unusable { message: place.not_writable() }.into());
    }
    if new {
        // A commit writes whole pages, and an append changes a few rows; a table that is empty takes a page (0008).
        db.pragma_update(None, "page_size", 2048)?;
        db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    write_ahead(&db, place)?;
    sync(&db, options)?;
    db.pragma_update(None, "journal_size_limit", JOURNAL_BYTES)?;
    db.pragma_update(None, "wal_autocheckpoint", JOURNAL_PAGES)?;
    schema::migrate(&mut db, place)?;
    if new && let Err(error) = db.execute_batch("VACUUM") {
        tracing::debug!(%error, "another process writes to the new file already, so it keeps the pages that its making left");
    }
    Ok(db)
}

/// Opens the file, which another connection has made ready, to copy its log of commits into it.
pub(super) fn to_copy(options: &SqliteOptions, place: &Place) -> Result<Connection, Trouble> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(&place.path, flags)?;
    prepare(&db, place)?;
    sync(&db, options)?;
    Ok(db)
}

/// Says when the system is told to bring to the disk what was written.
fn sync(db: &Connection, options: &SqliteOptions) -> Result<(), Trouble> {
    let synchronous = match options.durability {
        Durability::ProcessCrash => "NORMAL",
        Durability::PowerLoss => "FULL",
    };
    db.pragma_update(None, "synchronous", synchronous)?;
    // Only where the system has a sync that stops short of the disk does this change anything.
    db.pragma_update(None, "fullfsync", options.durability == Durability::PowerLoss)?;
    Ok(db.pragma_update(None, "checkpoint_fullfsync", true)?)
}

/// Opens the file to read.
pub(super) fn to_read(place: &Place) -> Result<Connection, Trouble> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(&place.path, flags)?;
    prepare(&db, place)?;
    let is_of_use = match schema::is_new(&db, place) {
        Ok(new) => !new && schema::is_current(&db)?,
        // Even a reader has to write beside the file.
        Err(trouble) if trouble.is_read_only() => {
            return Err(StoreError::Unusable { message: place.no_room_beside() }.into());
        }
        Err(trouble) => return Err(trouble),
    };
    if !is_of_use {
        return Err(StoreError::Older { store: place.path.display().to_string() }.into());
    }
    Ok(db)
}

fn prepare(db: &Connection, place: &Place) -> Result<(), Trouble> {
    db.busy_timeout(place.patience)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(db.pragma_update(None, "temp_store", "MEMORY")?)
}

/// Lets readers and the writer not wait for each other. While another process does the same, SQLite refuses at once.
fn write_ahead(db: &Connection, place: &Place) -> Result<(), Trouble> {
    let pause = Duration::from_millis(1).max(place.patience / TRIES);
    for tried in 1.. {
        let mode = db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode.map_err(Trouble::from) {
            Ok(mode) if mode == "wal" => break,
            Ok(_) => {
                let file = place.path.display();
                let message = format!("the file system of `{file}` has no shared memory: name a file on another one");
                return Err(StoreError::Unusable { message }.into());
            }
            Err(trouble) if trouble.is_busy() && tried < TRIES => std::thread::sleep(pause),
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(())
}
