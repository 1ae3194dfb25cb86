//! Files and folders that only their owner may read: they contain texts of users, models and tools.
//!
//! On Unix, the permissions apply to new files; an existing file keeps its own.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Returns options to open a file; only its owner can read a new one.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Writes a file.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    options().write(true).create(true).truncate(true).open(path)?.write_all(content)
}

/// Creates a folder and its missing parents.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
