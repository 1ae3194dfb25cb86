//! What a server has started, also outside its process group.
//!
//! A process leaves its group by `setsid` and its parent by a double fork. What it keeps, unless it wants to be lost, is its
//! environment. So a server's environment has a mark, and when the server has ended, every process with the mark is killed, with the
//! children that these have at that time. Only Linux shows the environments of processes, and only those of the same user.

use std::ffi::OsStr;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// The variable that has the mark.
pub(super) const VARIABLE: &str = "POSITRONIC_MCP_SERVER";

/// The mark of one server, which no other process has.
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

    /// How often it is looked, and the pause between: a process goes on for a moment after it was killed, and may start others.
    const LOOKS: usize = 50;
    const PAUSE: Duration = Duration::from_millis(2);

    /// A process, as far as it matters here.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Seen {
        id: i32,
        parent: i32,
        is_marked: bool,
    }

    impl Mark {
        /// Kills every process with the mark, and waits until there is none.
        pub(in super::super) fn end_processes(&self) {
            for _ in 0..LOOKS {
                let found = self.processes();
                if found.is_empty() {
                    return;
                }
                // Held before the first is killed, since a child whose parent has gone is nobody's child any more.
                let held: Vec<_> = found.into_iter().filter_map(|seen| self.hold(seen)).collect();
                for process in held {
                    // One that has ended in the meantime is as it should be.
                    _ = pidfd_send_signal(&process, Signal::KILL);
                }
                std::thread::sleep(PAUSE);
            }
            tracing::warn!("processes of an MCP server do not end after a kill");
        }

        /// Returns the processes with the mark, and those that they have started.
        fn processes(&self) -> Vec<Seen> {
            let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
            let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            let all: Vec<_> = ids.filter_map(|id| self.look(id)).collect();
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

        /// Looks at a process; none has this number, or it has ended and is only to be waited for.
        fn look(&self, id: i32) -> Option<Seen> {
            let folder = PathBuf::from(format!("/proc/{id}"));
            let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
            let (_, rest) = stat.rsplit_once(')')?;
            let mut fields = rest.split_whitespace();
            if matches!(fields.next()?, "Z" | "X") {
                return None;
            }
            let parent = fields.next()?.parse().ok()?;
            // That of another user cannot be read.
            let environment = std::fs::read(folder.join("environ")).unwrap_or_default();
            let mark = format!("{VARIABLE}={}", self.0);
            let is_marked = environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes());
            Some(Seen { id, parent, is_marked })
        }

        /// Takes hold of a process, and of no other one that has its number by now.
        fn hold(&self, seen: Seen) -> Option<OwnedFd> {
            let process = pidfd_open(Pid::from_raw(seen.id)?, PidfdFlags::empty()).ok()?;
            (self.look(seen.id) == Some(seen)).then_some(process)
        }
    }
}
