//! The store of runs: found and opened.
//!
//! `--store` names it, else the environment, else it is `runs.db` in the project's [folder]. It is a file, or the address of
//! a PostgreSQL database. Commands that only read do not create it: a project without a store has no runs, and a named store
//! must exist. Without the feature `sqlite` runs are in memory until the command ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use positronic_core::runner::Client;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use positronic_core::store::StoreError;
use positronic_core::store::{EventStore, MemoryStore};
#[cfg(feature = "sqlite")]
use positronic_sqlite::{SqliteOptions, SqliteStore};

use super::address::{is_address, scheme, without_password};
use crate::app::{Failure, Ui, project_folder};
use positronic_core::private;

const FILE: &str = "runs.db";
/// The name beside which the files of this machine lie for a store in a database.
#[cfg(feature = "postgres")]
const DATABASE: &str = "postgres";

/// The opened store.
#[derive(Clone)]
pub(crate) struct ProjectStore {
    pub(crate) backend: Arc<dyn EventStore>,
    /// Its location for messages.
    pub(crate) location: String,
    /// Its file, beside which further files of this machine lie; for a database a name in the project's folder. A store in
    /// memory has none.
    pub(crate) path: Option<PathBuf>,
}

impl ProjectStore {
    /// Opens the store, and creates a missing one. Without SQLite, an unnamed store is in memory.
    pub(crate) async fn open(ui: &Ui) -> Result<Self, Failure> {
        let here = current_folder()?;
        match named(ui)? {
            Some(Named::Database(url)) => Self::database(&url, &here, Access::Create).await,
            Some(Named::File(path)) => Self::file(&path, &here, false),
            None if cfg!(not(feature = "sqlite")) => Ok(Self::memory()),
            None => Self::file(&own(&here)?.join(FILE), &here, false),
        }
    }

    /// Opens an existing store for writing, or an empty one in memory if the project has none. A named store must exist.
    pub(crate) async fn open_existing(ui: &Ui) -> Result<Self, Failure> {
        Self::existing(ui, Access::Write).await
    }

    /// Opens an existing store for reading; see [`ProjectStore::open_existing`].
    pub(crate) async fn open_to_read(ui: &Ui) -> Result<Self, Failure> {
        Self::existing(ui, Access::Read).await
    }

    async fn existing(ui: &Ui, access: Access) -> Result<Self, Failure> {
        let here = current_folder()?;
        let named = match named(ui)? {
            Some(Named::Database(url)) => return Self::database(&url, &here, access).await,
            Some(Named::File(path)) => Some(path),
            None => None,
        };
        let path = named.clone().unwrap_or_else(|| project_folder(&here).join(FILE));
        if is_there(&path, &here)? {
            return Self::file(&path, &here, access == Access::Read);
        }
        match named {
            Some(path) => Err(missing(&shown(&path, &here))),
            None => Ok(Self { location: shown(&path, &here), ..Self::memory() }),
        }
    }

    /// Creates a store in memory.
    pub(crate) fn memory() -> Self {
        Self { backend: Arc::new(MemoryStore::new()), location: "memory".to_owned(), path: None }
    }

    #[cfg(not(feature = "sqlite"))]
    fn file(path: &Path, here: &Path, _: bool) -> Result<Self, Failure> {
        let path = shown(path, here);
        Err(Failure::feature(format!("this binary cannot open the SQLite store {path}"), "sqlite")
            .hint("or use --memory"))
    }

