//! Files and folders that only their owner may read, since they contain texts of users, models and tools.
//!
//! On Unix, new files get these permissions; existing ones keep theirs. `positronic-cli` uses it, too.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Returns options for opening a file; a new one is readable only by its owner.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Writes a file.
///
/// # Errors
///
/// Those of the file system.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    options().write(true).create(true).truncate(true).open(path)?.write_all(content)
}

/// Creates a folder and its missing parents.
///
/// # Errors
///
/// Those of the file system.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
