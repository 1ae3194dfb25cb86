//! Filter for the system calls of programs (seccomp).
//!
//! The filter is an allow list; any other call fails with `ENOSYS`, as on a kernel without it, so that a
//! C library falls back to an older call. Calls that are refused visibly fail with `EPERM`, some of
//! them only with certain arguments. Extended attributes fail with `ENOTSUP`, as on a file system without them. A call with the
//! numbers of another architecture kills the process.
//!
//! Landlock confines opening, creating, renaming and removing files, but not metadata: modes, owners, times and
//! attributes. So the filter refuses the calls that change metadata, except where [`Metadata`] explains why they cannot reach a
//! file outside of the folder.

use std::collections::BTreeMap;

use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use SeccompCmpArgLen::{Dword, Qword};
use SeccompCmpOp::{MaskedEq, Ne};

/// The metadata of files that a program may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Metadata {
    /// Whether it may change modes, except for the set-user-ID and set-group-ID bits. The kernel allows that to a file's owner, so it
    /// is safe for a program whose user owns nothing outside of the folder.
    pub(super) modes: bool,
    /// Whether it may set the times of open files. It is safe if it can open no file outside of the folder that its
    /// user owns or may write.
    pub(super) times: bool,
    /// Whether it may lock files with `flock`, which takes an exclusive lock on a file that is open for reading only.
    pub(super) locks: bool,
}

/// The number of `fchmodat2`, the same on every architecture; some versions of `libc` lack it.
const FCHMODAT2: i64 = 452;

/// The numbers of system calls, by their names in `libc`.
macro_rules! calls {
    ($($call:ident)*) => { &[$(libc::$call),*] };
}

/// Files, memory, time, threads and processes of the program's own, on every architecture.
const ALLOWED: &[i64] = calls! {
    // Files by descriptor.
    SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_preadv SYS_pwritev SYS_preadv2
    SYS_pwritev2 SYS_lseek SYS_close SYS_close_range SYS_dup SYS_dup3 SYS_fcntl SYS_ioctl SYS_flock SYS_fsync
    SYS_fdatasync SYS_sync_file_range SYS_fallocate SYS_ftruncate SYS_fadvise64 SYS_readahead SYS_sendfile
    SYS_copy_file_range SYS_pipe2 SYS_fstat SYS_fstatfs SYS_getdents64
    // Files by path, which Landlock confines.
    SYS_openat SYS_truncate SYS_mkdirat SYS_unlinkat SYS_renameat2 SYS_linkat SYS_symlinkat SYS_readlinkat
    SYS_newfstatat SYS_statx SYS_statfs SYS_faccessat SYS_faccessat2 SYS_getcwd SYS_chdir SYS_fchdir SYS_umask
    // Metadata, with certain arguments.
    SYS_fchmod SYS_fchmodat SYS_utimensat
    // Waiting for descriptors.
    SYS_ppoll SYS_pselect6 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_eventfd2
    SYS_signalfd4 SYS_timerfd_create SYS_timerfd_settime SYS_timerfd_gettime
    // A connected pair of sockets, and what is done with it.
    SYS_socketpair SYS_sendto SYS_recvfrom SYS_sendmsg SYS_recvmsg SYS_shutdown SYS_getsockname SYS_getpeername
    SYS_getsockopt SYS_setsockopt
    // Memory.
    SYS_brk SYS_mmap SYS_munmap SYS_mprotect SYS_mremap SYS_madvise SYS_mincore SYS_msync SYS_mlock SYS_mlock2
    SYS_munlock SYS_membarrier SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect
    // Threads and processes.
    SYS_clone SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_wait4 SYS_waitid SYS_set_tid_address
    SYS_set_robust_list SYS_rseq SYS_futex SYS_futex_waitv SYS_sched_yield SYS_sched_getaffinity
    SYS_sched_setaffinity SYS_sched_getscheduler SYS_sched_getparam SYS_sched_getattr SYS_sched_get_priority_max
    SYS_sched_get_priority_min SYS_sched_rr_get_interval SYS_getcpu SYS_getpriority SYS_setpriority SYS_prctl
    // For adding the other filters to this one; they refuse it.
    SYS_seccomp SYS_pidfd_open SYS_pidfd_send_signal SYS_getpid SYS_getppid SYS_gettid SYS_getpgid SYS_setpgid
    SYS_getsid SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getresuid SYS_getresgid SYS_getgroups
    SYS_prlimit64 SYS_getrusage SYS_times
    // Signals. Landlock, or a user of the program's own, keeps them from other processes.
    SYS_kill SYS_tkill SYS_tgkill SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_rt_sigpending
    SYS_rt_sigsuspend SYS_rt_sigtimedwait SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo SYS_sigaltstack
    SYS_restart_syscall
    // Time.
    SYS_nanosleep SYS_clock_nanosleep SYS_clock_gettime SYS_clock_getres SYS_gettimeofday SYS_getitimer
    SYS_setitimer SYS_timer_create SYS_timer_settime SYS_timer_gettime SYS_timer_getoverrun SYS_timer_delete
    // The system.
    SYS_uname SYS_sysinfo SYS_getrandom
};

