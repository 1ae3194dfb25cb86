//! Watch over a running program: its end, a request to stop it, and the limits that no kernel enforces.

use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::process_group::{members, memory_above};
use super::room::DiskUse;
use super::stop::{StopReason, StopRequest};

/// The maximum pause between two polls of a program.
const PAUSE: Duration = Duration::from_millis(20);

/// What is watched of a program's group of processes.
pub(super) struct Watch<'a, 'f> {
    pub(super) group: Pid,
    /// The maximum number of processes, if the kernel does not count them.
    pub(super) processes: Option<usize>,
    /// The maximum memory of all of them, in bytes.
    pub(super) memory: u64,
    /// The room in the folder.
    pub(super) room: &'a mut DiskUse<'f>,
}

impl Watch<'_, '_> {
    /// Waits until the program has ended or must be stopped. It does not reap the process, so the process id is not reused.
    pub(super) fn until_the_end(mut self, program: &Child, stop: &StopRequest) -> Option<StopReason> {
        let id = Pid::from_child(program);
        let mut pause = Duration::from_millis(1);
        loop {
            let ended = waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG);
            if !matches!(ended, Ok(None) | Err(rustix::io::Errno::INTR)) {
                return None;
            }
            if let Some(stopped) = stop.said().or_else(|| self.exceeded()) {
                return Some(stopped);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE);
        }
    }

    /// Returns the limit that the program has exceeded.
    fn exceeded(&mut self) -> Option<StopReason> {
        if let Some(full) = self.room.exceeded() {
            return Some(StopReason::Room(full.to_string()));
        }
        let members = members(self.group)?;
        // The anchor counts, too.
        if self.processes.is_some_and(|processes| members.len() > processes.saturating_add(1)) {
            return Some(StopReason::Processes);
        }
        memory_above(self.memory, &members).map(StopReason::Memory)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use super::*;
    use crate::OutputFolder;
    use crate::code::process_group::ProcessGroup;

    fn watched(script: &str, processes: Option<usize>, memory: u64) -> Option<StopReason> {
        let place = std::env::temp_dir().join(format!("positronic-watch-{:016x}", crate::random::random()));
        let folder = OutputFolder::open(&place).unwrap();
        let group = ProcessGroup::new().unwrap();
        let id = group.id.as_raw_nonzero().get();
        let mut program = Command::new("/bin/sh").args(["-c", script]).process_group(id).spawn().unwrap();
        let watch = Watch { group: group.id, processes, memory, room: &mut DiskUse::of(&folder, 0).unwrap() };
        let stopped = watch.until_the_end(&program, &StopRequest::default());
        drop(group);
        program.wait().unwrap();
        std::fs::remove_dir_all(place).unwrap();
        stopped
    }

    #[test]
    fn processes_are_counted_where_the_kernel_does_not() {
        assert_eq!(watched("sleep 0.2 & sleep 0.2 & wait", Some(4), u64::MAX), None);
        let many = "for n in 1 2 3 4 5 6; do sleep 60 & done; wait";
        assert_eq!(watched(many, Some(4), u64::MAX), Some(StopReason::Processes));
    }

    #[test]
    fn memory_of_all_processes_is_counted_together() {
        let stopped = watched("sleep 60 & sleep 60 & wait", None, 100_000);

        assert!(matches!(stopped, Some(StopReason::Memory(used)) if used > 100_000), "{stopped:?}");
    }
}
