//! Detection of a database file that was removed or replaced while in use.
//!
//! The operating system keeps writing to a removed file, and its contents are lost when the last process closes it. So
//! the writer checks now and then that the path still names the opened file.

use std::path::Path;

use super::failure::StoreFile;
use crate::store::StoreError;

/// After how many jobs the file is checked again. A check takes a microsecond.
const EVERY: usize = 16;

/// Identifies a file independently of its path.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Identity(u64, u64);

/// The opened file.
#[derive(Debug)]
pub(super) struct OpenedFile {
    identity: Option<Identity>,
    unseen: usize,
}

impl OpenedFile {
    /// Remembers which file the path names.
    pub(super) fn at(path: &Path) -> Self {
        Self { identity: identity(path), unseen: 0 }
    }

    /// Counts the next jobs, and checks the file when it is time.
    pub(super) fn check(&mut self, store_file: &StoreFile, jobs: usize) -> Result<(), StoreError> {
        self.unseen += jobs;
        if self.unseen < EVERY {
            return Ok(());
        }
        self.unseen = 0;
        let now = identity(&store_file.path);
        if self.identity.is_none() || now == self.identity {
            return Ok(());
        }
        // The next job checks again, since the file may be restored.
        self.unseen = EVERY;
        let (file, what) =
            (store_file.path.display(), if now.is_none() { "removed" } else { "replaced by another one" });
        Err(StoreError::Unusable {
            message: format!(
                "the event store `{file}` was {what} while in use; writing has stopped, and what was written since is \
 lost. Stop the processes that use it, and restore the file from a backup"
            ),
        })
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|file| Identity(file.dev(), file.ino()))
}

/// On other systems an open file cannot be removed.
#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    path.exists().then_some(Identity(0, 0))
}
