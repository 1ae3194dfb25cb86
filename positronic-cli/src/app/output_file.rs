//! Files that commands write.

use std::path::Path;

use crate::app::failure::Failure;

/// Refuses to replace a file that is there.
pub(crate) fn refuse_known(file: Option<&Path>, force: bool) -> Result<(), Failure> {
    if let Some(folder) = file.filter(|file| file.is_dir()) {
        return Err(Failure::usage(format!("{} is a folder and not a file", folder.display())).hint("name a file"));
    }
    match file.filter(|file| !force && file.symlink_metadata().is_ok()) {
        Some(file) => Err(Failure::usage(format!("{} already exists", file.display()))
            .hint("name another file, or use --force to replace it")),
        None => Ok(()),
    }
}
