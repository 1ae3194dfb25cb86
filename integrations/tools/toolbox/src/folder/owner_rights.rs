//! Access of this process to folders that a program has closed to itself.
//!
//! A program that runs as this process's own user can create a folder that neither of them may read, such as with the mode 0. The
//! owner of a folder may change its mode, so it is opened again.

use std::io;
use std::path::Path;

use cap_std::fs::Dir;

/// What is needed to list a folder, and to change what is in it.
pub(super) const LIST: u32 = 0o500;
pub(super) const CHANGE: u32 = 0o700;

/// Opens a subfolder; if its owner lacks one of the rights, it gets all of them. Returns whether it did.
pub(super) fn open_folder(parent: &Dir, name: impl AsRef<Path>, rights: u32) -> io::Result<(Dir, bool)> {
    let dir = parent.open_dir(name)?;
    let is_opened = give_rights(&dir, rights);
    Ok((dir, is_opened))
}

/// Gives the owner of a folder all rights, if one of these is missing. Returns whether it did.
#[cfg(target_os = "linux")]
pub(super) fn give_rights(dir: &Dir, rights: u32) -> bool {
    use std::os::fd::AsRawFd as _;

    use cap_std::fs::MetadataExt as _;
    use rustix::fs::{Mode, chmod};

    let Ok(known) = dir.dir_metadata() else { return false };
    let mode = known.mode() & 0o7777;
    // The descriptor may be one for paths only, whose mode can be changed by its name only. That name cannot be swapped for a link.
    mode & rights != rights
        && chmod(format!("/proc/self/fd/{}", dir.as_raw_fd()), Mode::from_raw_mode(mode | CHANGE)).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn give_rights(_: &Dir, _: u32) -> bool {
    false
}
