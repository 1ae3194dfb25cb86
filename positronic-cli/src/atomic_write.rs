//! Writes a file whole or not at all: what was there stays until everything else is on the disk.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use crate::private;

/// Writes a file in place of the one that is perhaps there. A new one is its owner's alone.
pub(crate) fn replace(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut beside = name.to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    // A link stays one, and what it names is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let beside = path.with_file_name(beside);
    let written = private::options().write(true).create_new(true).open(&beside).and_then(|mut file| {
        file.write_all(content.as_ref())?;
        // A file that others may read by its owner's wish stays one.
        if let Ok(there) = fs::metadata(&path) {
            file.set_permissions(there.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&beside, &path)
    });
    if written.is_err() {
        // Where it was never made, nothing is left.
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

        replace(&path, "one").unwrap();
        replace(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        fs::create_dir(folder.path().join("full")).unwrap();
        fs::write(folder.path().join("full/inside"), "").unwrap();
        assert!(replace(&folder.path().join("full"), "three").is_err());

        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
