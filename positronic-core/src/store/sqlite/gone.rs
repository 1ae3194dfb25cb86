//! Notices that the file was removed or replaced under those who use it.
//!
//! The system goes on to write into a file that has no name any more, and what was written is lost when the last process
//! closes it. So whoever writes looks now and then whether the name still stands for the file that was opened.

use std::path::Path;

use super::failure::Place;
use crate::store::StoreError;

/// How many jobs are written before it is looked again; a look costs a microsecond.
const EVERY: usize = 16;

/// What tells a file from another one of the same name.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Identity(u64, u64);

/// The file that was opened.
#[derive(Debug)]
pub(super) struct Opened {
    identity: Option<Identity>,
    unseen: usize,
}

impl Opened {
    /// Notes which file the name stands for.
    pub(super) fn at(path: &Path) -> Self {
        Self { identity: identity(path), unseen: 0 }
    }

    /// Counts jobs that are to be written, and looks whether the file is still there.
    pub(super) fn check(&mut self, place: &Place, jobs: usize) -> Result<(), StoreError> {
        self.unseen += jobs;
        if self.unseen < EVERY {
            return Ok(());
        }
        self.unseen = 0;
        let now = identity(&place.path);
        if self.identity.is_none() || now == self.identity {
            return Ok(());
        }
        // Looked at again by the next job: somebody may put it back.
        self.unseen = EVERY;
        let (file, what) = (place.path.display(), if now.is_none() { "removed" } else { "replaced by another one" });
        Err(StoreError::Unusable {
            message: format!(
                "the event store `{file}` was {what} while it was in use; nothing more is written, and what was written \
                 since is lost. Stop the processes that use it, and restore the file from a backup"
            ),
        })
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|file| Identity(file.dev(), file.ino()))
}

/// Elsewhere an open file cannot be removed.
#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    path.exists().then_some(Identity(0, 0))
}
