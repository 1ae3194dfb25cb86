//! Cleanup of a server's descendants outside of its process group.
//!
//! A process leaves its group by `setsid` and its parent by a double fork, but usually keeps its environment. So a server's
//! environment contains a marker, and when the server has ended, every process with the marker is killed, together with its
//! current children. Only Linux exposes the environments of processes, and only those of the same user.

use std::ffi::OsStr;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// The variable with the marker.
pub(super) const VARIABLE: &str = "POSITRONIC_MCP_SERVER";

/// The unique marker of one server.
#[derive(Debug)]
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn new() -> Self {
        let random = || RandomState::new().build_hasher().finish();
        Self(format!("{:016x}{:016x}", random(), random()))
    }

    pub(super) fn value(&self) -> &OsStr {
        OsStr::new(&self.0)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn end_processes(&self) {}
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::os::fd::OwnedFd;
    use std::path::PathBuf;
    use std::time::Duration;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::{Mark, VARIABLE};

    /// The number of attempts, and the pause between them: a killed process lives for a moment and may start others.
    const ATTEMPTS: usize = 50;
    const PAUSE: Duration = Duration::from_millis(2);

    /// The relevant data of a process.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct ProcessStat {
        id: i32,
        parent: i32,
        is_marked: bool,
    }

    impl Mark {
        /// Kills every process with the marker, and waits until there are none.
        pub(in super::super) fn end_processes(&self) {
            for _ in 0..ATTEMPTS {
                let found = self.processes();
                if found.is_empty() {
                    return;
                }
                // All handles are opened before the first kill, since orphans lose their parent.
                let handles: Vec<_> = found.into_iter().filter_map(|seen| self.open_handle(seen)).collect();
                for process in handles {
                    // It may have ended meanwhile.
                    _ = pidfd_send_signal(&process, Signal::KILL);
                }
                std::thread::sleep(PAUSE);
            }
            tracing::warn!("processes of an MCP server do not end after a kill");
        }

        /// Returns the processes with the marker, and their children.
        fn processes(&self) -> Vec<ProcessStat> {
            let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
            let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            let all: Vec<_> = ids.filter_map(|id| self.inspect(id)).collect();
            let mut ours: BTreeSet<_> = all.iter().filter(|seen| seen.is_marked).map(|seen| seen.id).collect();
            while !ours.is_empty() {
                let count = ours.len();
                ours.extend(
                    all.iter().filter(|seen| ours.contains(&seen.parent)).map(|seen| seen.id).collect::<Vec<_>>(),
                );
                if ours.len() == count {
                    break;
                }
            }
            all.into_iter().filter(|seen| ours.contains(&seen.id)).collect()
        }

        /// Reads a process; `None` if it does not exist or is a zombie.
        fn inspect(&self, id: i32) -> Option<ProcessStat> {
            let folder = PathBuf::from(format!("/proc/{id}"));
            let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
            let (_, rest) = stat.rsplit_once(')')?;
            let mut fields = rest.split_whitespace();
            if matches!(fields.next()?, "Z" | "X") {
                return None;
            }
            let parent = fields.next()?.parse().ok()?;
            // Processes of other users cannot be read.
            let environment = std::fs::read(folder.join("environ")).unwrap_or_default();
            let mark = format!("{VARIABLE}={}", self.0);
            let is_marked = environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes());
            Some(ProcessStat { id, parent, is_marked })
        }

        /// Opens a handle of a process, unless its id was reused.
        fn open_handle(&self, seen: ProcessStat) -> Option<OwnedFd> {
            let process = pidfd_open(Pid::from_raw(seen.id)?, PidfdFlags::empty()).ok()?;
            (self.inspect(seen.id) == Some(seen)).then_some(process)
        }
    }
}
