//! Options of the SQLite store.

use std::path::PathBuf;
use std::time::Duration;

/// Which failures a committed append survives.
///
/// After any crash the log is a prefix of what was committed: an append is never torn, and never lost while a later one
/// survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Durability {
    /// Survives a killed process, but not a power loss or a crash of the operating system, which may lose the last
    /// appends (`synchronous=NORMAL`). A commit does not wait for the disk.
    ProcessCrash,
    /// Also survives a power loss: every commit waits for the disk (`synchronous=FULL`).
    ///
    /// This is the default, since a log states which effects have happened: one that loses its last events pays, sends
    /// or deletes once more. Concurrent appends share one commit, and so one wait.
    #[default]
    PowerLoss,
}

/// Options of a [`SqliteStore`](super::SqliteStore).
///
/// ```
/// use positronic_sqlite::{Durability, SqliteOptions};
///
/// let options = SqliteOptions::builder().path("runs.db").durability(Durability::ProcessCrash).build();
/// assert_eq!(options.busy_timeout.as_secs(), 5);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// The path of the file. It is created if it does not exist; its folder is not.
    #[builder(setter(into))]
    pub path: PathBuf,
    /// Which failures an append survives.
    #[builder(default)]
    pub durability: Durability,
    /// How long to wait while another process has the file locked.
    #[builder(default = Duration::from_secs(5))]
    pub busy_timeout: Duration,
    /// Whether the file is opened read-only: writes are refused.
    #[builder(default)]
    pub read_only: bool,
}
