//! Database errors, and what they mean for a caller.

use positronic_core::store::StoreError;
use sqlx_core::Error;
use sqlx_postgres::{PgDatabaseError, PgSeverity};

/// What to do about a pooler in transaction mode.
pub(crate) const POOLER: &str = "Connect to the server itself, or add the parameter `prepared_statements=false` to the \
                                 address; PgBouncer knows prepared statements from 1.21 on (`max_prepared_statements`)";

/// Describes an error of a connection with what to do about a certificate.
pub(crate) fn explained(error: &Error) -> String {
    match error {
        // rustls reports certificates with this kind.
        Error::Io(io) if io.kind() == std::io::ErrorKind::InvalidData => format!(
            "{io}. Check the server's certificate: `sslrootcert` of the address names the file with its certificate \
             authority, and `sslmode=verify-full` compares its host name, too"
        ),
        error => error.to_string(),
    }
}

/// The reason why a database operation failed.
#[derive(Debug)]
pub(crate) enum DbError {
    /// The store refuses the operation, or reports its own error.
    Refused(StoreError),
    /// There is no connection; nothing was sent.
    Unconnected(String),
    /// The connection was lost, or the answer did not arrive in time: the statement may have been executed.
    Lost(String),
    /// The server refused the statement and undid it: its code and its message.
    Server { code: String, message: String },
    /// A stored value cannot be decoded: its name and the reason.
    Unreadable(String, String),
}

impl From<StoreError> for DbError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<Error> for DbError {
    fn from(error: Error) -> Self {
        match error {
            Error::Database(error) => match error.try_downcast_ref::<PgDatabaseError>() {
                // The server ends the connection: a commit may have come before.
                Some(error) if matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic) => {
                    Self::Lost(error.message().to_owned())
                }
                Some(error) => Self::Server { code: error.code().to_owned(), message: error.message().to_owned() },
                None => Self::Lost(error.to_string()),
            },
            Error::Io(error) => Self::Lost(error.to_string()),
            Error::ColumnDecode { .. } | Error::ColumnNotFound(_) | Error::Decode(_) => {
                Self::Unreadable("a row".to_owned(), error.to_string())
            }
            Error::Encode(error) => {
                Self::Refused(StoreError::Failed { message: format!("cannot encode a value: {error}") })
            }
            error => Self::Lost(error.to_string()),
        }
    }
}

impl DbError {
    /// Creates the error for a stored value that cannot be decoded.
    pub(crate) fn unreadable(what: &str, error: impl std::fmt::Display) -> Self {
        Self::Unreadable(what.to_owned(), error.to_string())
    }

    /// Returns whether the server undid the statement because of another one at the same time.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Server { code, .. } if code == "40001" || code == "40P01")
    }

    pub(crate) const fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }
}

/// What a lost connection means for the statement that it carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementKind {
    /// It only reads.
    Read,
    /// It writes, and commits when it ends.
    Write,
}

/// The database and the schema, for error messages. It has no password.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseName {
    pub(crate) database: String,
    pub(crate) schema: String,
}

impl std::fmt::Display for DatabaseName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, schema {}", self.database, self.schema)
    }
}

impl DatabaseName {
    /// Converts an error into one of the store, with advice.
    pub(crate) fn explain(&self, error: DbError, access: StatementKind) -> StoreError {
        match error {
            DbError::Refused(error) => error,
            DbError::Unconnected(reason) => StoreError::Failed {
                message: format!("cannot connect to {}: {reason}; nothing was written", self.database),
            },
            DbError::Lost(reason) if access == StatementKind::Write => StoreError::Unknown {
                message: format!("the connection to {} was lost before the answer: {reason}", self.database),
            },
            DbError::Lost(reason) => {
                StoreError::Failed { message: format!("the connection to {} was lost: {reason}", self.database) }
            }
            DbError::Unreadable(what, reason) => StoreError::Corrupt {
                what: format!("{what} in {self}"),
                reason: format!("{reason}. Restore the database from a backup"),
            },
            DbError::Server { code, message } => self.explain_server(&code, &message),
        }
    }

    fn explain_server(&self, code: &str, message: &str) -> StoreError {
        let unusable = |message| StoreError::Unusable { message };
        let failed = |message| StoreError::Failed { message };
        match code {
            "42501" => unusable(format!(
                "the user has no right to use the event store in {self} ({message}). Grant it the rights, or open the \
                 store read-only"
            )),
            "42P01" | "42883" | "3F000" | "42703" => unusable(format!(
                "the tables of the event store in {self} have changed ({message}). Open the store again"
            )),
            "25006" => failed(format!(
                "{} accepts no writes now ({message}); nothing was written. It may be a standby server",
                self.database
            )),
            "42P05" | "26000" => unusable(format!(
                "a pooler such as PgBouncer mixes up prepared statements before {self} ({message}); nothing was written. \
                 {POOLER}"
            )),
            "57014" => failed(format!("a statement took too long in {self} ({message}); nothing was written")),
            "XX001" | "XX002" => {
                unusable(format!("the event store in {self} is damaged ({message}). Restore it from a backup"))
            }
            _ => failed(format!("{message} (SQLSTATE {code}) in {self}; nothing was written")),
        }
    }
}
