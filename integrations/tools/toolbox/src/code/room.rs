//! Limits of a program's output folder and its disk. The kernel does not limit the size of a folder, so it is polled.

use std::collections::BTreeSet;

use super::CodeError;
use crate::folder::{FolderError, OutputFolder};

/// The free space of a disk that programs leave to others, such as to the store; a sixteenth of a small disk.
const RESERVE: u64 = 256 << 20;

/// How much the free space may shrink, in bytes, before the folder is counted out of turn.
const MAX_SHRINKAGE: u64 = 64 << 20;

/// The number of polls before the folder is counted for the first time.
const FIRST: usize = 8;
/// The number of polls between two counts of an empty folder.
const EVERY: usize = 5;
/// The number of entries for which there is one more poll between two counts, since counting them takes time.
const ENTRIES_A_POLL: usize = 200;

/// The room that a program has left.
pub(super) struct DiskUse<'a> {
    folder: &'a OutputFolder,
    /// The size of the program's own file, which does not count.
    program: usize,
    /// After how many polls the folder is counted again.
    polls: usize,
    /// The free space when it was counted.
    free: u64,
    /// Sentences about what tools cannot reach in it. What could not be read at first can be read later.
    pub(super) skipped: BTreeSet<String>,
}

impl<'a> DiskUse<'a> {
    /// Checks that the folder has room for a program of some bytes.
    pub(super) fn of(folder: &'a OutputFolder, program: usize) -> Result<Self, CodeError> {
        let disk = Disk::of(folder);
        let full = folder.usage()?.check(folder.options()).err();
        if let Some(full) = full.or_else(|| disk.and_then(Disk::full)) {
            return Err(CodeError::NoRoom { full });
        }
        Ok(Self { folder, program, polls: FIRST, free: disk.map_or(0, |disk| disk.free), skipped: BTreeSet::new() })
    }

    /// Returns how a running program has exceeded its room, if it has.
    pub(super) fn exceeded(&mut self) -> Option<FolderError> {
        let disk = Disk::of(self.folder);
        if let Some(full) = disk.and_then(Disk::full) {
            return Some(full);
        }
        let free = disk.map_or(0, |disk| disk.free);
        self.polls = self.polls.saturating_sub(1);
        if self.polls > 0 && free.saturating_add(MAX_SHRINKAGE.max(self.folder.options().max_total)) > self.free {
            return None;
        }
        let mut usage = self.folder.usage().ok()?;
        (self.polls, self.free) = (EVERY + (usage.files + usage.folders) / ENTRIES_A_POLL, free);
        usage.files = usage.files.saturating_sub(1);
        usage.bytes = usage.bytes.saturating_sub(self.program as u64);
        self.skipped.extend(std::mem::take(&mut usage.skipped));
        usage.check(self.folder.options()).err()
    }
}

/// The disk of a folder, in bytes.
#[derive(Clone, Copy)]
struct Disk {
    free: u64,
    total: u64,
}

impl Disk {
    #[cfg(not(unix))]
    fn of(_: &OutputFolder) -> Option<Self> {
        None
    }

    #[cfg(unix)]
    fn of(folder: &OutputFolder) -> Option<Self> {
        // The descriptor of a folder may be one for paths only, which is enough to read this.
        let known = rustix::fs::fstatvfs(folder.dir()).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(known.f_frsize);
        Some(Self { free: bytes(known.f_bavail), total: bytes(known.f_blocks) })
    }

    /// Returns the error if nothing is left but the reserve.
    fn full(self) -> Option<FolderError> {
        let reserve = RESERVE.min(self.total / 16);
        (self.free < reserve).then_some(FolderError::Disk { free: self.free, reserve })
    }
}
