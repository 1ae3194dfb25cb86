//! Files that commands write.

use std::path::Path;

use crate::app::failure::Failure;

/// Refuses to replace a file that is there.
pub(crate) fn refuse_known(file: Option<&Path>, force: bool) -> Result<(), Failure> {
    if let Some(folder) = file.filter(|file| file.is_dir()) {
        return Err(Failure::NoFile { folder: folder.to_owned() });
    }
    match file.filter(|file| !force && file.symlink_metadata().is_ok()) {
        Some(file) => Err(Failure::Exists { file: file.to_owned() }),
        None => Ok(()),
    }
}
