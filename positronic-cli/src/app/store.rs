//! Where runs are kept: the file, found and opened.
//!
//! `--store` names it, else the environment, else it is `runs.db` in the project's own [folder]. Commands that only look
//! do not make it: where the project has none, there are no runs, and one that is named has to be there. Without the feature
//! `sqlite` there is no file: runs are in memory, until the command ends.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use positronic_core::runner::Client;
use positronic_core::store::MemoryStore;
#[cfg(feature = "sqlite")]
use positronic_core::store::{SqliteOptions, SqliteStore, StoreError};

use crate::app::failure::Failure;
use crate::app::private;
use crate::app::project_dir::folder;
use crate::app::ui::Ui;

const FILE: &str = "runs.db";

/// Where runs are kept.
#[derive(Clone)]
pub(crate) struct ProjectStore {
    pub(crate) store: Backend,
    /// The place in words, for messages.
    pub(crate) place: String,
    /// The file, where it is one.
    pub(crate) path: Option<PathBuf>,
}

/// A store.
#[derive(Clone)]
pub(crate) enum Backend {
    Memory(MemoryStore),
    #[cfg(feature = "sqlite")]
    File(SqliteStore),
}

impl ProjectStore {
    /// Opens the store, and makes it where there is none. Without SQLite, one that is not named is in memory.
    pub(crate) fn open(ui: &Ui) -> Result<Self, Failure> {
        let here = here()?;
        let path = match named(ui) {
            Some(path) => path,
            None if cfg!(not(feature = "sqlite")) => return Ok(Self::memory()),
            None => own(&here)?,
        };
        Self::file(&path, &here, false)
    }

    /// Opens the store to write in it, or an empty one where the project has none yet. One that was named has to be there.
    pub(crate) fn known(ui: &Ui) -> Result<Self, Failure> {
        Self::there(ui, false)
    }

    /// Opens the store to read it alone; see [`ProjectStore::known`].
    pub(crate) fn look(ui: &Ui) -> Result<Self, Failure> {
        Self::there(ui, true)
    }

    fn there(ui: &Ui, read_only: bool) -> Result<Self, Failure> {
        let here = here()?;
        let named = named(ui);
        let path = named.clone().unwrap_or_else(|| folder(&here).join(FILE));
        if path.exists() {
            return Self::file(&path, &here, read_only);
        }
        match named {
            Some(path) => Err(Failure::NoStore { place: shown(&path, &here) }),
            None => Ok(Self { place: shown(&path, &here), ..Self::memory() }),
        }
    }

    /// Makes a store that ends with this process.
    pub(crate) fn memory() -> Self {
        Self { store: Backend::Memory(MemoryStore::new()), place: "memory".to_owned(), path: None }
    }

    #[cfg(not(feature = "sqlite"))]
    fn file(path: &Path, here: &Path, _: bool) -> Result<Self, Failure> {
        Err(Failure::Store {
            message: format!("{} cannot be opened: this command was built without SQLite", shown(path, here)),
            hints: vec!["build it with the feature `sqlite` of positronic-cli, or say --memory".to_owned()],
        })
    }

    #[cfg(feature = "sqlite")]
    fn file(path: &Path, here: &Path, read_only: bool) -> Result<Self, Failure> {
        let options = SqliteOptions::builder().path(path).read_only(read_only).build();
        let mut opened = SqliteStore::with(options.clone());
        // A file of an older format becomes one of this format where it is opened to write.
        let holds_something = || fs::metadata(path).is_ok_and(|file| file.len() > 0);
        if matches!(opened, Err(StoreError::Older { .. })) && holds_something() && SqliteStore::open(path).is_ok() {
            opened = SqliteStore::with(options);
        }
        if matches!(opened, Err(StoreError::Older { .. })) && !holds_something() {
            let message = format!("{} is an empty file, and holds no event store yet", shown(path, here));
            let hints = vec!["`run` and `import` make one of it".to_owned()];
            return Err(Failure::Store { message, hints });
        }
        Ok(Self { store: Backend::File(opened?), place: shown(path, here), path: Some(path.to_owned()) })
    }

