//! Privileges that a thread drops before it starts a program, which then has none of them.
//!
//! | privilege | dropped by | since |
//! |---|---|---|
//! | to open, create, rename and remove files outside the folder | Landlock | Linux 5.13; with the length of files 6.2 |
//! | signals to other processes | Landlock's scopes, or the user | Linux 6.12, or any |
//! | metadata of files, sockets, new namespaces, other processes' memory, leaving the group | a seccomp filter (`syscalls.rs`) | Linux 3.5 |
//! | what root owns | another user (`user.rs`) | any |
//! | what root may beyond a user | its capabilities | Linux 2.6 |

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::Protection;
use super::syscalls::{self, Metadata};
use super::user::{ProgramUser, is_root};

/// System files that interpreters read.
const READABLE: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/opt/homebrew",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
];

/// Devices without data.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Folders below [`READABLE`] that a user may own on some machines.
const BELOW: [&str; 8] = [
    "/usr/bin",
    "/usr/lib",
    "/usr/share",
    "/usr/local",
    "/usr/local/bin",
    "/usr/local/lib",
    "/usr/local/share",
    "/usr/local/sbin",
];

/// The confinement of a program.
pub(super) struct Confinement<'a> {
    /// Its folder. Without one it can reach no file, which is used to test the machine.
    pub(super) folder: Option<&'a Dir>,
    /// The files that it may read besides the system's own.
    pub(super) readable: &'a [PathBuf],
    /// Paths that its user must be able to reach.
    pub(super) reached: &'a [&'a Path],
    /// Its process group.
    pub(super) group: i32,
    /// The user that it runs as; this thread's own by default.
    pub(super) user: Option<&'a ProgramUser>,
}

/// Drops this thread's privileges permanently, and returns the missing protections. It fails if the thread cannot become the
/// user, or if that user could not reach the required paths.
pub(super) fn give_up_rights(to: &Confinement<'_>) -> rustix::io::Result<Vec<Protection>> {
    let mut missing = Vec::new();
    let abi = landlocked(to.folder, to.readable).unwrap_or(ABI::Unsupported);
    let confines_files = abi >= ABI::V3;
    let is_powerless = match to.user {
        Some(user) => {
            // The author's readable paths may be readable only by root.
            let needs_search = || !to.readable.is_empty() || !to.reached.iter().all(|path| can_enter(path));
            user.assume(confines_files, needs_search).map(|()| true)?
        }
        None => {
            if is_root() {
                missing.push(Protection::User);
            }
            let nothing = CapabilitySet::empty();
            let sets = CapabilitySets { effective: nothing, permitted: nothing, inheritable: nothing };
            rustix::thread::set_capabilities(None, sets).is_ok()
        }
    };
    let times = to.readable.is_empty() && changes_nothing_readable();
    let is_filtered =
        syscalls::give_up(to.group, Metadata { modes: to.user.is_some(), times, locks: to.readable.is_empty() })
            .is_ok();
    if !confines_files || !is_filtered {
        missing.push(Protection::Files);
    }
    if !is_filtered {
        missing.extend([Protection::Network, Protection::Group]);
    }
    let keeps_signals = abi >= ABI::V6 || to.user.is_some();
    if !keeps_signals || !is_filtered || !is_powerless {
        missing.push(Protection::Processes);
    }
    Ok(missing)
}

/// Returns whether this thread's user may enter a folder, or run a program.
fn can_enter(path: &Path) -> bool {
    accessat(CWD, path, Access::EXEC_OK, AtFlags::empty()).is_ok()
}

/// Returns whether this thread's user neither owns nor may write the system's files, judging by their folders.
fn changes_nothing_readable() -> bool {
    let user = rustix::process::geteuid().as_raw();
    let mut groups: Vec<_> =
        rustix::process::getgroups().unwrap_or_default().iter().map(|group| group.as_raw()).collect();
    groups.push(rustix::process::getegid().as_raw());
    READABLE.iter().chain(&BELOW).filter_map(|path| std::fs::metadata(path).ok()).all(|known| {
        let by_group = known.mode() & 0o020 != 0 && groups.contains(&known.gid());
        known.uid() != user && known.mode() & 0o002 == 0 && !by_group
    })
}

/// Restricts files, and the connections and signals that Landlock supports. Returns the effective Landlock version.
fn landlocked(folder: Option<&Dir>, readable: &[PathBuf]) -> Result<ABI, RulesetError> {
    let abi = ABI::V9;
    let read = AccessFs::from_read(abi);
    // A device that root creates in the folder would be a way out of it.
    let inside = AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let devices: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::WriteFile;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(READABLE, read))?
        .add_rules(path_beneath_rules(site_packages(), read))?
        .add_rules(path_beneath_rules(readable, read))?
        .add_rules(path_beneath_rules(DEVICES, devices))?;
    if let Some(folder) = folder {
        rules = rules.add_rule(PathBeneath::new(folder, inside))?;
    }
    let status = rules.restrict_self()?;
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, .. } if status.no_new_privs => effective_abi,
        _ => ABI::Unsupported,
    })
}

/// Returns where some systems store parts of Python: `/etc/python3.11` and the like.
fn site_packages() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/etc").into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
        .map(|entry| entry.path())
        .collect()
}
