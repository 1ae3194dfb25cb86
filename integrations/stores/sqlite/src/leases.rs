//! Leases: which workers are alive.
//!
//! A worker locks a file in `<database>-workers/`. The operating system releases the lock when the process ends in any
//! way, so that a crash is visible at once and a suspended process is not taken for dead. Files are created and
//! removed under the folder's lock: none is removed before its worker has locked it.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use positronic_core::private;
use positronic_core::store::{Lease, StoreError};

use super::failure::lease_error;

/// The file whose lock guards creating and removing files.
const FOLDER_LOCK: &str = "lock";

/// The folder with a lock file for each live worker.
#[derive(Debug, Clone)]
pub(super) struct Workers {
    folder: PathBuf,
}

impl Workers {
    /// Returns the folder that belongs to a database file.
    pub(super) fn of(database: &Path) -> Self {
        let mut folder = database.as_os_str().to_owned();
        folder.push("-workers");
        Self { folder: folder.into() }
    }

    /// Registers a new worker, and removes the files of dead ones.
    pub(super) fn acquire_lease(&self) -> Result<Lease, StoreError> {
        let failed = |error| lease_error(&self.folder, &error);
        private::make_folder(&self.folder).map_err(failed)?;
        let folder = open(&self.folder.join(FOLDER_LOCK)).map_err(failed)?;
        folder.lock().map_err(failed)?;
        self.forget_dead().map_err(failed)?;
        let id = new_id();
        let path = self.folder.join(&id);
        let file = open(&path).and_then(|file| file.lock().map(|()| file)).map_err(failed)?;
        Ok(Lease::new(id, Alive { path, _file: file }))
    }

    /// Returns whether a worker is alive.
    pub(super) fn is_lease_live(&self, owner: &str) -> Result<bool, StoreError> {
        let is_id = owner.chars().all(|char| char.is_ascii_hexdigit() || char == '-');
        if !is_id || owner.is_empty() {
            return Ok(false);
        }
        let path = self.folder.join(owner);
        is_locked(&path).map_err(|error| lease_error(&path, &error))
    }

    fn forget_dead(&self) -> std::io::Result<()> {
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if !path.ends_with(FOLDER_LOCK) && !is_locked(&path)? {
                ignore_not_found(std::fs::remove_file(&path))?;
            }
        }
        Ok(())
    }
}

/// The lock file of a live worker.
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

/// Returns whether a worker holds the lock. It tries a shared lock, so that two processes that check at the same time do
/// not mistake each other for the worker.
fn is_locked(path: &Path) -> std::io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return ignore_not_found(Err(error)).map(|()| false),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Ignores that a file does not exist: it was removed meanwhile.
fn ignore_not_found(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates a unique worker name: the process id, for people, and a random part.
fn new_id() -> String {
    // The time part is not used; `now_v7` panics at a clock before 1970.
    let id = uuid::Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, 0, 0)).simple().to_string();
    let random = id.get(20..).unwrap_or_default();
    format!("{}-{random}", std::process::id())
}
