//! What a thread gives up before it starts a program, which then has neither.
//!
//! | right | given up by | since |
//! |---|---|---|
//! | files outside the folder | Landlock | Linux 5.13; with the length of files 6.2 |
//! | signals to other processes | Landlock's scopes | Linux 6.12 |
//! | sockets, new namespaces, other processes' memory, leaving the group | a seccomp filter | Linux 3.5 |
//! | what root may beyond a user | its capabilities | Linux 2.6 |

use std::collections::BTreeMap;
use std::path::PathBuf;

use cap_std::fs::Dir;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};
use rustix::thread::{CapabilitySet, CapabilitySets};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::Protection;

/// What interpreters read of the system.
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

/// The devices that hold nothing.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Gives up this thread's rights for good, and returns what could not be given up.
///
/// Without a folder no file can be reached at all, which is how a machine is asked what it can do.
pub(super) fn give_up_rights(folder: Option<&Dir>, readable: &[PathBuf], group: i32) -> Vec<Protection> {
    let mut missing = Vec::new();
    let abi = landlocked(folder, readable).unwrap_or(ABI::Unsupported);
    if abi < ABI::V3 {
        missing.push(Protection::Files);
    }
    let filtered = filtered(group);
    if filtered.is_err() {
        missing.extend([Protection::Network, Protection::Group]);
    }
    let nothing = CapabilitySet::empty();
    let sets = CapabilitySets { effective: nothing, permitted: nothing, inheritable: nothing };
    let powerless = rustix::thread::set_capabilities(None, sets);
    if abi < ABI::V6 || filtered.is_err() || powerless.is_err() {
        missing.push(Protection::Processes);
    }
    missing
}

/// Gives up files, and the connections and signals that Landlock knows of. Returns what of Landlock holds.
fn landlocked(folder: Option<&Dir>, readable: &[PathBuf]) -> Result<ABI, RulesetError> {
    let abi = ABI::V6;
    let read = AccessFs::from_read(abi);
    // A device that root made in the folder would be a way out of it.
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

/// Returns where some systems keep a part of Python: `/etc/python3.11` and the like.
fn site_packages() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/etc").into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
        .map(|entry| entry.path())
        .collect()
}

/// Gives up system calls.
fn filtered(group: i32) -> Result<(), seccompiler::Error> {
    // Its flags lie in memory, where a filter cannot see them; without it, the C library takes `clone`.
    apply(BTreeMap::from([(libc::SYS_clone3, vec![])]), libc::ENOSYS)?;
    apply(refused(group)?, libc::EPERM)
}

fn apply(mut rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> Result<(), seccompiler::Error> {
    if cfg!(target_arch = "x86_64") {
        // The same calls by their numbers of the x32 interface, which some kernels have.
        let again: Vec<_> = rules.iter().map(|(call, rules)| (call | 0x4000_0000, rules.clone())).collect();
        rules.extend(again);
    }
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(error.unsigned_abs()), arch)?;
    let program: seccompiler::BpfProgram = filter.try_into()?;
    seccompiler::apply_filter(&program)
}

/// The system calls that are refused: always, or with some arguments.
fn refused(group: i32) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::Error> {
    let always = [
        // Ways to the network, and around this filter to it.
        libc::SYS_socket,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        // Ways out of the group.
        libc::SYS_setsid,
        // Ways to other processes.
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_kcmp,
        libc::SYS_perf_event_open,
        libc::SYS_bpf,
        libc::SYS_userfaultfd,
        // Ways to other file systems and namespaces.
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
        libc::SYS_open_by_handle_at,
        libc::SYS_name_to_handle_at,
        libc::SYS_fanotify_init,
        libc::SYS_mknodat,
        // The kernel's keys, and the machine itself.
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_kexec_load,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_reboot,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_acct,
        libc::SYS_quotactl,
        libc::SYS_syslog,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_adjtimex,
        libc::SYS_clock_adjtime,
        libc::SYS_sethostname,
        libc::SYS_setdomainname,
        libc::SYS_vhangup,
    ];
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = always.into_iter().map(|call| (call, Vec::new())).collect();
    #[cfg(target_arch = "x86_64")]
    rules.extend(
        [libc::SYS_mknod, libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_kexec_file_load].map(|call| (call, vec![])),
    );
    // A process may join the group of its run, as the gate does, and no other.
    let group = u64::from(group.unsigned_abs());
    rules.insert(libc::SYS_setpgid, vec![when(0, SeccompCmpOp::Ne, 0)?, when(1, SeccompCmpOp::Ne, group)?]);
    // The limits of others are not to be changed.
    rules.insert(libc::SYS_prlimit64, vec![when(0, SeccompCmpOp::Ne, 0)?]);
    // Typing for the person at a terminal.
    let ioctls = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| when(1, SeccompCmpOp::Eq, request));
    rules.insert(libc::SYS_ioctl, ioctls.into_iter().collect::<Result<_, _>>()?);
    let namespaces = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let namespaces = namespaces.map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        when(0, SeccompCmpOp::MaskedEq(flag), flag)
    });
    rules.insert(libc::SYS_clone, namespaces.into_iter().collect::<Result<_, _>>()?);
    Ok(rules)
}

fn when(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::Error> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
    Ok(SeccompRule::new(vec![condition])?)
}
