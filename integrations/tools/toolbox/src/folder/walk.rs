//! Walk through an output folder, at any depth, past whatever cannot be read.

use std::ffi::OsString;
use std::io;

use cap_std::fs::Dir;
use cap_std::time::SystemTime;

use super::OWN;
use super::owner_rights::{LIST, open_folder};

/// The maximum depth of listed folders. Deeper ones are counted only: their paths are longer than a tool takes.
const MAX_DEPTH: usize = 64;

/// The maximum number of visited entries, to bound the time of a walk; a folder with more counts as full.
pub(super) const MAX_ENTRIES: usize = 20_000;

/// The maximum number of folders that a walk has open: those above are opened again on the way back.
const MAX_OPEN: usize = 64;

/// An entry that a walk has come to.
pub(super) struct WalkEntry {
    /// Its path, with the replacement character for what is not UTF-8.
    pub(super) path: String,
    /// Its kind: `file`, `folder`, `link` or `other`.
    pub(super) kind: &'static str,
    /// The size of a file, in bytes.
    pub(super) size: Option<u64>,
    /// When a file was changed.
    pub(super) changed: Option<SystemTime>,
    /// The reason why tools cannot reach it, or what is in it.
    pub(super) skipped: Option<&'static str>,
    /// Whether it is in a folder that is skipped, and only counted.
    pub(super) is_hidden: bool,
    /// Whether it was a folder that could not be read, and now can.
    pub(super) is_opened: bool,
}

/// Visits all entries below a folder, whose path is `before`. Returns whether it came to the end.
pub(super) fn walk(root: &Dir, before: &str, hides_own: bool, found: &mut dyn FnMut(WalkEntry)) -> io::Result<bool> {
    let mut walk = Walk { root, hides_own, left: MAX_ENTRIES, is_whole: true, levels: Vec::new(), found };
    walk.read(root.try_clone()?, OsString::new(), before.to_owned(), false)?;
    while let Some(level) = walk.levels.last_mut() {
        match level.folders.pop() {
            Some(name) => walk.enter(name),
            None => _ = walk.levels.pop(),
        }
    }
    Ok(walk.is_whole)
}

/// A folder on the way from the root to where the walk is.
struct Level {
    name: OsString,
    /// Its path, with `/` at the end; empty if it is hidden.
    path: String,
    /// `None` if it was closed.
    dir: Option<Dir>,
    /// The subfolders that are left.
    folders: Vec<OsString>,
    is_hidden: bool,
}

struct Walk<'a> {
    root: &'a Dir,
    hides_own: bool,
    /// The remaining number of entries.
    left: usize,
    is_whole: bool,
    levels: Vec<Level>,
    found: &'a mut dyn FnMut(WalkEntry),
}

impl Walk<'_> {
    /// Visits the files of a folder, and makes it the deepest level.
    fn read(&mut self, dir: Dir, name: OsString, path: String, is_hidden: bool) -> io::Result<()> {
        let mut folders = Vec::new();
        for entry in dir.entries()? {
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            if self.hides_own && name.to_string_lossy().starts_with(OWN) {
                continue;
            }
            if self.left == 0 {
                self.is_whole = false;
                self.levels.clear();
                return Ok(());
            }
            self.left -= 1;
            // It may have been removed meanwhile.
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(name);
                continue;
            }
            let known = kind.is_file().then(|| entry.metadata().ok()).flatten();
            (self.found)(WalkEntry {
                path: if is_hidden { String::new() } else { format!("{path}{}", name.to_string_lossy()) },
                kind: if kind.is_file() {
                    "file"
                } else if kind.is_symlink() {
                    "link"
                } else {
                    "other"
                },
                size: known.as_ref().map(cap_std::fs::Metadata::len),
                changed: known.and_then(|known| known.modified().ok()),
                skipped: name.to_str().is_none().then_some(NOT_UTF_8),
                is_hidden,
                is_opened: false,
            });
        }
        self.levels.push(Level { name, path, dir: Some(dir), folders, is_hidden });
        if let Some(above) = self.levels.len().checked_sub(MAX_OPEN + 1)
            && let Some(level) = self.levels.get_mut(above)
        {
            level.dir = None;
        }
        Ok(())
    }

    /// Visits a subfolder of the deepest level.
    fn enter(&mut self, name: OsString) {
        let depth = self.levels.len();
        let Some(level) = self.levels.last() else { return };
        let is_hidden = level.is_hidden;
        let path = if is_hidden { String::new() } else { format!("{}{}", level.path, name.to_string_lossy()) };
        let opened = self.dir().and_then(|dir| open_folder(dir, &name, LIST));
        let is_opened = opened.as_ref().is_ok_and(|(_, is_opened)| *is_opened);
        let mut skipped = match name.to_str() {
            None => Some(NOT_UTF_8),
            Some(_) => (depth >= MAX_DEPTH).then_some("it is nested too deep"),
        };
        let inside = if is_hidden { String::new() } else { format!("{path}/") };
        if opened.and_then(|(dir, _)| self.read(dir, name, inside, is_hidden || skipped.is_some())).is_err() {
            skipped = Some("it cannot be read");
        }
        (self.found)(WalkEntry { path, kind: "folder", size: None, changed: None, skipped, is_hidden, is_opened });
    }

    /// Returns the deepest level's folder. If it was closed, it is opened again, with those above it.
    fn dir(&mut self) -> io::Result<&Dir> {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let depth = self.levels.len();
        if self.levels.last().is_some_and(|level| level.dir.is_none()) {
            let mut dir = self.root.try_clone()?;
            for (at, level) in self.levels.iter_mut().enumerate() {
                if at > 0 {
                    dir = dir.open_dir(&level.name)?;
                }
                if at + MAX_OPEN >= depth {
                    level.dir = Some(dir.try_clone()?);
                }
            }
        }
        self.levels.last().and_then(|level| level.dir.as_ref()).ok_or_else(gone)
    }
}

const NOT_UTF_8: &str = "its name is not UTF-8";