    #[cfg(feature = "sqlite")]
    fn file(path: &Path, here: &Path, read_only: bool) -> Result<Self, Failure> {
        // SQLite would write its journal beside a device.
        if fs::metadata(path).is_ok_and(|file| !file.is_file() && !file.is_dir()) {
            let message = format!("cannot open the store {}: it is a device or a pipe", shown(path, here));
            return Err(Failure::environment(message).hint("name a file, such as --store runs.db"));
        }
        let options = SqliteOptions::builder().path(path).read_only(read_only).build();
        let opened = SqliteStore::with(options);
        let is_empty = || fs::metadata(path).is_ok_and(|file| file.len() == 0);
        if matches!(opened, Err(StoreError::Older { .. })) && is_empty() {
            let message = format!("cannot open the store {}: the file is empty", shown(path, here));
            let hint =
                "name another file with --store or POSITRONIC_STORE; `run` and `import` create a store in this one";
            return Err(Failure::environment(message).hint(hint));
        }
        Ok(Self { backend: Arc::new(opened?), location: shown(path, here), path: Some(path.to_owned()) })
    }

    #[cfg(not(feature = "postgres"))]
    #[expect(clippy::unused_async, reason = "with the feature `postgres` it connects")]
    async fn database(url: &str, _: &Path, _: Access) -> Result<Self, Failure> {
        let place = without_password(url);
        let message = format!("this binary cannot open the PostgreSQL store {place}");
        Err(Failure::feature(message, "postgres").hint("or name a file, such as --store runs.db"))
    }

    #[cfg(feature = "postgres")]
    async fn database(url: &str, here: &Path, access: Access) -> Result<Self, Failure> {
        use positronic_postgres::{PostgresOptions, PostgresStore};

        let location = without_password(url);
        let mut options = PostgresOptions::builder().url(url).read_only(true).build();
        let found = match access {
            Access::Create => None,
            Access::Read | Access::Write => match PostgresStore::with(options.clone()).await {
                Err(StoreError::Older { .. }) => return Err(missing(&location)),
                found => Some(found?),
            },
        };
        let folder = if access == Access::Create { own(here)? } else { project_folder(here) };
        let opened = match found.filter(|_| access == Access::Read) {
            Some(found) => found,
            None => {
                options.read_only = false;
                PostgresStore::with(options).await?
            }
        };
        Ok(Self { backend: Arc::new(opened), location, path: Some(folder.join(DATABASE)) })
    }

    /// Copies the store into a new file, and returns the store's location.
    pub(crate) async fn back_up(to: &Path, ui: &Ui) -> Result<String, Failure> {
        let here = current_folder()?;
        let path = match named(ui)? {
            Some(Named::Database(url)) => return Err(in_database(&url)),
            Some(Named::File(path)) => path,
            None => project_folder(&here).join(FILE),
        };
        if !is_there(&path, &here)? {
            return Err(missing(&shown(&path, &here)));
        }
        Self::copy(&path, &here, to).await?;
        Ok(shown(&path, &here))
    }

    #[cfg(feature = "sqlite")]
    async fn copy(path: &Path, _: &Path, to: &Path) -> Result<(), Failure> {
        let options = SqliteOptions::builder().path(path).read_only(true).build();
        Ok(SqliteStore::with(options)?.back_up(to).await?)
    }

    #[cfg(not(feature = "sqlite"))]
    #[expect(clippy::unused_async, reason = "with the feature `sqlite` it waits for the copy")]
    async fn copy(path: &Path, here: &Path, _: &Path) -> Result<(), Failure> {
        Self::file(path, here, true).map(drop)
    }

    /// Returns whether runs outlive this process.
    pub(crate) const fn is_persistent(&self) -> bool {
        self.path.is_some()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(Arc::clone(&self.backend))
    }
}

/// What a command does with its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Create,
    Write,
    Read,
}

/// A store that a flag or the environment names.
enum Named {
    File(PathBuf),
    /// The address of a database.
    Database(String),
}

fn named(ui: &Ui) -> Result<Option<Named>, Failure> {
    let Some(named) = ui.store_args.store.clone().or_else(|| ui.settings.store.clone()) else { return Ok(None) };
    match named.to_str().map(|text| (text, scheme(text))) {
        Some((url, _)) if is_address(url) => Ok(Some(Named::Database(url.to_owned()))),
        // The rest may have a password.
        Some((_, Some(scheme))) => {
            let message = format!("cannot open a store at `{scheme}://…`: a store is a file or a PostgreSQL database");
            let hint = match scheme.to_ascii_lowercase().as_str() {
                "sqlite" | "file" => "write the path of the file without a scheme, such as --store runs.db",
                _ => {
                    "name a file, such as --store runs.db, or a database, such as --store postgres://USER@HOST/DATABASE"
                }
            };
            Err(Failure::usage(message).hint(hint))
        }
        _ => Ok(Some(Named::File(named))),
    }
}