    /// Says whether runs outlive this process.
    pub(crate) const fn lasts(&self) -> bool {
        !matches!(self.store, Backend::Memory(_))
    }

    pub(crate) fn client(&self) -> Client {
        match &self.store {
            Backend::Memory(store) => Client::new(store.clone()),
            #[cfg(feature = "sqlite")]
            Backend::File(store) => Client::new(store.clone()),
        }
    }
}

/// Says what to do where runs cannot be kept.
pub(crate) fn unkept(failure: &Failure) -> Failure {
    let hint = "--store FILE keeps runs elsewhere, and --memory runs it without keeping it";
    Failure::Store { message: failure.to_string(), hints: vec![hint.to_owned()] }
}

fn named(ui: &Ui) -> Option<PathBuf> {
    ui.place.store.clone().or_else(|| ui.settings.store.clone())
}

fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|source| file(Path::new("."), "cannot be entered", source))
}

/// Returns the project's own file, whose folder is there then and hidden from git.
fn own(here: &Path) -> Result<PathBuf, Failure> {
    let folder = folder(here);
    private::make_folder(&folder).map_err(|source| file(&folder, "cannot be made, to keep runs in it", source))?;
    let ignored = folder.join(".gitignore");
    if !ignored.exists() {
        fs::write(&ignored, "*\n").map_err(|source| file(&ignored, "cannot be written", source))?;
    }
    Ok(folder.join(FILE))
}

fn file(path: &Path, doing: &'static str, source: io::Error) -> Failure {
    Failure::File { path: path.to_owned(), doing, source }
}

/// Renders a path relative to the current folder.
pub(crate) fn relative(path: &Path) -> String {
    here().map_or_else(|_| path.display().to_string(), |here| shown(path, &here))
}

/// How many folders up a path is still told from here.
const UP: usize = 4;

/// Tells a path from a folder.
fn shown(path: &Path, here: &Path) -> String {
    // What has nothing but the root in common is told whole.
    let around = here.ancestors().take(UP).take_while(|around| around.parent().is_some());
    let told = around.enumerate().find_map(|(up, around)| {
        let rest = path.strip_prefix(around).ok()?;
        Some(PathBuf::from_iter(std::iter::repeat_n("..", up)).join(rest))
    });
    told.unwrap_or_else(|| path.to_owned()).display().to_string()
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    /// A store as an earlier release wrote it.
    const OLDER: &str = include_str!("../../../positronic-core/tests/store/sqlite/format_4.sql");

    #[test]
    fn a_store_of_an_older_format_is_looked_at_and_what_is_none_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let look = |name: &str| ProjectStore::file(&folder.path().join(name), folder.path(), true);
        let sqlite = |name: &str| rusqlite::Connection::open(folder.path().join(name)).unwrap();
        sqlite("older.db").execute_batch(OLDER).unwrap();
        sqlite("other.db").execute_batch("CREATE TABLE things (thing TEXT)").unwrap();
        fs::write(folder.path().join("empty.db"), "").unwrap();

        assert!(look("older.db").is_ok());

        for name in ["other.db", "empty.db"] {
            let before = fs::read(folder.path().join(name)).unwrap();
            assert!(look(name).is_err());
            assert_eq!(fs::read(folder.path().join(name)).unwrap(), before, "{name}");
        }
    }

    #[test]
    fn runs_are_kept_beside_the_manifest_and_hidden_from_git() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("shop/src/brains");
        fs::create_dir_all(&deep).unwrap();
        fs::write(root.path().join("shop/Cargo.toml"), "").unwrap();

        let path = own(&deep).unwrap();

        assert_eq!(path, root.path().join("shop/.positronic/runs.db"));
        assert_eq!(fs::read_to_string(path.with_file_name(".gitignore")).unwrap(), "*\n");
        assert_eq!(shown(&path, &root.path().join("shop")), ".positronic/runs.db");
        assert_eq!(shown(&path, &deep), "../../.positronic/runs.db");
        assert_eq!(shown(&path, Path::new("/elsewhere")), path.display().to_string());
    }
}
