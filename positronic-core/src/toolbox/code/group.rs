//! A process group that ends as a whole.
//!
//! Its leader is the **anchor**: a shell that waits for the end of its input, which this process holds, and then kills the group. So
//! a group outlives neither its run nor this process, whatever ends it. As long as the anchor is not waited for, no other
//! group has its number.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::supervise::{Stop, Stopped};

/// The longest pause between two looks at a program.
const PAUSE: Duration = Duration::from_millis(20);

/// How often, and with which pause between, the end of processes that were killed is waited for.
const ENDINGS: usize = 100;
const ENDING: Duration = Duration::from_millis(2);

/// Waits for the end of the input, and ends the group.
const ANCHOR: &str = "read -r _; kill -9 0";

/// A process group. It ends with this value.
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
        // An empty group is fine.
        _ = kill_process_group(self.id, Signal::KILL);
    }

    /// Kills the group and waits until none of its processes can do anything any more. A process that was killed goes on for a
    /// moment, and it could change a file that was looked at already.
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

/// Waits until the program has ended or is to be stopped. It is not waited for as a process, so its number stays its own.
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
        // The anchor is one of them.
        if let Some(processes) = processes
            && count(group).is_some_and(|count| count > processes.saturating_add(1))
        {
            return Some(Stopped::Processes);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE);
    }
}

/// Counts the processes of a group that run.
fn count(group: Pid) -> Option<usize> {
    let entries = std::fs::read_dir("/proc").ok()?;
    let is_process = |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let processes = entries.flatten().filter(|entry| is_process(&entry.file_name()));
    // A process that has ended in the meantime has no file.
    let groups = processes.filter_map(|entry| group_of(&std::fs::read_to_string(entry.path().join("stat")).ok()?));
    Some(groups.filter(|found| *found == group.as_raw_nonzero().get()).count())
}

/// Reads the group of a process, which stands third after its name in parentheses. Those of the kernel have the group 0. One that has
/// ended, and is still to be waited for, has none here.
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
    fn processes_that_the_kernel_does_not_count_are_counted_here() {
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