/// Older calls for the same purposes, only on this architecture.
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: &[i64] = calls! {
    SYS_open SYS_creat SYS_stat SYS_lstat SYS_access SYS_readlink SYS_mkdir SYS_rmdir SYS_unlink SYS_rename
    SYS_renameat SYS_link SYS_symlink SYS_getdents SYS_chmod SYS_dup2 SYS_pipe SYS_poll SYS_select
    SYS_epoll_create SYS_epoll_wait SYS_eventfd SYS_fork SYS_vfork SYS_arch_prctl SYS_getpgrp SYS_getrlimit
    SYS_setrlimit SYS_alarm SYS_pause SYS_time
};
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: &[i64] = &[];

/// Calls that fail with `EPERM`, so that a program sees a refusal and not an old kernel.
const REFUSED: &[i64] = calls! {
    // Ways to the network, and around this filter to it.
    SYS_socket SYS_bind SYS_connect SYS_listen SYS_accept SYS_accept4 SYS_io_uring_setup SYS_io_uring_enter
    SYS_io_uring_register
    // Owners and other metadata of files.
    SYS_fchown SYS_fchownat
    // A way out of the group.
    SYS_setsid
    // Ways to other processes, their priorities and their memory.
    SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_process_madvise SYS_pidfd_getfd SYS_kcmp
    SYS_perf_event_open SYS_bpf SYS_userfaultfd SYS_sched_setscheduler SYS_sched_setparam SYS_sched_setattr
    SYS_ioprio_set
    // Shared memory, queues and semaphores that any process can find.
    SYS_shmget SYS_shmat SYS_shmctl SYS_msgget SYS_msgsnd SYS_msgrcv SYS_msgctl SYS_semget SYS_semop SYS_semctl
    SYS_mq_open SYS_mq_unlink
    // Other users and rights, and other filters.
    SYS_setuid SYS_setgid SYS_setreuid SYS_setregid SYS_setresuid SYS_setresgid SYS_setgroups SYS_setfsuid
    SYS_setfsgid SYS_capset SYS_seccomp SYS_personality
    // Ways to other file systems and namespaces.
    SYS_unshare SYS_setns SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_open_tree SYS_move_mount
    SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_mount_setattr SYS_open_by_handle_at SYS_name_to_handle_at
    SYS_fanotify_init SYS_inotify_add_watch SYS_mknodat
    // The kernel's keys, and the machine itself.
    SYS_keyctl SYS_add_key SYS_request_key SYS_kexec_load SYS_init_module SYS_finit_module SYS_delete_module
    SYS_reboot SYS_swapon SYS_swapoff SYS_acct SYS_quotactl SYS_syslog SYS_settimeofday SYS_clock_settime
    SYS_adjtimex SYS_clock_adjtime SYS_sethostname SYS_setdomainname SYS_vhangup
};

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = calls! {
    SYS_chown SYS_lchown SYS_utime SYS_utimes SYS_futimesat SYS_mknod SYS_iopl SYS_ioperm SYS_kexec_file_load
};
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// Calls that fail with `ENOTSUP`.
const ATTRIBUTES: &[i64] = calls! {
    SYS_setxattr SYS_lsetxattr SYS_fsetxattr SYS_getxattr SYS_lgetxattr SYS_fgetxattr SYS_listxattr
    SYS_llistxattr SYS_flistxattr SYS_removexattr SYS_lremovexattr SYS_fremovexattr
};

