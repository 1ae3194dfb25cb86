//! Detection of a database file that was removed or replaced while in use.
//!
//! The operating system keeps writing to a removed file, and its contents are lost when the last process closes it. So
//! before each commit the writer checks that the paths of the file and of its write-ahead log still name the opened ones.

use std::path::{Path, PathBuf};

use positronic_core::store::StoreError;

use super::failure::StoreFile;

/// Identifies a file independently of its path.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Identity(u64, u64);

/// The opened file and its write-ahead log.
#[derive(Debug)]
pub(super) struct OpenedFiles([OpenedFile; 2]);

#[derive(Debug)]
struct OpenedFile {
    path: PathBuf,
    /// `None` until the file is there.
    identity: Option<Identity>,
}

impl OpenedFiles {
    /// Remembers which files the path names.
    pub(super) fn at(path: &Path) -> Self {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        Self([path.to_owned(), log.into()].map(|path| OpenedFile { identity: identity(&path), path }))
    }

    /// Checks the files. The next check may succeed, since a person may restore them. It takes microseconds.
    pub(super) fn check(&mut self, store_file: &StoreFile) -> Result<(), StoreError> {
        for OpenedFile { path, identity: known } in &mut self.0 {
            let now = identity(path);
            if now == *known {
                continue;
            }
            if known.is_none() {
                *known = now;
                continue;
            }
            let (store, file) = (store_file.path.display(), path.display());
            let what = if now.is_none() { "removed" } else { "replaced by another one" };
            return Err(StoreError::Unusable {
                message: format!(
                    "cannot write the event store `{store}`: its file `{file}` was {what} while in use; nothing was \
                     written, and what was written since is lost. Stop the processes that use it, and restore the file \
                     from a backup (`positronic backup`)"
                ),
            });
        }
        Ok(())
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
