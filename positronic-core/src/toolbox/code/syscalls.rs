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
}

/// The number of `fchmodat2`, the same on every architecture; some versions of `libc` lack it.
const FCHMODAT2: i64 = 452;

/// Files, memory, time, threads and processes of the program's own, on every architecture.
const ALLOWED: &[i64] = &[
    // Files by descriptor.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_flock,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_fallocate,
    libc::SYS_ftruncate,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_sendfile,
    libc::SYS_copy_file_range,
    libc::SYS_pipe2,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_getdents64,
    // Files by path, which Landlock confines.
    libc::SYS_openat,
    libc::SYS_truncate,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_readlinkat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_umask,
    // Metadata, with certain arguments.
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_utimensat,
    // Waiting for descriptors.
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_signalfd4,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    // A connected pair of sockets, and what is done with it.
    libc::SYS_socketpair,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    // Memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_msync,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_membarrier,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_free,
    libc::SYS_pkey_mprotect,
    // Threads and processes.
    libc::SYS_clone,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getattr,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_rr_get_interval,
    libc::SYS_getcpu,
    libc::SYS_getpriority,
    libc::SYS_setpriority,
    libc::SYS_prctl,
    // For adding the other filters to this one; they refuse it.
    libc::SYS_seccomp,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getpgid,
    libc::SYS_setpgid,
    libc::SYS_getsid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_prlimit64,
    libc::SYS_getrusage,
    libc::SYS_times,
    // Signals. Landlock, or a user of the program's own, keeps them from other processes.
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    // Time.
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_getitimer,
    libc::SYS_setitimer,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_gettime,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_delete,
    // The system.
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
];

/// Older calls for the same purposes, only on this architecture.
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: &[i64] = &[
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_getdents,
    libc::SYS_chmod,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_arch_prctl,
    libc::SYS_getpgrp,
    libc::SYS_getrlimit,
    libc::SYS_setrlimit,
    libc::SYS_alarm,
    libc::SYS_pause,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: &[i64] = &[];

/// Calls that fail with `EPERM`, so that a program sees a refusal and not an old kernel.
const REFUSED: &[i64] = &[
    // Ways to the network, and around this filter to it.
    libc::SYS_socket,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Owners and other metadata of files.
    libc::SYS_fchown,
    libc::SYS_fchownat,
    // A way out of the group.
    libc::SYS_setsid,
    // Ways to other processes, their priorities and their memory.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_ioprio_set,
    // Shared memory, queues and semaphores that any process can find.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // Other users and rights, and other filters.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_capset,
    libc::SYS_seccomp,
    libc::SYS_personality,
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
    libc::SYS_inotify_add_watch,
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

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_mknod,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_kexec_file_load,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// Calls that fail with `ENOTSUP`.
const ATTRIBUTES: &[i64] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

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
    let allowed = unconditional(ALLOWED.iter().chain(ALLOWED_HERE));
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
