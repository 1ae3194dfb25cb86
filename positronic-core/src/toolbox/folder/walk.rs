//! What is in an output folder, and what has changed in it.

use std::collections::BTreeMap;

use cap_std::fs::Dir;
use cap_std::time::SystemTime;
use serde::Serialize;

use super::{FolderError, OWN, OutputFolder, io, name};

/// How deep folders are walked into; deeper ones are passed over.
const MAX_DEPTH: usize = 32;

/// How many entries a walk looks at, so that a folder that a program has filled does not hold anybody up.
const MAX_ENTRIES: usize = 20_000;

/// Something in an output folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FolderEntry {
    /// Its path in the folder.
    pub path: String,
    /// What it is: `file`, `folder`, `link` or `other`. Links are not followed.
    pub kind: &'static str,
    /// The size of a file, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// The files of a folder as of one moment: size and time of change, by path.
#[derive(Debug, Clone, Default)]
pub(in crate::toolbox) struct Stamps(BTreeMap<String, (u64, Option<SystemTime>)>);

impl Stamps {
    pub(in crate::toolbox) fn total(&self) -> u64 {
        self.0.values().map(|(size, _)| size).sum()
    }

    pub(in crate::toolbox) fn len(&self) -> usize {
        self.0.len()
    }

    /// Lists the files that are new or changed since an earlier moment, in the order of their paths.
    pub(in crate::toolbox) fn since(&self, before: &Self) -> Vec<String> {
        self.0.iter().filter(|(path, stamp)| before.0.get(*path) != Some(stamp)).map(|(path, _)| path.clone()).collect()
    }
}

impl OutputFolder {
    /// Lists what is in the folder, or in a folder in it, in the order of the paths.
    ///
    /// # Errors
    ///
    /// A [`FolderError`] when the path is none, or there is no such folder.
    pub fn list(&self, path: Option<&str>) -> Result<Vec<FolderEntry>, FolderError> {
        let mut found = Vec::new();
        let (dir, before) = match path.filter(|path| !path.is_empty()) {
            Some(path) => {
                let inside = name::checked(path)?;
                let inside = if inside.as_os_str().is_empty() { ".".into() } else { inside };
                let before =
                    if inside.as_os_str() == "." { String::new() } else { format!("{}/", super::slashed(&inside)) };
                (self.dir().open_dir(inside).map_err(io(path))?, before)
            }
            None => (self.dir().try_clone().map_err(io("."))?, String::new()),
        };
        let mut left = MAX_ENTRIES;
        walk(&dir, &before, MAX_DEPTH, &mut left, &mut |entry, _| found.push(entry)).map_err(io(&before))?;
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    /// Takes the stamps of all files.
    pub(in crate::toolbox) fn stamps(&self) -> Result<Stamps, FolderError> {
        let mut stamps = Stamps::default();
        let mut left = MAX_ENTRIES;
        walk(self.dir(), "", MAX_DEPTH, &mut left, &mut |entry, changed| {
            if let Some(size) = entry.size {
                stamps.0.insert(entry.path, (size, changed));
            }
        })
        .map_err(io("."))?;
        Ok(stamps)
    }
}

fn walk(
    dir: &Dir,
    before: &str,
    depth: usize,
    left: &mut usize,
    found: &mut dyn FnMut(FolderEntry, Option<SystemTime>),
) -> std::io::Result<()> {
    for entry in dir.entries()? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(OWN) {
            continue;
        }
        if *left == 0 {
            return Ok(());
        }
        *left -= 1;
        let path = format!("{before}{name}");
        // What went away in the meantime is not there.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            found(FolderEntry { path: path.clone(), kind: "folder", size: None }, None);
            if depth > 0
                && let Ok(inner) = entry.open_dir()
            {
                walk(&inner, &format!("{path}/"), depth - 1, left, found)?;
            }
        } else if kind.is_file() {
            let Ok(known) = entry.metadata() else { continue };
            found(FolderEntry { path, kind: "file", size: Some(known.len()) }, known.modified().ok());
        } else {
            let kind = if kind.is_symlink() { "link" } else { "other" };
            found(FolderEntry { path, kind, size: None }, None);
        }
    }
    Ok(())
}
