//! A process group that ends as a unit.
//!
//! Its leader is the **anchor**: a shell that waits for the end of its input, which this process holds open, and then kills the
//! group. So a group outlives neither its run nor this process, however it ends. While the anchor is not reaped, its group id
//! is not reused.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::supervise::{Stop, Stopped};

/// The maximum pause between two polls of a program.
const PAUSE: Duration = Duration::from_millis(20);

/// The number of polls for the end of killed processes, and the pause between them.
const ENDINGS: usize = 100;
const ENDING: Duration = Duration::from_millis(2);

/// Waits for the end of the input, and kills the group.
const ANCHOR: &str = "read -r _; kill -9 0";

/// A process group. Dropping it kills the group.
pub(super) struct Group {
    anchor: Child,
    pub(super) id: Pid,
}

impl Group {
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
            if count(self.id).is_none_or(|running| running == 0) {
                return;
            }
            std::thread::sleep(ENDING);
        }
        tracing::warn!(group = self.id.as_raw_nonzero().get(), "processes of a program do not end after a kill");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        _ = self.anchor.wait();
    }
}

/// Waits until the program has ended or must be stopped. It does not reap the process, so the process id is not reused.
pub(super) fn watch(program: &Child, group: Pid, stop: &Stop, processes: Option<usize>) -> Option<Stopped> {
    let id = Pid::from_child(program);
    let mut pause = Duration::from_millis(1);
    loop {
        let ended = waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG);
        if !matches!(ended, Ok(None) | Err(rustix::io::Errno::INTR)) {
            return None;
        }
        if let Some(stopped) = stop.said() {
            return Some(stopped);
        }
        // The anchor counts, too.
        if let Some(processes) = processes
            && count(group).is_some_and(|count| count > processes.saturating_add(1))
        {
            return Some(Stopped::Processes);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE);
    }
}

/// Counts the running processes of a group.
fn count(group: Pid) -> Option<usize> {
    let entries = std::fs::read_dir("/proc").ok()?;
    let is_process = |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let processes = entries.flatten().filter(|entry| is_process(&entry.file_name()));
    // The process may have ended meanwhile.
    let groups = processes.filter_map(|entry| group_of(&std::fs::read_to_string(entry.path().join("stat")).ok()?));
    Some(groups.filter(|found| *found == group.as_raw_nonzero().get()).count())
}

/// Parses the group of a process, the third field after its name in parentheses. Kernel threads have the group 0. A
/// zombie counts as none.
fn group_of(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(1)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_counted_where_the_kernel_does_not() {
        let group = Group::new().unwrap();
        let many = |script: &str| {
            let id = group.id.as_raw_nonzero().get();
            Command::new("/bin/sh").args(["-c", script]).process_group(id).spawn().unwrap()
        };

        let mut few = many("sleep 0.2 & sleep 0.2 & wait");
        assert_eq!(watch(&few, group.id, &Stop::default(), Some(4)), None);
        few.wait().unwrap();
        let mut more = many("for n in 1 2 3 4 5 6; do sleep 60 & done; wait");
        assert_eq!(watch(&more, group.id, &Stop::default(), Some(4)), Some(Stopped::Processes));
        drop(group);
        more.wait().unwrap();
    }
}
