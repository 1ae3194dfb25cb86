//! The unprivileged user of programs if this process is root.
//!
//! The kernel lets an owner change a file's metadata, and a user signal its own processes. So a program of root gets a user ID
//! that nothing else on the machine uses, and its folder is owned by that ID while it runs: the owner is changed before the program
//! starts, and restored after all its processes have ended. Set-user-ID bits do not survive that, because the
//! kernel clears them when a file's owner changes.
//!
//! The ID owns nothing else, so the folder may be below a directory that other users cannot enter, such as `/root`. The program then
//! keeps one capability, `CAP_DAC_READ_SEARCH`, to get there, if Landlock confines the files that it opens.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::{Dir, MetadataExt as _};
use parking_lot::Mutex;
use rustix::fs::{AtFlags, Gid, Uid, chownat};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
    set_keep_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use crate::folder::OutputFolder;
use crate::random::random;

/// The IDs that systemd assigns to services without an account. Distributions do not use them otherwise, and namespaces with
/// 65,536 IDs include them.
const FIRST: u32 = 61_184;
const LAST: u32 = 65_519;

/// The IDs in use by runs of this process.
static IN_USE: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A user ID of one run, with the group ID of the same number. Clones share the ID.
#[derive(Debug, Clone)]
pub(super) struct ProgramUser(Arc<Reserved>);

#[derive(Debug)]
struct Reserved(u32);

impl Drop for Reserved {
    fn drop(&mut self) {
        IN_USE.lock().remove(&self.0);
    }
}

impl ProgramUser {
    /// Reserves an ID, if this process is root and has the capabilities to use it.
    pub(super) fn reserve() -> Option<Self> {
        let needed = CapabilitySet::CHOWN | CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::KILL;
        if !is_root() || !capabilities(None).is_ok_and(|sets| sets.effective.contains(needed)) {
            return None;
        }
        let mut taken = owners_of_processes();
        let mut in_use = IN_USE.lock();
        taken.extend(in_use.iter());
        let count = LAST - FIRST + 1;
        let start = u32::try_from(random() % u64::from(count)).unwrap_or(0);
        let id = (0..count).map(|n| FIRST + (start + n) % count).find(|id| !taken.contains(id))?;
        in_use.insert(id);
        Some(Self(Arc::new(Reserved(id))))
    }

    /// Makes this thread run as the user, permanently and without capabilities, except for the one to traverse directories if
    /// `needs_search`, which is called after the change of user.
    pub(super) fn assume(&self, may_search: bool, needs_search: impl FnOnce() -> bool) -> rustix::io::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.0.0), Gid::from_raw(self.0.0));
        set_thread_groups(&[])?;
        set_thread_res_gid(gid, gid, gid)?;
        set_keep_capabilities(true)?;
        set_thread_res_uid(uid, uid, uid)?;
        let kept = match (needs_search(), may_search) {
            (false, _) => CapabilitySet::empty(),
            (true, true) => CapabilitySet::DAC_READ_SEARCH,
            (true, false) => return Err(rustix::io::Errno::ACCESS),
        };
        set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: kept })?;
        if kept.is_empty() { Ok(()) } else { configure_capability_in_ambient_set(kept, true) }
    }

    /// Changes the owner of a folder to the user until the result is dropped.
    fn lend(self, folder: &Dir) -> io::Result<Lent> {
        let known = folder.dir_metadata()?;
        // An ID that a crashed process left behind does not count as the owner.
        let owner = if is_program(known.uid()) { (0, 0) } else { (known.uid(), known.gid()) };
        let mut lent = Lent { folder: folder.try_clone()?, owner, others: BTreeMap::new(), user: self };
        let id = lent.user.0.0;
        chown(folder, Path::new(""), (id, id))?;
        for_each(folder, &mut |dir, name, known| {
            // A hard link may be a file outside of the folder.
            if !known.is_dir() && known.nlink() > 1 && !is_program(known.uid()) {
                return;
            }
            let before = (known.uid(), known.gid());
            if chown(dir, name, (id, id)).is_ok() && before != owner && !is_program(before.0) {
                lent.others.insert(known.ino(), before);
            }
        });
        Ok(lent)
    }
}

/// A folder that is temporarily owned by the user of a program.
#[derive(Debug)]
pub(super) struct Lent {
    folder: Dir,
    owner: (u32, u32),
    /// Other owners of files in it, by inode.
    others: BTreeMap<u64, (u32, u32)>,
    user: ProgramUser,
}

impl Lent {
    /// Reserves a user and makes it the folder's owner, if possible.
    pub(super) fn of(folder: &OutputFolder) -> Option<Self> {
        let lent = ProgramUser::reserve()?.lend(folder.dir());
        lent.inspect_err(|error| tracing::warn!(%error, "cannot lend the output folder to another user than root")).ok()
    }

    pub(super) const fn user(&self) -> &ProgramUser {
        &self.user
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let id = self.user.0.0;
        for_each(&self.folder, &mut |dir, name, known| {
            if known.uid() == id {
                let owner = self.others.get(&known.ino()).copied().unwrap_or(self.owner);
                // Root can still read files whose owner cannot be restored.
                _ = chown(dir, name, owner);
            }
        });
        if let Err(error) = chown(&self.folder, Path::new(""), self.owner) {
            tracing::warn!(%error, "cannot give the output folder back to its owner after a program has run");
        }
    }
}

/// Changes the owner of a file without following links. The empty name is the directory itself.
fn chown(dir: &Dir, name: &Path, (uid, gid): (u32, u32)) -> io::Result<()> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    Ok(chownat(dir, name, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)), flags)?)
}

/// Visits everything below a folder, with one open directory at a time, whatever its depth.
fn for_each(folder: &Dir, visit: &mut dyn FnMut(&Dir, &Path, &cap_std::fs::Metadata)) {
    let mut left = vec![PathBuf::from(".")];
    while let Some(path) = left.pop() {
        let Ok(dir) = folder.open_dir(&path) else { continue };
        let Ok(entries) = dir.entries() else { continue };
        for entry in entries.flatten() {
            // That of a link, not of what it leads to.
            let Ok(known) = entry.metadata() else { continue };
            let name = PathBuf::from(entry.file_name());
            if known.is_dir() {
                left.push(path.join(&name));
            }
            visit(&dir, &name, &known);
        }
    }
}

const fn is_program(uid: u32) -> bool {
    FIRST <= uid && uid <= LAST
}

/// Returns whether this thread is root.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn owners_of_processes() -> BTreeSet<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(entry.metadata().ok()?.uid())).collect()
}
