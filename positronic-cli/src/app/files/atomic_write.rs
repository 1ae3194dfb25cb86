//! Atomic file writes: the old content stays until the new content is on the disk.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use positronic_core::private;

/// Creates or replaces a file. Only its owner can read a new one.
pub(crate) fn replace_file(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut beside = name.to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    // A symbolic link stays; its target is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let beside = path.with_file_name(beside);
    let written = private::options().write(true).create_new(true).open(&beside).and_then(|mut file| {
        file.write_all(content.as_ref())?;
        // Preserve the permissions that the owner has set.
        if let Ok(there) = fs::metadata(&path) {
            file.set_permissions(there.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&beside, &path)
    });
    if written.is_err() {
        // It does not exist if its creation failed.
        _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_replacement_keeps_the_file_and_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");

        replace_file(&path, "one").unwrap();
        replace_file(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        fs::create_dir(folder.path().join("full")).unwrap();
        fs::write(folder.path().join("full/inside"), "").unwrap();
        assert!(replace_file(&folder.path().join("full"), "three").is_err());

        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
