//! Resource limits of a program, enforced by the kernel.
//!
//! Most limits are resource limits of its processes. The one for the number of processes counts those of a user: it is exact if
//! the program has its own user. Else a control group counts, if this process may create one. Else the limit
//! leaves room for the user's other processes, as a stop for fork bombs, and the program's own
//! are counted while they run. Root that can neither change its user nor create a control group only has this count, which is
//! too late for such a program.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::user::{ProgramUser, is_root};
use super::{CodeLimits, Protection};
use crate::folder::own_name;

/// The niceness of a program: it gets half of the default priority.
const NICE: i32 = 10;

/// How many processes a user's other programs, and other runs, may start while a program runs.
const OTHERS: u64 = 512;

/// The limits of a running program.
pub(super) struct Limited {
    /// The missing limits.
    pub(super) missing: Vec<Protection>,
    /// Whether the kernel counts the program's own processes, so that this process need not.
    pub(super) is_counted: bool,
    /// Removes the control group on drop.
    _control: Option<ControlGroup>,
}

/// Limits a process that has not started, and its children. With a user, the calling thread becomes that user.
pub(super) fn limit(gate: Pid, limits: &CodeLimits, max_file: u64, user: Option<&ProgramUser>) -> Limited {
    if let Some(user) = user {
        // This thread is dedicated. If it stays root, the limits below fail and are reported as missing.
        _ = user.assume(false, || false);
    }
    // Interactive programs take precedence. It may already have a higher niceness.
    _ = rustix::process::setpriority_process(Some(gate), NICE);
    let processes = limits.processes as u64;
    let mut missing = Vec::new();
    if resources(gate, limits, max_file).is_err() {
        missing.push(Protection::Resources);
    }
    if user.is_some() {
        let is_counted = set(gate, Resource::Nproc, processes, processes).is_ok();
        if !is_counted {
            missing.push(Protection::Count);
        }
        return Limited { missing, is_counted, _control: None };
    }
    let control = ControlGroup::new(processes).filter(|control| control.add(gate).is_ok());
    let is_counted = control.is_some();
    if !is_counted && stop(gate, processes).is_err() {
        missing.push(Protection::Count);
    }
    Limited { missing, is_counted, _control: control }
}

/// Returns the limits that this machine lacks.
pub(super) fn missing() -> Vec<Protection> {
    let counts = !is_root() || ProgramUser::reserve().is_some() || ControlGroup::new(1).is_some();
    if counts { Vec::new() } else { vec![Protection::Count] }
}

fn resources(gate: Pid, limits: &CodeLimits, max_file: u64) -> rustix::io::Result<()> {
    set(gate, Resource::As, limits.memory, limits.memory)?;
    // The soft limit sends a signal with the reason; the hard limit kills the process.
    set(gate, Resource::Cpu, limits.cpu_seconds, limits.cpu_seconds.saturating_add(1))?;
    set(gate, Resource::Fsize, max_file, max_file)?;
    set(gate, Resource::Nofile, limits.open_files, limits.open_files)?;
    set(gate, Resource::Core, 0, 0)
}

fn set(gate: Pid, resource: Resource, value: u64, hard: u64) -> rustix::io::Result<()> {
    let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit { current: Some(value.min(most)), maximum: Some(hard.min(most)) };
    prlimit(Some(gate), resource, limit).map(|_| ())
}

/// Stops a fork bomb before the machine is full.
fn stop(gate: Pid, most: u64) -> rustix::io::Result<()> {
    let user = rustix::process::getuid();
    if user.is_root() {
        return Err(rustix::io::Errno::PERM);
    }
    let all = tasks_of(user.as_raw()) + most + OTHERS;
    set(gate, Resource::Nproc, all, all)
}

/// Counts the threads of a user's processes.
fn tasks_of(user: u32) -> u64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let own = entries.filter(|entry| entry.metadata().is_ok_and(|known| known.uid() == user));
    own.filter_map(|entry| Some(fs::read_dir(entry.path().join("task")).ok()?.count() as u64)).sum()
}

/// A control group that counts processes. Dropping it removes the group.
struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Creates one next to or in this process's own, if kernel and system allow it.
    fn new(most: u64) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        own.lines().filter_map(place).find_map(|place| {
            let group = Self(place.join(own_name("control")));
            fs::create_dir(&group.0).ok()?;
            // Without the controller there is no such file, and the group is dropped.
            fs::write(group.0.join("pids.max"), most.to_string()).ok()?;
            Some(group)
        })
    }

    fn add(&self, process: Pid) -> std::io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), process.as_raw_nonzero().to_string())
    }
}

/// Returns where groups can be created, from a line of `/proc/self/cgroup`: `hierarchy:controllers:path`.
fn place(line: &str) -> Option<PathBuf> {
    let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
    let path = Path::new(path.trim_start_matches('/'));
    if controllers.split(',').any(|name| name == "pids") {
        return Some(Path::new("/sys/fs/cgroup/pids").join(path));
    }
    // In cgroup v2, a group with processes cannot have counted subgroups, but its parent may.
    let parent = path.parent().filter(|_| controllers.is_empty())?;
    Some(Path::new("/sys/fs/cgroup").join(parent))
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // A group can be removed when its processes were reaped, for orphans by init.
        for _ in 0..50 {
            match fs::remove_dir(&self.0) {
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()) => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Ok(()) | Err(_) => return,
            }
        }
        tracing::warn!(group = %self.0.display(), "the control group of a program that has ended cannot be removed");
    }
}
