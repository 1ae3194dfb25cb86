//! Which workers are alive.
//!
//! A worker has a file in `<database>-workers/` and keeps it locked. The operating system drops the lock when the process
//! ends, however it ends, so that a crash is known at once, and a process that stands still for long is not taken for
//! dead. Files are made and removed under the lock of the folder: none is removed before its worker has locked it.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::failure::beside;
use crate::private;
use crate::store::{Lease, StoreError};

/// The file that is locked while files are made and removed.
const FOLDER_LOCK: &str = "lock";

/// The folder where workers show that they are alive.
#[derive(Debug, Clone)]
pub(super) struct Workers {
    folder: PathBuf,
}

impl Workers {
    /// Names the folder that belongs to a store's file.
    pub(super) fn of(database: &Path) -> Self {
        let mut folder = database.as_os_str().to_owned();
        folder.push("-workers");
        Self { folder: folder.into() }
    }

    /// Makes a worker known, and forgets those that have died.
    pub(super) fn acquire_lease(&self) -> Result<Lease, StoreError> {
        let failed = |error| beside(&self.folder, &error);
        private::make_folder(&self.folder).map_err(failed)?;
        let folder = open(&self.folder.join(FOLDER_LOCK)).map_err(failed)?;
        folder.lock().map_err(failed)?;
        self.forget_dead().map_err(failed)?;
        let id = new_id();
        let path = self.folder.join(&id);
        let file = open(&path).and_then(|file| file.lock().map(|()| file)).map_err(failed)?;
        Ok(Lease::new(id, Alive { path, _file: file }))
    }

    /// Says whether a worker is alive.
    pub(super) fn is_lease_live(&self, owner: &str) -> Result<bool, StoreError> {
        let is_id = owner.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-');
        if !is_id || owner.is_empty() {
            return Ok(false);
        }
        let path = self.folder.join(owner);
        is_locked(&path).map_err(|error| beside(&path, &error))
    }

    fn forget_dead(&self) -> std::io::Result<()> {
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if !path.ends_with(FOLDER_LOCK) && !is_locked(&path)? {
                gone(std::fs::remove_file(&path))?;
            }
        }
        Ok(())
    }
}

/// A worker's file, for as long as it is alive.
struct Alive {
    path: PathBuf,
    _file: File,
}

impl Drop for Alive {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.path);
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    private::options().create(true).truncate(false).write(true).open(path)
}

/// Says whether a worker holds the lock. The lock that is tried is a shared one, so that two who ask at the same time
/// do not take each other for the worker.
fn is_locked(path: &Path) -> std::io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return gone(Err(error)).map(|()| false),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Takes a file that is not there for one that was removed meanwhile.
fn gone(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes a name that no other worker has or had: the process, for people, and something random.
fn new_id() -> String {
    #[expect(clippy::disallowed_methods, reason = "the name of a worker is no part of what a run comes to")]
    let id = uuid::Uuid::now_v7().simple().to_string();
    let random = id.get(20..).unwrap_or_default();
    format!("{}-{random}", std::process::id())
}
