//! Writing of files into an output folder.

use std::io::Write as _;
use std::path::Path;

use cap_std::fs::{Dir, OpenOptions};
use positronic_core::record::FileRef;
use sha2::{Digest as _, Sha256};

use super::listing::FolderUsage;
use super::{FolderError, OutputFolder, io, name, no_file, output, own_name};

impl OutputFolder {
    /// Writes a file atomically, and creates its parent folders.
    ///
    /// # Errors
    ///
    /// A [`FolderError`] when the path is invalid or not a file, when a limit of the folder would be
    /// exceeded, or when the operating system refuses.
    pub fn write(&self, path: &str, bytes: &[u8]) -> Result<FileRef, FolderError> {
        self.put(path, bytes, true)
    }

    /// Writes a file like [`OutputFolder::write`], if it does not exist. An existing file with the same bytes counts as
    /// written, for a retry after a crash.
    ///
    /// Of several concurrent writers, one succeeds.
    ///
    /// # Errors
    ///
    /// [`FolderError::Exists`] when there is another file, and the errors of [`OutputFolder::write`].
    pub fn write_new(&self, path: &str, bytes: &[u8]) -> Result<FileRef, FolderError> {
        match self.put(path, bytes, false) {
            Err(FolderError::Exists { .. }) if self.bytes(path).is_ok_and(|known| known == bytes) => {
                self.describe(path)
            }
            written => written,
        }
    }

    fn put(&self, path: &str, bytes: &[u8], replace: bool) -> Result<FileRef, FolderError> {
        let inside = name::checked(path)?;
        let max_file = self.inner.options.max_file;
        let size = bytes.len() as u64;
        if size > max_file {
            return Err(FolderError::TooLarge { path: path.to_owned(), size, limit: max_file });
        }
        let dir = &self.inner.dir;
        let before = match dir.symlink_metadata(&inside) {
            Ok(known) if known.is_dir() => return Err(no_file(path, "a folder")),
            Ok(known) if known.is_file() => Some(known.len()),
            Ok(_) | Err(_) => None,
        };
        let usage = self.usage()?;
        // A file that becomes shorter makes room, also in a full folder.
        if before.is_none_or(|before| size >= before) {
            let bytes = usage.bytes.saturating_add(size).saturating_sub(before.unwrap_or(0));
            let files = usage.files + usize::from(before.is_none());
            FolderUsage { bytes, files, ..usage }.check(&self.inner.options)?;
        }
        let parent = inside.parent().map(Path::to_owned).unwrap_or_default();
        if !parent.as_os_str().is_empty() {
            dir.create_dir_all(&parent).map_err(io(path))?;
        }
        // Written to a temporary file and renamed, so that a link is replaced and not followed, and readers see a complete file.
        let aside = parent.join(own_name("tmp"));
        let written = (|| {
            let mut file = dir.open_with(&aside, OpenOptions::new().write(true).create_new(true))?;
            file.write_all(bytes)?;
            if replace { dir.rename(&aside, dir, &inside) } else { link_new(dir, &aside, &inside) }
        })();
        if let Err(source) = written {
            // It may not exist.
            _ = dir.remove_file(&aside);
            return Err(match source.kind() {
                std::io::ErrorKind::AlreadyExists if !replace => FolderError::Exists { path: path.to_owned() },
                _ => io(path)(source),
            });
        }
        Ok(output(&inside, size, Sha256::digest(bytes).as_slice()))
    }
}

/// Renames a temporary file, unless the target exists.
fn link_new(dir: &Dir, aside: &Path, name: &Path) -> std::io::Result<()> {
    match dir.hard_link(aside, dir, name) {
        Ok(()) => dir.remove_file(aside),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(error),
        // On a file system without hard links, check and rename are not atomic.
        Err(_) if dir.symlink_metadata(name).is_ok() => Err(std::io::ErrorKind::AlreadyExists.into()),
        Err(_) => dir.rename(aside, dir, name),
    }
}
