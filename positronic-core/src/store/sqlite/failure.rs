//! What went wrong with the file, in sentences that say what to do.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::ErrorCode;

use crate::store::StoreError;

/// Why something was not done.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The store refuses it, or knows itself what is wrong.
    Refused(StoreError),
    /// Something in the file is not what it should be: what, and how.
    Unreadable(String, String),
    /// SQLite could not do it.
    Sqlite(rusqlite::Error),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Trouble {
    /// Says that something in the file cannot be read.
    pub(super) fn unreadable(what: &str, error: impl std::fmt::Display) -> Self {
        Self::Unreadable(what.to_owned(), error.to_string())
    }

    /// Says whether another process was in the way.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    /// Says whether something could not be written for want of permission.
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

/// The file that errors are about.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) patience: Duration,
}

impl Place {
    /// Says what went wrong in the store's words.
    pub(super) fn explain(&self, trouble: Trouble) -> StoreError {
        match trouble {
            Trouble::Refused(error) => error,
            Trouble::Unreadable(what, error) => {
                let file = self.path.display();
                StoreError::Failed {
                    message: format!("{what} in `{file}` cannot be read: {error}. Restore the file from a backup"),
                }
            }
            Trouble::Sqlite(error) => self.explain_sqlite(&error),
        }
    }

    fn explain_sqlite(&self, error: &rusqlite::Error) -> StoreError {
        let file = self.path.display();
        let unusable = |message: String| StoreError::Unusable { message };
        let failed = |message: String| StoreError::Failed { message };
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => unusable(format!(
                "`{file}` holds no event store: it is no SQLite file. Name another file, or move this one away"
            )),
            Some(ErrorCode::DatabaseCorrupt) => unusable(format!(
                "the event store `{file}` is damaged ({error}). Restore it from a backup, or save what can be read \
                 with `sqlite3 {file} .recover`"
            )),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => failed(format!(
                "another process has kept `{file}` locked for more than {:?}; nothing was written. Try again, or end \
                 the process that holds it",
                self.patience
            )),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => unusable(self.not_writable()),
            Some(ErrorCode::CannotOpen) => unusable(self.cannot_open(error)),
            Some(ErrorCode::DiskFull) => failed(format!(
                "there is no space left for `{file}`; nothing was written. Free some space and try again"
            )),
            Some(ErrorCode::SystemIoFailure) => failed(format!(
                "the system could not read or write `{file}` ({error}); nothing was written. Check the disk, and that \
                 it is not full"
            )),
            _ => failed(format!("SQLite could not use `{file}`: {error}")),
        }
    }

    /// Says that the file can be read and not written.
    pub(super) fn not_writable(&self) -> String {
        let file = self.path.display();
        format!(
            "the event store `{file}` cannot be written: the file or its folder is read-only for this user. Change \
             their permissions, or open it read-only"
        )
    }

    /// Says that the file cannot even be read where nothing can be written beside it.
    pub(super) fn no_room_beside(&self) -> String {
        let file = self.path.display();
        format!(
            "the event store `{file}` cannot be read where it is: its folder is read-only for this user, and who reads has \
             to be noted beside the file. Copy it to another folder, or read it while somebody who may write has it open"
        )
    }

    /// Says that there is a folder where the file has to be, which SQLite takes for a broken disk where it only reads.
    pub(super) fn is_folder(&self) -> String {
        format!("`{}` is a folder, and an event store is a file. Name a file in it", self.path.display())
    }

    fn cannot_open(&self, error: &rusqlite::Error) -> String {
        let file = self.path.display();
        match self.path.parent().filter(|folder| !folder.is_dir()) {
            Some(folder) => format!(
                "the event store `{file}` cannot be made, since the folder `{}` does not exist. Make the folder first",
                folder.display()
            ),
            None if !self.path.exists() => format!(
                "there is no event store `{file}`, or its folder cannot be written ({error}). Check the path and the \
                 folder's permissions"
            ),
            None => format!(
                "the event store `{file}` cannot be opened ({error}). Check the permissions of the file, of its \
                 folder and of the files beside it that end in `-wal` and `-shm`"
            ),
        }
    }
}

/// Runs the store's own work, and turns a panic into an error: whoever asked for it is told, and the thread and the
/// transaction are there for the others.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text =
            text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("for an unknown reason");
        let message = format!(
            "the store panicked: {text}; nothing was written. This is a mistake of the store, please report it"
        );
        Err(StoreError::Failed { message }.into())
    })
}

/// Says that a file beside the store's cannot be used.
pub(super) fn beside(path: &Path, error: &std::io::Error) -> StoreError {
    let message = format!("`{}`, where workers show that they are alive, cannot be used: {error}", path.display());
    StoreError::Failed { message }
}

/// Says that the threads of the store have ended, which they do when the store is dropped.
pub(super) fn ended() -> StoreError {
    StoreError::Failed { message: "the store has been closed meanwhile".to_owned() }
}
