//! Listing of an output folder, and detection of changes.

use std::collections::BTreeMap;

use cap_std::fs::Dir;
use cap_std::time::SystemTime;
use serde::Serialize;

use super::{FolderError, FolderOptions, OWN, OutputFolder, io, name};

/// The maximum depth of folders; a folder with deeper ones counts as full.
const MAX_DEPTH: usize = 64;

/// The maximum number of visited entries, to bound the time of a walk; a folder with more counts as full.
const MAX_ENTRIES: usize = 20_000;

/// An entry of an output folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FolderEntry {
    /// Its path in the folder.
    pub path: String,
    /// Its kind: `file`, `folder`, `link` or `other`. Links are not followed.
    pub kind: &'static str,
    /// The size of a file, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// A snapshot of a folder's files: size and modification time, by path.
#[derive(Debug, Clone, Default)]
pub(in crate::toolbox) struct Stamps(BTreeMap<String, (u64, Option<SystemTime>)>);

impl Stamps {
    /// Lists the files that are new or changed since an earlier snapshot, sorted by path, each with its size.
    pub(in crate::toolbox) fn since(&self, before: &Self) -> Vec<(String, u64)> {
        let changed = self.0.iter().filter(|(path, stamp)| before.0.get(*path) != Some(stamp));
        changed.map(|(path, (size, _))| (path.clone(), *size)).collect()
    }
}

/// The usage of a folder, including hidden files.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::toolbox) struct Usage {
    /// The sizes of all files, in bytes.
    pub(super) bytes: u64,
    /// The number of entries other than folders.
    pub(super) files: usize,
    /// The reason if the count is incomplete.
    pub(super) beyond: Option<&'static str>,
}

impl Usage {
    /// Checks the limits of the folder.
    pub(in crate::toolbox) fn check(&self, limits: &FolderOptions) -> Result<(), FolderError> {
        let full = |used: String, limit: String| Err(FolderError::Full { used, limit });
        if let Some(beyond) = self.beyond {
            return full(beyond.to_owned(), format!("{MAX_ENTRIES} files and folders, {MAX_DEPTH} deep"));
        }
        if self.bytes > limits.max_total {
            return full(format!("{} bytes", self.bytes), format!("{} bytes", limits.max_total));
        }
        if self.files > limits.max_files {
            return full(format!("{} files", self.files), format!("{} files", limits.max_files));
        }
        Ok(())
    }
}

impl OutputFolder {
    /// Lists the folder or a subfolder, sorted by path.
    ///
    /// # Errors
    ///
    /// A [`FolderError`] when the path is invalid, or the subfolder does not exist.
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
        walk(&dir, &before, &mut Walk::listing(), &mut |entry, _| found.push(entry)).map_err(io(&before))?;
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    /// Takes a snapshot of all files.
    pub(in crate::toolbox) fn stamps(&self) -> Result<Stamps, FolderError> {
        let mut stamps = Stamps::default();
        walk(self.dir(), "", &mut Walk::listing(), &mut |entry, changed| {
            if let Some(size) = entry.size {
                stamps.0.insert(entry.path, (size, changed));
            }
        })
        .map_err(io("."))?;
        Ok(stamps)
    }

    /// Computes the usage.
    pub(in crate::toolbox) fn usage(&self) -> Result<Usage, FolderError> {
        let mut usage = Usage::default();
        let mut walking = Walk { hides_own: false, ..Walk::listing() };
        walk(self.dir(), "", &mut walking, &mut |entry, _| {
            usage.bytes = usage.bytes.saturating_add(entry.size.unwrap_or(0));
            usage.files += usize::from(entry.kind != "folder");
        })
        .map_err(io("."))?;
        Ok(Usage { beyond: walking.beyond, ..usage })
    }
}

/// The state of a walk through folders.
struct Walk {
    /// Whether internal files are omitted.
    hides_own: bool,
    /// The remaining number of entries.
    left: usize,
    /// The remaining depth.
    depth: usize,
    /// The reason why it is incomplete.
    beyond: Option<&'static str>,
}

impl Walk {
    const fn listing() -> Self {
        Self { hides_own: true, left: MAX_ENTRIES, depth: MAX_DEPTH, beyond: None }
    }
}

fn walk(
    dir: &Dir,
    before: &str,
    walking: &mut Walk,
    found: &mut dyn FnMut(FolderEntry, Option<SystemTime>),
) -> std::io::Result<()> {
    for entry in dir.entries()? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if walking.hides_own && name.starts_with(OWN) {
            continue;
        }
        if walking.left == 0 {
            walking.beyond = Some("too many files and folders to count");
            return Ok(());
        }
        walking.left -= 1;
        let path = format!("{before}{name}");
        // It may have been removed meanwhile.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            found(FolderEntry { path: path.clone(), kind: "folder", size: None }, None);
            if walking.depth == 0 {
                walking.beyond = Some("folders too deep to count");
            } else if let Ok(inner) = entry.open_dir() {
                walking.depth -= 1;
                walk(&inner, &format!("{path}/"), walking, found)?;
                walking.depth += 1;
            } else {
                walking.beyond = Some("a folder that cannot be read");
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
