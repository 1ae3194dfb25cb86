//! A process group that ends as a unit.
//!
//! Its leader is the **anchor**: a shell that waits for the end of its input, which this process holds open, and then kills the
//! group. So a group outlives neither its run nor this process, however it ends. While the anchor is not reaped, its group id
//! is not reused.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::processes::members;

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
