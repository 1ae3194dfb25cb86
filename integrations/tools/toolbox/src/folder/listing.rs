//! Listing of an output folder, its usage, and detection of changes.

use std::collections::BTreeMap;

use cap_std::time::SystemTime;
use serde::Serialize;

use super::owner_rights::{CHANGE, LIST, give_rights, open_folder};
use super::walk::{MAX_ENTRIES, walk};
use super::{FolderError, FolderOptions, OWN, OutputFolder, io, name};

/// The maximum number of skipped entries that are named.
const NAMED: usize = 10;

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
    /// The reason why it, or what is in it, cannot be reached by its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<&'static str>,
}

/// A snapshot of a folder's files: size and modification time, by path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stamps(BTreeMap<String, (u64, Option<SystemTime>)>);

impl Stamps {
    /// Lists the files that are new or changed since an earlier snapshot, sorted by path, each with its size.
    pub(crate) fn since(&self, before: &Self) -> Vec<(String, u64)> {
        let changed = self.0.iter().filter(|(path, stamp)| before.0.get(*path) != Some(stamp));
        changed.map(|(path, (size, _))| (path.clone(), *size)).collect()
    }
}

/// The usage of a folder, including hidden files.
#[derive(Debug, Clone, Default)]
pub(crate) struct FolderUsage {
    /// The sizes of all files, in bytes.
    pub(crate) bytes: u64,
    /// The number of entries other than folders.
    pub(crate) files: usize,
    /// The number of folders.
    pub(crate) folders: usize,
    /// Whether there are too many entries to count.
    pub(super) is_beyond: bool,
    /// Sentences about what tools cannot reach.
    pub(crate) skipped: Vec<String>,
}

impl FolderUsage {
    /// Checks the limits of the folder.
    pub(crate) fn check(&self, limits: &FolderOptions) -> Result<(), FolderError> {
        let full = |used: String, limit: String| Err(FolderError::Full { used, limit });
        if self.is_beyond {
            return full("too many files and folders to count".to_owned(), format!("{MAX_ENTRIES} files and folders"));
        }
        if self.bytes > limits.max_total {
            return full(format!("{} bytes", self.bytes), format!("{} bytes", limits.max_total));
        }
        if self.files > limits.max_files {
            return full(format!("{} files", self.files), format!("{} files", limits.max_files));
        }
        Ok(())
    }

    fn name(&mut self, path: &str, reason: &str) {
        // What a program has in its own folder goes with it.
        if path.starts_with(OWN) {
            return;
        }
        match self.skipped.len() {
            0..NAMED => self.skipped.push(format!("`{}`: {reason}", path.escape_debug())),
            NAMED => self.skipped.push("more entries are skipped for reasons like these".to_owned()),
            _ => {}
        }
    }
}

impl OutputFolder {
    /// Lists the folder or a subfolder, sorted by path. What is nested deeper than 64 folders is left out.
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
                (open_folder(self.dir(), inside, LIST).map_err(io(path))?.0, before)
            }
            None => (self.dir().try_clone().map_err(io("."))?, String::new()),
        };
        walk(&dir, &before, true, &mut |entry| {
            if !entry.is_hidden {
                let (path, kind, size, skipped) = (entry.path, entry.kind, entry.size, entry.skipped);
                found.push(FolderEntry { path, kind, size, skipped });
            }
        })
        .map_err(io(&before))?;
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    /// Takes a snapshot of all files that tools can reach.
    pub(crate) fn stamps(&self) -> Result<Stamps, FolderError> {
        let mut stamps = Stamps::default();
        walk(self.dir(), "", true, &mut |entry| {
            if let Some(size) = entry.size.filter(|_| !entry.is_hidden && entry.skipped.is_none()) {
                stamps.0.insert(entry.path, (size, entry.changed));
            }
        })
        .map_err(io("."))?;
        Ok(stamps)
    }

    /// Computes the usage.
    pub(crate) fn usage(&self) -> Result<FolderUsage, FolderError> {
        let mut usage = FolderUsage::default();
        let is_whole = walk(self.dir(), "", false, &mut |entry| {
            usage.bytes = usage.bytes.saturating_add(entry.size.unwrap_or(0));
            let is_folder = entry.kind == "folder";
            usage.folders += usize::from(is_folder);
            usage.files += usize::from(!is_folder);
            if entry.is_hidden {
                return;
            }
            match entry.skipped {
                Some(reason) => usage.name(&entry.path, reason),
                None if entry.is_opened => usage.name(&entry.path, "it could not be read; it can be read now"),
                None => {}
            }
        })
        .map_err(io("."))?;
        usage.is_beyond = !is_whole;
        Ok(usage)
    }

    /// Makes the folder itself usable again, after a program has changed its mode.
    pub(crate) fn reopen(&self) {
        give_rights(self.dir(), CHANGE);
    }
}
