//! The process of a server, which ends with all that it has started, and the last lines of its error output.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::command::McpCommand;
use super::descendants::{Mark, VARIABLE};
use super::limited::{Limited, Overflow};
use crate::record::is_invisible;

/// How long a server has, after its input was closed, to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// How long the end of a process is waited for, when its output has ended.
const NOTICE: Duration = Duration::from_millis(500);

/// How much of the error output is kept, in bytes.
const KEPT: usize = 4096;

/// How many lines of it are shown.
const SHOWN: usize = 6;

/// A server's process. Dropping it ends the whole group.
pub(in crate::mcp) struct Process {
    ended: watch::Receiver<Option<String>>,
    said: Said,
    overflow: Overflow,
    _stop: DropGuard,
}

impl Process {
    /// Starts a server, and answers with its output and its input, too.
    pub(super) fn start(
        server: &str,
        command: &McpCommand,
        longest: usize,
    ) -> std::io::Result<(Self, Limited<ChildStdout>, ChildStdin)> {
        // A descriptor that this process has inherited, or that a C library has opened, is none of the server's.
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
        let said = Said::default();
        if let Some(errors) = child.stderr.take() {
            tokio::spawn(listen(errors, said.clone(), server.to_owned()));
        }
        let (output, overflow) = Limited::new(output, longest);
        let (told, ended) = watch::channel(None);
        let stop = CancellationToken::new();
        tokio::spawn(attend(child, mark, stop.clone(), told));
        Ok((Self { ended, said, overflow, _stop: stop.drop_guard() }, output, input))
    }

    /// Says how the process ended, and what it said last.
    pub(super) async fn last_words(&self) -> String {
        let mut ended = self.ended.clone();
        let waited = tokio::time::timeout(NOTICE, ended.wait_for(Option::is_some)).await;
        let end = match (self.overflow.sentence(), waited) {
            (Some(overflow), _) => overflow,
            (None, Ok(Ok(status))) => (*status).clone().unwrap_or_default(),
            (None, _) => "it closed its output, and runs on".to_owned(),
        };
        match self.said.lines() {
            lines if lines.is_empty() => end,
            lines => format!("{end}; the last it said: {lines}"),
        }
    }
}

/// Waits for the end of a process, and ends its group with it.
async fn attend(mut child: Child, mark: Mark, stop: CancellationToken, told: watch::Sender<Option<String>>) {
    // Dropped before the child, so also where the runtime ends first.
    let group = Group::of(&child, mark);
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
    // What the server has started has no business without it. A runtime that ends drops this work, and the group with it.
    _ = tokio::task::spawn_blocking(move || drop(group)).await;
    // Whoever does not listen any more does not want to know.
    _ = told.send(Some(ended.map_or_else(|error| error.to_string(), |status| format!("it ended with {status}"))));
}

/// A server's processes: its group, and those that have left it. They are killed when it is dropped.
struct Group {
    mark: Mark,
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    fn of(child: &Child, mark: Mark) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        Self { mark, id }
    }

    fn kill(&self) {
        if let Some(id) = self.id {
            // A group of which nobody is left is as it should be.
            _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(not(unix))]
impl Group {
    fn of(_: &Child, mark: Mark) -> Self {
        Self { mark }
    }

    /// Without groups, the child alone is killed, when it is dropped.
    fn kill(&self) {}
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        self.mark.end_processes();
    }
}

/// The end of what a server says in its error output.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<VecDeque<u8>>>);

impl Said {
    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let more = kept.len().saturating_sub(KEPT);
        kept.drain(..more);
    }

    /// Returns the last lines, in one.
    fn lines(&self) -> String {
        let bytes: Vec<u8> = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let shown = lines.get(lines.len().saturating_sub(SHOWN)..).unwrap_or_default().join(" / ");
        shown.replace(|letter: char| letter.is_control() || is_invisible(letter), " ")
    }
}

async fn listen(mut errors: impl AsyncRead + Unpin, said: Said, server: String) {
    let mut part = vec![0; 1024];
    while let Ok(read @ 1..) = errors.read(&mut part).await {
        let bytes = part.get(..read).unwrap_or_default();
        tracing::debug!(server, text = %String::from_utf8_lossy(bytes), "an MCP server says");
        said.add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_without_control_characters() {
        let said = Said::default();
        for n in 0..10_000 {
            said.add(format!("line {n}\r\n").as_bytes());
        }
        said.add(b"\x1b[31mred\n");

        let lines = said.lines();
        assert!(lines.starts_with("line 9995 / "), "{lines}");
        assert!(lines.ends_with("line 9999 /  [31mred"), "{lines}");
        assert!(said.0.lock().unwrap().len() <= KEPT);
    }
}
