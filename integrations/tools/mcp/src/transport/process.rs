//! The process of a server with its descendants, and the end of its error output.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use positronic_core::record::is_invisible;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::command::McpCommand;
use super::descendants::{Mark, VARIABLE};
use super::limited::{LineLimit, Overflow};

/// How long a server may take to exit after its input was closed.
const GRACE: Duration = Duration::from_secs(2);

/// How long to wait for a process to exit after its output has ended.
const NOTICE: Duration = Duration::from_millis(500);

/// The maximum stored size of the error output, in bytes.
const MAX_STORED: usize = 4096;

/// The maximum number of shown lines.
const SHOWN: usize = 6;

/// A server's process. Dropping it kills the process group.
pub(crate) struct ServerProcess {
    ended: watch::Receiver<Option<String>>,
    reported: ErrorOutput,
    overflow: Overflow,
    _stop: DropGuard,
}

impl ServerProcess {
    /// Starts a server; also returns its output and its input.
    pub(super) fn start(
        server: &str,
        command: &McpCommand,
        longest: usize,
    ) -> std::io::Result<(Self, LineLimit<ChildStdout>, ChildStdin)> {
        // The server must not get descriptors that this process has inherited or that a C library has opened.
        #[cfg(unix)]
        close_fds::set_fds_cloexec_threadsafe(3, &[]);
        let mark = Mark::new();
        let mut building = Command::new(&command.program);
        building
            .args(&command.arguments)
            .env_clear()
            .envs(command.environment.iter().map(|(name, value)| (name, value)))
            .env(VARIABLE, mark.value())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(folder) = &command.folder {
            building.current_dir(folder);
        }
        #[cfg(unix)]
        building.process_group(0);
        let mut child = building.spawn()?;
        let missing = || std::io::Error::other("it has no input and output");
        let (input, output) = (child.stdin.take().ok_or_else(missing)?, child.stdout.take().ok_or_else(missing)?);
        let reported = ErrorOutput::default();
        if let Some(errors) = child.stderr.take() {
            tokio::spawn(listen(errors, reported.clone(), server.to_owned()));
        }
        let (output, overflow) = LineLimit::new(output, longest);
        let (status, ended) = watch::channel(None);
        let stop = CancellationToken::new();
        tokio::spawn(supervise(child, mark, stop.clone(), status));
        Ok((Self { ended, reported, overflow, _stop: stop.drop_guard() }, output, input))
    }

    /// Describes how the process ended, with its last error output.
    pub(super) async fn end_reason(&self) -> String {
        let mut ended = self.ended.clone();
        let waited = tokio::time::timeout(NOTICE, ended.wait_for(Option::is_some)).await;
        let end = match (self.overflow.sentence(), waited) {
            (Some(overflow), _) => overflow,
            (None, Ok(Ok(status))) => (*status).clone().unwrap_or_default(),
            (None, _) => "it closed its output but is still running".to_owned(),
        };
        match self.reported.lines() {
            lines if lines.is_empty() => end,
            lines => format!("{end}; last output: {lines}"),
        }
    }
}

/// Waits for a process to exit, and then kills its group.
async fn supervise(mut child: Child, mark: Mark, stop: CancellationToken, status: watch::Sender<Option<String>>) {
    // Dropped before the child, also when the runtime ends first.
    let group = ServerProcesses::of(&child, mark);
    let ended = tokio::select! {
        ended = child.wait() => ended,
        () = stop.cancelled() => match tokio::time::timeout(GRACE, child.wait()).await {
            Ok(ended) => ended,
            Err(_) => {
                group.kill();
                child.wait().await
            }
        },
    };
    // The server's descendants must not outlive it. If the runtime ends, this task and the group are dropped.
    _ = tokio::task::spawn_blocking(move || drop(group)).await;
    // The receiver may be gone.
    _ = status.send(Some(ended.map_or_else(|error| error.to_string(), |status| format!("it ended with {status}"))));
}

/// A server's processes: its group, and those that have left it. Dropping it kills them.
struct ServerProcesses {
    mark: Mark,
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl ServerProcesses {
    fn of(child: &Child, mark: Mark) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        Self { mark, id }
    }

    fn kill(&self) {
        if let Some(id) = self.id {
            // The group may be empty.
            _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(not(unix))]
impl ServerProcesses {
    fn of(_: &Child, mark: Mark) -> Self {
        Self { mark }
    }

    /// Without groups, only the child is killed, on drop.
    fn kill(&self) {}
}

impl Drop for ServerProcesses {
    fn drop(&mut self) {
        self.kill();
        self.mark.end_processes();
    }
}

/// The end of a server's error output.
#[derive(Clone, Default)]
struct ErrorOutput(Arc<Mutex<VecDeque<u8>>>);

impl ErrorOutput {
    fn add(&self, bytes: &[u8]) {
        let mut stored = self.0.lock();
        stored.extend(bytes);
        let more = stored.len().saturating_sub(MAX_STORED);
        stored.drain(..more);
    }

    /// Returns the last lines, joined into one.
    fn lines(&self) -> String {
        let bytes: Vec<u8> = self.0.lock().iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let shown = lines.get(lines.len().saturating_sub(SHOWN)..).unwrap_or_default().join(" / ");
        shown.replace(|char: char| char.is_control() || is_invisible(char), " ")
    }
}

async fn listen(mut errors: impl AsyncRead + Unpin, reported: ErrorOutput, server: String) {
    let mut part = vec![0; 1024];
    while let Ok(read @ 1..) = errors.read(&mut part).await {
        let bytes = part.get(..read).unwrap_or_default();
        tracing::debug!(server, text = %String::from_utf8_lossy(bytes), "an MCP server says");
        reported.add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_are_stored_without_control_characters() {
        let reported = ErrorOutput::default();
        for n in 0..10_000 {
            reported.add(format!("line {n}\r\n").as_bytes());
        }
        reported.add(b"\x1b[31mred\n");

        let lines = reported.lines();
        assert!(lines.starts_with("line 9995 / "), "{lines}");
        assert!(lines.ends_with("line 9999 /  [31mred"), "{lines}");
        assert!(reported.0.lock().len() <= MAX_STORED);
    }
}