/// Returns the error for a backup of a database.
fn in_database(url: &str) -> Failure {
    let schema = url.split(['?', '&']).find_map(|part| part.strip_prefix("schema=")).unwrap_or("positronic");
    Failure::usage(format!("cannot copy {} into a file: PostgreSQL has its own backups", without_password(url)))
        .hint(format!("pg_dump --format=custom --schema={schema} --file=FILE DATABASE"))
}

/// Returns whether a file exists. One in a folder that this user must not enter may exist.
fn is_there(path: &Path, here: &Path) -> Result<bool, Failure> {
    path.try_exists().map_err(Failure::file(shown(path, here), "cannot open the store"))
}

fn missing(location: &str) -> Failure {
    Failure::environment(format!("no store found at {location}"))
        .hint("check --store and POSITRONIC_STORE; `run` and `import` create a missing store")
}

pub(crate) fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(Failure::file(".", "cannot enter"))
}

/// Creates the folder of the project's store, which git ignores.
fn own(here: &Path) -> Result<PathBuf, Failure> {
    let folder = project_folder(here);
    private::make_folder(&folder).map_err(Failure::file(&folder, "cannot create the folder of the store"))?;
    let ignored = folder.join(".gitignore");
    if !ignored.exists() {
        fs::write(&ignored, "*\n").map_err(Failure::file(&ignored, "cannot write"))?;
    }
    Ok(folder)
}

/// Renders a path relative to the current folder.
pub(crate) fn relative(path: &Path) -> String {
    current_folder().map_or_else(|_| path.display().to_string(), |here| shown(path, &here))
}

/// Maximum number of `..` in a relative path.
const UP: usize = 4;

/// Renders a path relative to a folder.
fn shown(path: &Path, here: &Path) -> String {
    // A path that shares only the root stays absolute.
    let parents = here.ancestors().take(UP).take_while(|parent| parent.parent().is_some());
    let short = parents.enumerate().find_map(|(up, parent)| {
        let rest = path.strip_prefix(parent).ok()?;
        Some(PathBuf::from_iter(std::iter::repeat_n("..", up)).join(rest))
    });
    short.unwrap_or_else(|| path.to_owned()).display().to_string()
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_stores_stay_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let look = |name: &str| ProjectStore::file(&folder.path().join(name), folder.path(), true);
        let other = rusqlite::Connection::open(folder.path().join("other.db")).unwrap();
        other.execute_batch("CREATE TABLE things (thing TEXT)").unwrap();
        drop(other);
        fs::write(folder.path().join("empty.db"), "").unwrap();

        for name in ["other.db", "empty.db"] {
            let before = fs::read(folder.path().join(name)).unwrap();
            assert!(look(name).is_err());
            assert_eq!(fs::read(folder.path().join(name)).unwrap(), before, "{name}");
        }
    }

    #[test]
    fn store_is_next_to_the_manifest_and_ignored_by_git() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("shop/src/brains");
        fs::create_dir_all(&deep).unwrap();
        fs::write(root.path().join("shop/Cargo.toml"), "").unwrap();

        let path = own(&deep).unwrap().join(FILE);

        assert_eq!(path, root.path().join("shop/.positronic/runs.db"));
        assert_eq!(fs::read_to_string(path.with_file_name(".gitignore")).unwrap(), "*\n");
        assert_eq!(shown(&path, &root.path().join("shop")), ".positronic/runs.db");
        assert_eq!(shown(&path, &deep), "../../.positronic/runs.db");
        assert_eq!(shown(&path, Path::new("/elsewhere")), path.display().to_string());
    }
}
