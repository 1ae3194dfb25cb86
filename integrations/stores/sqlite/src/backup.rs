//! Backups: a consistent copy of the file while processes use it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use positronic_core::private;
use positronic_core::store::StoreError;

use super::connection;
use super::failure::{DbError, StoreFile};

/// Copies the committed content of the store into a new file, which contains no free pages. Readers and writers continue. The file
/// gets its name when it is complete, so a killed backup leaves only a partial file, which the next one replaces.
pub(super) fn copy(store_file: &StoreFile, to: &Path) -> Result<(), DbError> {
    let unusable = |error: io::Error| {
        let message = match error.kind() {
            io::ErrorKind::AlreadyExists => "the file exists already; name a new one".to_owned(),
            _ => error.to_string(),
        };
        let (store, to) = (store_file.path.display(), to.display());
        StoreError::Unusable { message: format!("cannot back up `{store}` to `{to}`: {message}") }
    };
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Not every system opens a folder.
    let folder = fs::File::open(folder).ok();
    // Backups into one folder wait for each other, so that none replaces the partial file of another one. A network file system may
    // not support locks on folders.
    _ = folder.as_ref().map(fs::File::lock);
    check_absent(to).map_err(unusable)?;
    let partial = partial(to);
    // What a killed backup has left.
    _ = fs::remove_file(&partial);
    // Its owner alone can read it.
    private::options().write(true).create_new(true).open(&partial).map_err(unusable)?;
    let copied = write(store_file, &partial).and_then(|()| {
        let renamed = check_absent(to).and_then(|()| fs::rename(&partial, to));
        let synced = renamed.and_then(|()| folder.as_ref().map_or(Ok(()), fs::File::sync_all));
        Ok(synced.map_err(unusable)?)
    });
    if copied.is_err() {
        // The error of the copy is the one that counts.
        _ = fs::remove_file(&partial);
    }
    copied
}

fn check_absent(to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
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
    // The store itself is only read.
    let failed = |error: &dyn std::fmt::Display| {
        let message = format!("cannot write the backup `{}`: {error}", partial.display());
        StoreError::Failed { message }
    };
    connection::to_read(store_file)?.execute("VACUUM INTO ?1", [text]).map_err(|error| failed(&error))?;
    Ok(fs::File::open(partial).and_then(|file| file.sync_all()).map_err(|error| failed(&error))?)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use rusqlite::Connection;

    use super::*;
    use crate::{SqliteOptions, SqliteStore};

    #[test]
    fn backup_has_its_name_only_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let [path, to] = ["runs.db", "backup.db"].map(|name| folder.path().join(name));
        drop(SqliteStore::with(SqliteOptions::builder().path(&path).build()).unwrap());
        // A killed backup has left it.
        fs::write(partial(&to), "half").unwrap();
        // The copy waits for the end of this transaction.
        let other = Connection::open(&path).unwrap();
        other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
        let store_file = StoreFile { path, busy_timeout: Duration::from_mins(10) };

        thread::scope(|scope| {
            let copied = scope.spawn(|| copy(&store_file, &to));
            while fs::metadata(partial(&to)).is_ok_and(|file| file.len() > 0) {
                thread::yield_now();
            }
            let is_early = to.exists();
            drop(other);
            assert!(copied.join().unwrap().is_ok());
            assert!(!is_early, "a process that is killed now leaves no file under this name");
        });

        assert!(connection::to_read(&StoreFile { path: to.clone(), busy_timeout: Duration::ZERO }).is_ok());
        assert!(!partial(&to).exists());
    }
}
