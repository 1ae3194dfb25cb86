//! Removal of a program's folder.

use std::io;

use cap_std::fs::Dir;

use super::own_name;
use super::owner_rights::{CHANGE, open_folder};

/// Removes a folder with its content, however deep: nested content moves up, so neither a path nor the number of
/// open directories grows with the depth.
pub(crate) fn remove_folder(parent: &Dir, name: &str) -> io::Result<()> {
    let (top, _) = open_folder(parent, name, CHANGE)?;
    loop {
        let folders = remove_files(&top)?;
        if folders.is_empty() {
            return parent.remove_dir(name);
        }
        for folder in folders {
            let (inner, _) = open_folder(&top, &folder, CHANGE)?;
            for deeper in remove_files(&inner)? {
                // A folder that its owner may not change cannot be moved.
                open_folder(&inner, &deeper, CHANGE)?;
                inner.rename(deeper, &top, own_name("moved"))?;
            }
            top.remove_dir(folder)?;
        }
    }
}

/// Removes everything but folders, and returns the folders.
fn remove_files(dir: &Dir) -> io::Result<Vec<std::ffi::OsString>> {
    let mut folders = Vec::new();
    for entry in dir.entries()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.file_name());
        } else {
            entry.remove_file()?;
        }
    }
    Ok(folders)
}
