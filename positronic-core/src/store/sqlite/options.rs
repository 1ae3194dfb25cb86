//! Where a store's file is, and how it is used.

use std::path::PathBuf;
use std::time::Duration;

/// What an append survives once it has been answered.
///
/// Whatever the level, a crash leaves a prefix of what was committed: an append is never torn, and never lost while a
/// later one is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Durability {
    /// It survives that the process is killed, not that the machine loses its power or its system crashes: then the
    /// last appends may be gone (`synchronous=NORMAL`). A commit does not wait for the disk.
    ProcessCrash,
    /// It also survives that the machine loses its power: every commit waits for the disk (`synchronous=FULL`).
    ///
    /// This is the default, since a log says which effects have happened: one that forgets its last events pays, sends
    /// or deletes once more. Appends that wait at the same time share one commit, so the wait is one for all of them.
    #[default]
    PowerLoss,
}

/// Says where a [`SqliteStore`](super::SqliteStore) is, and how it is used.
///
/// ```
/// use positronic_core::store::{Durability, SqliteOptions};
///
/// let options = SqliteOptions::builder().path("runs.db").durability(Durability::ProcessCrash).build();
/// assert_eq!(options.patience.as_secs(), 5);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// The file. It is made when it does not exist; its folder is not.
    #[builder(setter(into))]
    pub path: PathBuf,
    /// What an append survives.
    #[builder(default)]
    pub durability: Durability,
    /// How long to wait while another process writes.
    #[builder(default = Duration::from_secs(5))]
    pub patience: Duration,
    /// Whether the file is only read: whatever would write is refused.
    #[builder(default)]
    pub read_only: bool,
}