/// The allowed requests of `ioctl`: queries of terminals and pipes, and descriptor flags. Others set attributes of files
/// that are open for reading only, type for the person at a terminal, or send signals.
const IOCTLS: &[u32] = &[
    0x5401,      // TCGETS
    0x540f,      // TIOCGPGRP
    0x5413,      // TIOCGWINSZ
    0x541b,      // FIONREAD
    0x5421,      // FIONBIO
    0x5450,      // FIONCLEX
    0x5451,      // FIOCLEX
    0x4004_9409, // FICLONE
];

/// The commands of `fcntl`, without those that send signals (`F_SETOWN`, `F_SETSIG`, `F_NOTIFY`) or hold up others (`F_SETLEASE`).
const FCNTLS: &[u32] = &[
    0,    // F_DUPFD
    1,    // F_GETFD
    2,    // F_SETFD
    3,    // F_GETFL
    4,    // F_SETFL
    5,    // F_GETLK
    6,    // F_SETLK
    7,    // F_SETLKW
    36,   // F_OFD_GETLK
    37,   // F_OFD_SETLK
    38,   // F_OFD_SETLKW
    1030, // F_DUPFD_CLOEXEC
    1031, // F_SETPIPE_SZ
    1032, // F_GETPIPE_SZ
    1034, // F_GET_SEALS
];

/// The operations of `prctl`: settings and queries of the program's own process.
const PRCTLS: &[u32] = &[
    1,           // PR_SET_PDEATHSIG
    2,           // PR_GET_PDEATHSIG
    3,           // PR_GET_DUMPABLE
    15,          // PR_SET_NAME
    16,          // PR_GET_NAME
    21,          // PR_GET_SECCOMP
    23,          // PR_CAPBSET_READ
    29,          // PR_SET_TIMERSLACK
    30,          // PR_GET_TIMERSLACK
    38,          // PR_SET_NO_NEW_PRIVS
    39,          // PR_GET_NO_NEW_PRIVS
    41,          // PR_SET_THP_DISABLE
    42,          // PR_GET_THP_DISABLE
    0x5356_4d41, // PR_SET_VMA
];

const SET_USER_ID: u64 = 0o4000;
const SET_GROUP_ID: u64 = 0o2000;

/// The bit that only `O_TMPFILE` has.
const TMPFILE: u64 = 0o20_000_000;

/// Restricts the system calls of this thread and its children. A process may only join the group of its run.
pub(super) fn give_up(group: i32, metadata: Metadata) -> Result<(), seccompiler::Error> {
    let allowed = unconditional(ALLOWED.iter().chain(ALLOWED_HERE).chain(&[FCHMODAT2]));
    apply(allowed, SeccompAction::Errno(libc::ENOSYS.unsigned_abs()), SeccompAction::Allow)?;
    // If several filters refuse a call, the last one sets the error.
    let attributes = unconditional(ATTRIBUTES);
    apply(attributes, SeccompAction::Allow, SeccompAction::Errno(libc::ENOTSUP.unsigned_abs()))?;
    apply(refused(group, metadata)?, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM.unsigned_abs()))
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn unconditional<'a>(calls: impl IntoIterator<Item = &'a i64>) -> Rules {
    calls.into_iter().map(|call| (*call, Vec::new())).collect()
}

fn apply(rules: Rules, otherwise: SeccompAction, matched: SeccompAction) -> Result<(), seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let program: seccompiler::BpfProgram = SeccompFilter::new(rules, otherwise, matched, arch)?.try_into()?;
    seccompiler::apply_filter(&program)
}

