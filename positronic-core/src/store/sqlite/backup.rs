//! Backups: a consistent copy of the file while processes use it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::connection;
use super::failure::{DbError, StoreFile};
use crate::private;
use crate::store::StoreError;

/// Copies the committed content of the store into a new file, which contains no free pages. Readers and writers continue.
pub(super) fn copy(store_file: &StoreFile, to: &Path) -> Result<(), DbError> {
    let unusable = |why: String| StoreError::Unusable {
        message: format!("cannot back up `{}` to `{}`: {why}", store_file.path.display(), to.display()),
    };
    // Reserves the name, and its owner alone can read the file.
    private::options().write(true).create_new(true).open(to).map_err(|error| {
        unusable(match error.kind() {
            io::ErrorKind::AlreadyExists => "the file exists already; name a new one".to_owned(),
            _ => error.to_string(),
        })
    })?;
    let partial = partial(to);
    let copied = write(store_file, &partial).and_then(|()| {
        let renamed = fs::rename(&partial, to).and_then(|()| sync_folder(to));
        renamed.map_err(|error| unusable(error.to_string()).into())
    });
    if copied.is_err() {
        // The error of the copy is the one that counts.
        _ = (fs::remove_file(&partial), fs::remove_file(to));
    }
    copied
}

/// Returns the name under which the copy is written until it is complete.
fn partial(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

fn write(store_file: &StoreFile, partial: &Path) -> Result<(), DbError> {
    let text = partial.to_str().ok_or_else(|| {
        let message = format!("cannot back up to `{}`: its path is not UTF-8", partial.display());
        StoreError::Unusable { message }
    })?;
    let failed = |error: io::Error| {
        let message = format!("cannot write the backup `{}`: {error}", partial.display());
        StoreError::Failed { message }
    };
    // What an interrupted backup has left.
    _ = fs::remove_file(partial);
    private::write(partial, b"").map_err(failed)?;
    connection::to_read(store_file)?.execute("VACUUM INTO ?1", [text]).map_err(|error| {
        // The store itself was only read.
        let message = format!("cannot write the backup `{}`: {error}", partial.display());
        StoreError::Failed { message }
    })?;
    Ok(fs::File::open(partial).and_then(|file| file.sync_all()).map_err(failed)?)
}

#[cfg(unix)]
fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
