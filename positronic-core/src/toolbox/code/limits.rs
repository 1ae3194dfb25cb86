//! What a program may use up, as far as the kernel counts it.
//!
//! Most limits are resource limits of its processes. The resource limit for the number of processes counts those of a user. Where
//! the program has a user of its own, it is exact. Else a control group counts, where this process may make one. Else the resource
//! limit is set with room for the user's other processes, as a stop for a program that starts all it can, and the program's own
//! are counted while they run. Root that can neither change its user nor make a control group has this count alone, which comes
//! late for such a program.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::user::{ProgramUser, is_root};
use super::{CodeLimits, Protection};
use crate::toolbox::folder::own_name;

/// How far a program stands back behind others: half of what there is.
const NICE: i32 = 10;

/// How many processes a user's other programs, and other runs, may begin while a program runs.
const OTHERS: u64 = 512;

/// What holds a program to its limits as long as it runs.
pub(super) struct Limited {
    /// What is not limited.
    pub(super) missing: Vec<Protection>,
    /// Whether the kernel counts the program's own processes, so that nobody else has to.
    pub(super) is_counted: bool,
    /// Held for its end, which takes it away.
    _control: Option<ControlGroup>,
}

/// Limits a process that has not begun, and all that it will start. With a user, the calling thread becomes that user.
pub(super) fn limit(gate: Pid, limits: &CodeLimits, max_file: u64, user: Option<&ProgramUser>) -> Limited {
    if let Some(user) = user {
        // This thread is its own. Where it stays root, the limits below fail and are missing.
        _ = user.assume(false, || false);
    }
    // The program goes behind those who wait for it. It may already be further behind.
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

/// Says what of it this machine cannot limit.
pub(super) fn missing() -> Vec<Protection> {
    let counts = !is_root() || ProgramUser::reserve().is_some() || ControlGroup::new(1).is_some();
    if counts { Vec::new() } else { vec![Protection::Count] }
}

fn resources(gate: Pid, limits: &CodeLimits, max_file: u64) -> rustix::io::Result<()> {
    set(gate, Resource::As, limits.memory, limits.memory)?;
    // At the first limit a signal says why; at the second, the process is killed.
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

/// Stops a program that starts all it can, before the machine is full.
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

/// A control group that counts processes. It goes away with this value.
struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Makes one beside or in this process's own, where the kernel and the system let it.
    fn new(most: u64) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        own.lines().filter_map(place).find_map(|place| {
            let group = Self(place.join(own_name("control")));
            fs::create_dir(&group.0).ok()?;
            // Without the controller there is no such file, and the group goes away again.
            fs::write(group.0.join("pids.max"), most.to_string()).ok()?;
            Some(group)
        })
    }

    fn add(&self, process: Pid) -> std::io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), process.as_raw_nonzero().to_string())
    }
}

/// Reads where groups can be made from a line of `/proc/self/cgroup`: `hierarchy:controllers:path`.
fn place(line: &str) -> Option<PathBuf> {
    let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
    let path = Path::new(path.trim_start_matches('/'));
    if controllers.split(',').any(|name| name == "pids") {
        return Some(Path::new("/sys/fs/cgroup/pids").join(path));
    }
    // In the second version, a group that has processes has no groups that are counted, but its parent may have.
    let parent = path.parent().filter(|_| controllers.is_empty())?;
    Some(Path::new("/sys/fs/cgroup").join(parent))
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // A group can be removed when its processes have been waited for, which for orphans init does.
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
