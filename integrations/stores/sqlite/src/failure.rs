//! Database errors, and their messages with advice.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::Duration;

use positronic_core::store::StoreError;
use rusqlite::ErrorCode;

/// The reason why a database operation failed.
#[derive(Debug)]
pub(super) enum DbError {
    /// The store refuses the operation or reports its own error.
    Refused(StoreError),
    /// A value in the file cannot be decoded: its name and the reason.
    Unreadable(String, String),
    /// SQLite failed.
    Sqlite(rusqlite::Error),
}

impl From<StoreError> for DbError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for DbError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl DbError {
    /// Creates the error for a value in the file that cannot be decoded.
    pub(super) fn unreadable(what: &str, error: impl std::fmt::Display) -> Self {
        Self::Unreadable(what.to_owned(), error.to_string())
    }

    /// Returns whether another process had the file locked.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    /// Returns whether write permission is missing.
    pub(super) fn is_read_only(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::ReadOnly))
    }

    fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Sqlite(error) => error.sqlite_error_code(),
            Self::Refused(_) | Self::Unreadable(..) => None,
        }
    }
}

/// The database file, for error messages, and its lock timeout.
#[derive(Debug, Clone)]
pub(super) struct StoreFile {
    pub(super) path: PathBuf,
    pub(super) busy_timeout: Duration,
}

impl StoreFile {
    /// Converts an error into one of the store, with advice.
    pub(super) fn explain(&self, db_error: DbError) -> StoreError {
        match db_error {
            DbError::Refused(error) => error,
            DbError::Unreadable(what, error) => {
                let file = self.path.display();
                StoreError::Corrupt {
                    what: format!("{what} in `{file}`"),
                    reason: format!("{error}. Restore the file from a backup"),
                }
            }
            DbError::Sqlite(error) => self.explain_sqlite(&error),
        }
    }

    fn explain_sqlite(&self, error: &rusqlite::Error) -> StoreError {
        let file = self.path.display();
        let unusable = |message: String| StoreError::Unusable { message };
        let failed = |message: String| StoreError::Failed { message };
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => unusable(format!(
                "`{file}` is not an event store: it is not a SQLite file. Use another path, or move the file away"
            )),
            Some(ErrorCode::DatabaseCorrupt) => unusable(format!(
                "the event store `{file}` is damaged ({error}). Restore it from a backup, or save what can be read \
                 with `sqlite3 {file} .recover`"
            )),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => failed(format!(
                "another process has locked `{file}` for more than {:?}; nothing was written. Try again, or stop \
 that process",
                self.busy_timeout
            )),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => unusable(self.not_writable()),
            Some(ErrorCode::CannotOpen) => unusable(self.cannot_open(error)),
            Some(ErrorCode::DiskFull) => failed(format!(
                "no space left on the device for `{file}`; nothing was written. Free some space and try again"
            )),
            Some(ErrorCode::SystemIoFailure) => failed(format!(
                "I/O error on `{file}` ({error}); nothing was written. Check the disk and its free space"
            )),
            _ => failed(format!("SQLite could not use `{file}`: {error}")),
        }
    }

    /// Returns the message for a file that can only be read.
    pub(super) fn not_writable(&self) -> String {
        let file = self.path.display();
        format!(
            "cannot write the event store `{file}`: the file or its folder is read-only for this user. Change \
 their permissions, or open it read-only"
        )
    }

    /// Returns the message for a folder in which SQLite cannot create its side files.
    pub(super) fn read_only_folder(&self) -> String {
        let file = self.path.display();
        format!(
            "cannot read the event store `{file}`: its folder is read-only for this user, and SQLite must write side \
 files there. Copy it to another folder, or read it while a process with write access has it open"
        )
    }

    /// Returns the message for a path that is a folder. SQLite would report it as an I/O error.
    pub(super) fn is_folder(&self) -> String {
        format!("`{}` is a folder, not an event store. Name a file in it", self.path.display())
    }

    fn cannot_open(&self, error: &rusqlite::Error) -> String {
        let file = self.path.display();
        match self.path.parent().filter(|folder| !folder.is_dir()) {
            Some(folder) => format!(
                "cannot create the event store `{file}`: the folder `{}` does not exist. Create the folder first",
                folder.display()
            ),
            None if !self.path.exists() => format!(
                "cannot open the event store `{file}`: it does not exist, or its folder is not accessible ({error}). Check the path and the \
                 folder's permissions"
            ),
            None => format!(
                "cannot open the event store `{file}` ({error}). Check the permissions of the file, of its \
 folder and of its side files ending in `-wal` and `-shm`"
            ),
        }
    }
}

/// Runs the store's work and turns a panic into an error, so that the caller gets a reply and the thread and the
/// transaction survive.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> Result<T, DbError>) -> Result<T, DbError> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text =
            text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("for an unknown reason");
        let message =
            format!("the store panicked: {text}; nothing was written. This is a bug in positronic, please report it");
        Err(StoreError::Failed { message }.into())
    })
}

/// Returns the error for an unusable lease file.
pub(super) fn lease_error(path: &Path, error: &std::io::Error) -> StoreError {
    let message = format!("cannot use `{}`, which tracks live workers: {error}", path.display());
    StoreError::Failed { message }
}

/// Returns the error for a store whose threads have ended because it was dropped.
pub(super) fn store_closed() -> StoreError {
    StoreError::Failed { message: "the store is closed".to_owned() }
}