/// Returns the calls that fail with `EPERM`: always without rules, else if a rule matches the arguments.
fn refused(group: i32, metadata: Metadata) -> Result<Rules, seccompiler::Error> {
    let mut rules = unconditional(REFUSED.iter().chain(REFUSED_HERE));
    if !metadata.locks {
        rules.insert(libc::SYS_flock, Vec::new());
    }
    // Blocks beyond the end of a file are not within the limit on its size.
    let keeps_size = (1, Dword, MaskedEq(3), u64::from(libc::FALLOC_FL_KEEP_SIZE.unsigned_abs()));
    rules.insert(libc::SYS_fallocate, vec![rule(&[keeps_size])?]);
    let mut add = |call: i64, refused: Vec<SeccompRule>| {
        // A call without rules would always be refused.
        if !refused.is_empty() {
            rules.insert(call, refused);
        }
    };
    // Datagrams can be sent to any named socket. Stream is 1; bits above the lowest four are flags. For other families, the kernel
    // may load a module.
    let kinds = [2, 4, 8].map(|bit| rule(&[(1, Dword, MaskedEq(bit), bit)]));
    let family = rule(&[(0, Dword, Ne, u64::from(libc::AF_UNIX.unsigned_abs()))]);
    add(libc::SYS_socketpair, collected(kinds.into_iter().chain([family]))?);
    let new_namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    let flags = u64::from((new_namespaces | libc::CLONE_PARENT | libc::CLONE_PTRACE).unsigned_abs());
    let flags = (0..32).map(|bit| 1_u64 << bit).filter(|bit| flags & bit != 0);
    add(libc::SYS_clone, collected(flags.map(|bit| rule(&[(0, Dword, MaskedEq(bit), bit)])))?);
    // Process and group id 0 is the caller.
    let group = u64::from(group.unsigned_abs());
    add(libc::SYS_setpgid, collected([rule(&[(0, Dword, Ne, 0)]), rule(&[(1, Dword, Ne, group)])])?);
    add(libc::SYS_prlimit64, collected([rule(&[(0, Dword, Ne, 0)])])?);
    add(libc::SYS_sched_setaffinity, collected([rule(&[(0, Dword, Ne, 0)])])?);
    add(libc::SYS_setpriority, collected([rule(&[(0, Dword, Ne, 0)]), rule(&[(1, Dword, Ne, 0)])])?);
    for (call, argument, known) in
        [(libc::SYS_ioctl, 1, IOCTLS), (libc::SYS_fcntl, 1, FCNTLS), (libc::SYS_prctl, 0, PRCTLS)]
    {
        let unknown: Vec<_> = known.iter().map(|value| (argument, Dword, Ne, u64::from(*value))).collect();
        add(call, collected([rule(&unknown)])?);
    }
    for (call, mode) in chmods() {
        let bits = if metadata.modes { vec![SET_USER_ID, SET_GROUP_ID] } else { Vec::new() };
        let privileged = collected(bits.into_iter().map(|bit| rule(&[(mode, Dword, MaskedEq(bit), bit)])))?;
        // This rule matches any mode, if modes must not be changed.
        let any = vec![rule(&[(mode, Dword, MaskedEq(0), 0)])?];
        add(call, if privileged.is_empty() { any } else { privileged });
    }
    // Without a path, the times of a descriptor are set.
    let by_path = if metadata.times { (1, Qword, Ne, 0) } else { (1, Qword, MaskedEq(0), 0) };
    add(libc::SYS_utimensat, collected([rule(&[by_path])])?);
    // New files must not get set-user-ID bits either.
    for (call, flags, mode) in opens() {
        let bits = [SET_USER_ID, SET_GROUP_ID];
        let with = |bit: u64| match flags {
            Some(flags) => [u64::from(libc::O_CREAT.unsigned_abs()), TMPFILE]
                .map(|makes| rule(&[(flags, Dword, MaskedEq(makes), makes), (mode, Dword, MaskedEq(bit), bit)]))
                .into_iter()
                .collect(),
            None => vec![rule(&[(mode, Dword, MaskedEq(bit), bit)])],
        };
        add(call, collected(bits.into_iter().flat_map(with))?);
    }
    Ok(rules)
}

/// Returns the calls that change modes, each with the index of the mode argument.
fn chmods() -> Vec<(i64, u8)> {
    let mut calls = vec![(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)];
    #[cfg(target_arch = "x86_64")]
    calls.push((libc::SYS_chmod, 1));
    calls
}

/// Returns the calls that create files, each with the index of the flags, which enable a mode, and that of the mode.
fn opens() -> Vec<(i64, Option<u8>, u8)> {
    let mut calls = vec![(libc::SYS_openat, Some(2), 3)];
    #[cfg(target_arch = "x86_64")]
    calls.extend([(libc::SYS_open, Some(1), 2), (libc::SYS_creat, None, 1)]);
    calls
}

type Condition = (u8, SeccompCmpArgLen, SeccompCmpOp, u64);
type RuleResult = Result<SeccompRule, seccompiler::Error>;

/// Creates a rule that matches when all conditions do: argument, length, comparison, value.
fn rule(conditions: &[Condition]) -> RuleResult {
    let conditions = conditions
        .iter()
        .cloned()
        .map(|(argument, length, operator, value)| SeccompCondition::new(argument, length, operator, value));
    Ok(SeccompRule::new(conditions.collect::<Result<_, _>>()?)?)
}

fn collected(rules: impl IntoIterator<Item = RuleResult>) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    rules.into_iter().collect()
}
