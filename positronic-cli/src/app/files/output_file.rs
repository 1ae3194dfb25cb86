//! Files that commands write.

use std::path::Path;

use crate::app::{Failure, replace_file};

/// Returns the file to write, or `None` for stdout, which `-` names, too. Refuses to replace a file without `force`.
pub(crate) fn output_path(file: Option<&Path>, force: bool) -> Result<Option<&Path>, Failure> {
    let Some(file) = file.filter(|file| file.as_os_str() != "-") else { return Ok(None) };
    if file.is_dir() {
        return Err(Failure::usage(format!("{} is a folder and not a file", file.display())).hint("name a file"));
    }
    if !force && file.symlink_metadata().is_ok() {
        return Err(Failure::usage(format!("{} already exists", file.display()))
            .hint("name another file, or use --force to replace it"));
    }
    Ok(Some(file))
}

/// Writes a file atomically.
pub(crate) fn write_file(file: &Path, text: &str) -> Result<(), Failure> {
    replace_file(file, text).map_err(Failure::file(file, "cannot write"))
}
