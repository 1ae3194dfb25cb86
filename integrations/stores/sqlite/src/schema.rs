//! The tables, and their migrations.
//!
//! The format's number is the file's `user_version`. Step *n* of [`STEPS`] migrates format *n* to format *n* + 1, so a
//! new file takes all steps. A released step is never changed; a new format adds a step and a fixture of its own.

use positronic_core::store::StoreError;
use rusqlite::{Connection, TransactionBehavior};

use super::failure::{DbError, StoreFile};

/// Marks the file as a store of Positronic, for `file` and for programs that open it by mistake: `Posi`.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"Posi");

const STEPS: &[&str] = &[include_str!("schema.sql"), include_str!("schema_2.sql"), include_str!("schema_3.sql")];

/// Checks that the file is an event store, and returns whether it is new.
///
/// It writes nothing, so that another program's file stays as it is.
pub(super) fn is_new(db: &Connection, store_file: &StoreFile) -> Result<bool, DbError> {
    is_new_by(db, store_file, STEPS.len())
}

fn is_new_by(db: &Connection, store_file: &StoreFile, newest: usize) -> Result<bool, DbError> {
    let file = store_file.path.display();
    let unusable = |message| Err(DbError::Refused(StoreError::Unusable { message }));
    // A single statement, since another process may be creating the file.
    let sql = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
               FROM pragma_application_id, pragma_user_version";
    let (id, format, tables): (i32, i64, i64) =
        db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    match (id, format) {
        (0, 0) if tables == 0 => Ok(true),
        (APPLICATION_ID, format) if index(format) > newest => unusable(format!(
            "the event store `{file}` has format {format}, but this release reads only up to {newest}: use the \
             release that wrote it, or a newer one"
        )),
        // The first step writes both in one transaction.
        (APPLICATION_ID, 0) => unusable(format!(
            "the event store `{file}` lacks its format number: it is damaged, or another program has changed it. \
             Restore it from a backup"
        )),
        (APPLICATION_ID, _) => Ok(false),
        _ => unusable(format!(
            "`{file}` is a SQLite file of another program, not an event store; it was not changed. Name another \
             file"
        )),
    }
}

/// Returns whether the file has the newest format.
pub(super) fn is_current(db: &Connection) -> Result<bool, DbError> {
    Ok(format_of(db)? == STEPS.len())
}

/// Migrates the file to the newest format in one transaction.
pub(super) fn migrate(db: &mut Connection, store_file: &StoreFile) -> Result<(), DbError> {
    migrate_by(db, store_file, STEPS)
}

fn migrate_by(db: &mut Connection, store_file: &StoreFile, steps: &[&str]) -> Result<(), DbError> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated it while this one waited for the lock.
    is_new_by(&tx, store_file, steps.len())?;
    let format = format_of(&tx)?;
    if format < steps.len() {
        for step in steps.iter().skip(format) {
            tx.execute_batch(step)?;
        }
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", i64::try_from(steps.len()).unwrap_or(i64::MAX))?;
    }
    Ok(tx.commit()?)
}

fn format_of(db: &Connection) -> Result<usize, DbError> {
    let format: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(index(format))
}

fn index(format: i64) -> usize {
    usize::try_from(format).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const FIRST: &str = "CREATE TABLE things (thing TEXT); INSERT INTO things VALUES ('kept')";
    const SECOND: &str = "ALTER TABLE things ADD COLUMN size INTEGER; UPDATE things SET size = length(thing)";

    fn store_file() -> StoreFile {
        StoreFile { path: "runs.db".into(), busy_timeout: Duration::ZERO }
    }

    fn size(db: &Connection) -> rusqlite::Result<i64> {
        db.query_row("SELECT size FROM things WHERE thing = 'kept'", [], |row| row.get(0))
    }

    #[test]
    fn migration_applies_only_the_missing_steps() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate_by(&mut db, &store_file(), &[FIRST]).unwrap();
        assert_eq!(format_of(&db).unwrap(), 1);

        migrate_by(&mut db, &store_file(), &[FIRST, SECOND]).unwrap();
        migrate_by(&mut db, &store_file(), &[FIRST, SECOND]).unwrap();

        assert_eq!(format_of(&db).unwrap(), 2);
        assert_eq!(size(&db), Ok(4));
    }

    #[test]
    fn failed_migration_keeps_the_older_format() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate_by(&mut db, &store_file(), &[FIRST]).unwrap();

        let failed = migrate_by(&mut db, &store_file(), &[FIRST, SECOND, "UPDATE nothing SET size = 1"]);

        assert!(failed.is_err());
        assert_eq!(format_of(&db).unwrap(), 1);
        assert!(size(&db).is_err());
    }

    #[test]
    fn newer_format_is_refused() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate_by(&mut db, &store_file(), &[FIRST, SECOND]).unwrap();

        assert!(matches!(
            migrate_by(&mut db, &store_file(), &[FIRST]),
            Err(DbError::Refused(StoreError::Unusable { .. }))
        ));
    }
}
