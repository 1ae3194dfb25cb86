//! The tables, and their migrations.
//!
//! The format's number is the file's `user_version`. Step *n* of [`STEPS`] migrates format *n* to format *n* + 1, so a
//! new file takes all steps. A released step is never changed; a new format adds a step and a fixture of the format
//! before it.

use rusqlite::{Connection, TransactionBehavior};

use super::failure::{DbError, StoreFile};
use crate::store::StoreError;

/// Marks the file as a store of Positronic, for `file` and for programs that open it by mistake: `Posi`.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"Posi");

const STEPS: &[&str] = &["
CREATE TABLE runs (
    key INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    next INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    change INTEGER NOT NULL,
    status TEXT NOT NULL,
    brain TEXT NOT NULL,
    user TEXT,
    conversation TEXT,
    converses INTEGER NOT NULL,
    started INTEGER NOT NULL,
    at INTEGER NOT NULL,
    wake INTEGER,
    summary TEXT NOT NULL
) STRICT;
CREATE INDEX runs_by_start ON runs (started, run);
CREATE INDEX runs_by_status ON runs (status, started, run);
CREATE INDEX runs_by_user ON runs (user, started, run) WHERE user IS NOT NULL;
CREATE INDEX runs_by_conversation ON runs (conversation, started, run) WHERE conversation IS NOT NULL;
CREATE INDEX runs_by_wake ON runs (wake) WHERE wake IS NOT NULL;
CREATE INDEX runs_by_change ON runs (change);

-- A run's events are contiguous: id is the run's key times 2^32, plus the event's number.
CREATE TABLE events (id INTEGER PRIMARY KEY, line TEXT NOT NULL) STRICT;

CREATE TABLE snapshots (
    run INTEGER PRIMARY KEY,
    next INTEGER NOT NULL,
    version INTEGER NOT NULL,
    content TEXT NOT NULL
) STRICT;

-- The index has the order of the list. The run is stored as its key and as its id for that order; the brain's title
-- is repeated here, so that the list reads no run rows.
CREATE TABLE pending (
    id INTEGER PRIMARY KEY,
    key INTEGER NOT NULL,
    at INTEGER NOT NULL,
    run TEXT NOT NULL,
    brain TEXT NOT NULL,
    since INTEGER NOT NULL,
    person INTEGER NOT NULL,
    call TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    kind TEXT NOT NULL
) STRICT;
CREATE INDEX pending_by_age ON pending (at, run, since, id, person);
CREATE INDEX pending_of_run ON pending (key);

CREATE TABLE waits (
    webhook TEXT NOT NULL,
    identifier TEXT NOT NULL,
    pending INTEGER NOT NULL,
    PRIMARY KEY (webhook, identifier, pending)
) STRICT, WITHOUT ROWID;
CREATE INDEX waits_of_pending ON waits (pending);

-- A delivered webhook keeps its id until it expires, without its content.
CREATE TABLE mail (
    id TEXT PRIMARY KEY,
    webhook TEXT NOT NULL,
    identifier TEXT NOT NULL,
    at INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    taken_by TEXT,
    taken_at INTEGER,
    content TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_to_take ON mail (webhook, identifier, at, id) WHERE taken_by IS NULL;
CREATE INDEX mail_by_expiry ON mail (expires);

-- Continues the numbers of changes after the rows with the last ones are removed.
CREATE TABLE counter (change INTEGER NOT NULL) STRICT;
INSERT INTO counter VALUES (0);
", "
-- The contents of files; at is the time of their last storing.
CREATE TABLE blobs (id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;

-- The files that runs reference, by the runs' keys.
CREATE TABLE blob_refs (sha256 TEXT NOT NULL, run INTEGER NOT NULL, PRIMARY KEY (sha256, run)) STRICT, WITHOUT ROWID;
CREATE INDEX blob_refs_of_run ON blob_refs (run);
", "
-- Timers that start prompts. The columns override the document.
CREATE TABLE timers (
    id TEXT PRIMARY KEY,
    due INTEGER NOT NULL,
    fired INTEGER NOT NULL,
    conversation TEXT,
    user TEXT,
    origin TEXT NOT NULL,
    content TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_by_due ON timers (due, id);
CREATE INDEX timers_of_conversation ON timers (conversation) WHERE conversation IS NOT NULL;
CREATE INDEX timers_of_user ON timers (user) WHERE conversation IS NULL AND user IS NOT NULL;
", "
-- The signals that a run accepted, by its key, with the number of the event.
CREATE TABLE signals (
    run INTEGER NOT NULL,
    signal TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (run, signal)
) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO signals
    SELECT id >> 32, signal, id & 4294967295 FROM (
        SELECT id, CASE WHEN json_valid(line) THEN
            coalesce(json_extract(line, '$.signal'), json_extract(line, '$.start.id'))
        END AS signal
        FROM events WHERE line LIKE '%\"signal\":\"%' OR line LIKE '%\"start\":{\"id\":\"%'
    ) WHERE signal IS NOT NULL ORDER BY id;
", "
-- A run's pending items are contiguous, like its events: id is the run's key times 2^32, plus a number.
UPDATE waits SET pending = (SELECT key * 4294967296 + id FROM pending WHERE id = waits.pending);
UPDATE pending SET id = key * 4294967296 + id;
DROP INDEX pending_of_run;
ALTER TABLE pending DROP COLUMN key;
DROP INDEX waits_of_pending;

-- The files that a run references, by its key.
CREATE TABLE run_blobs (run INTEGER NOT NULL, sha256 TEXT NOT NULL, PRIMARY KEY (run, sha256)) STRICT, WITHOUT ROWID;
INSERT INTO run_blobs SELECT run, sha256 FROM blob_refs;
DROP TABLE blob_refs;

DROP INDEX timers_of_conversation;
DROP INDEX timers_of_user;
CREATE INDEX timers_by_owner ON timers (conversation, user);

-- When a run has work; a running one always has some.
UPDATE runs SET wake = -9223372036854775808 WHERE status = 'running';
UPDATE runs SET wake = NULL WHERE status NOT IN ('running', 'waiting');
DROP INDEX runs_by_status;
", "
-- The worker that has claimed the run and not released it.
ALTER TABLE runs ADD COLUMN owner TEXT;
UPDATE runs SET owner = json_extract(summary, '$.claim.owner')
    WHERE wake IS NOT NULL AND json_valid(summary) AND NOT coalesce(json_extract(summary, '$.claim.released'), false);

-- When a run with work is due again, by its key: until is a time on the clock of the machine, owner is the worker for
-- which it is reserved, and refusals are the codes that have refused it, as a JSON array.
CREATE TABLE deferrals (
    run INTEGER PRIMARY KEY,
    owner TEXT,
    until INTEGER,
    failures INTEGER NOT NULL,
    refusals TEXT NOT NULL
) STRICT;
", "
-- The saved parts of runs' prompts: id is the run's key times 2^32, plus the number of the first event after the part.
CREATE TABLE saved_prompts (
    id INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    version INTEGER NOT NULL,
    content TEXT NOT NULL
) STRICT;

-- The positions of durable sinks in runs, by the runs' keys, with the worker that feeds them.
CREATE TABLE sinks (
    run INTEGER NOT NULL,
    sink TEXT NOT NULL,
    next INTEGER NOT NULL,
    feeder TEXT,
    PRIMARY KEY (run, sink)
) STRICT, WITHOUT ROWID;
CREATE INDEX sinks_by_feeder ON sinks (sink, feeder) WHERE feeder IS NOT NULL;
", "
-- Small documents beside the logs.
CREATE TABLE entries (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
"];

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
            "the event store `{file}` has format {format}, but this release reads only up to {newest}: use a newer release \
 of positronic"
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
