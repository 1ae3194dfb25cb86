//! A process group that ends as a unit, its running processes, and their memory.
//!
//! Its leader is the **anchor**: a shell that waits for the end of its input, which this process holds open, and then kills the
//! group. So a group outlives neither its run nor this process, however it ends. While the anchor is not reaped, its group id
//! is not reused.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// The number of polls for the end of killed processes, and the pause between them.
const ENDINGS: usize = 100;
const ENDING: Duration = Duration::from_millis(2);

/// Waits for the end of the input, and kills the group.
const ANCHOR: &str = "read -r _; kill -9 0";

/// A process group. Dropping it kills the group.
pub(super) struct ProcessGroup {
    anchor: Child,
    pub(super) id: Pid,
}

impl ProcessGroup {
    pub(super) fn new() -> std::io::Result<Self> {
        let anchor = Command::new("/bin/sh")
            .args(["-c", ANCHOR])
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let id = Pid::from_child(&anchor);
        Ok(Self { anchor, id })
    }

    /// Kills the group.
    pub(super) fn kill(&self) {
        // The group may be empty.
        _ = kill_process_group(self.id, Signal::KILL);
    }

    /// Kills the group and waits until its processes have ended. A killed process lives for a
    /// moment, and could change a file that was already read.
    pub(super) fn end(&self) {
        self.kill();
        for _ in 0..ENDINGS {
            if members(self.id).is_none_or(|running| running.is_empty()) {
                return;
            }
            std::thread::sleep(ENDING);
        }
        tracing::warn!(group = self.id.as_raw_nonzero().get(), "processes of a program do not end after a kill");
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
        _ = self.anchor.wait();
    }
}

/// A running process.
pub(super) struct GroupMember {
    id: String,
    /// The memory that it has in use, in bytes, with what it shares.
    resident: u64,
}

/// Lists the running processes of a group; `None` where the system does not tell.
pub(super) fn members(group: Pid) -> Option<Vec<GroupMember>> {
    let entries = std::fs::read_dir("/proc").ok()?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let ids = names.filter(|name| name.bytes().all(|digit| digit.is_ascii_digit()));
    let group = group.as_raw_nonzero().get();
    // The process may have ended meanwhile.
    let members = ids.filter_map(|id| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        if group_of(&stat)? != group {
            return None;
        }
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        Some(GroupMember { id, resident: bytes(&status, "VmRSS:").unwrap_or(0) })
    });
    Some(members.collect())
}

/// Returns the memory of processes together, in bytes, if it may be above a limit. What they share counts once.
pub(super) fn memory_above(limit: u64, members: &[GroupMember]) -> Option<u64> {
    let total = |of: &dyn Fn(&GroupMember) -> u64| members.iter().map(of).fold(0, u64::saturating_add);
    if total(&|member| member.resident) <= limit {
        return None;
    }
    let used = total(&|member| share(member).unwrap_or(member.resident));
    (used > limit).then_some(used)
}

/// Returns a process's share of the memory: its own, and its part of what several processes share.
fn share(member: &GroupMember) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", member.id)).ok()?;
    Some(bytes(&text, "Pss:")?.saturating_add(bytes(&text, "SwapPss:").unwrap_or(0)))
}

/// Reads a field such as `VmRSS: 12 kB`.
fn bytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.saturating_mul(1024))
}

/// Parses the group of a process, the third field after its name in parentheses; `None` for a zombie. Kernel threads have
/// the group 0.
fn group_of(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(1)?.parse().ok() }
}
