//! A program and all that it starts: one group of processes with limits, which ends as a whole.
//!
//! Three processes begin a run. The **anchor** is a shell that waits for the end of its input, which is held by this process, and then
//! kills its group: so a group outlives neither its run nor this process, whatever ends it. The **gate** is a shell in the same
//! group that waits for a line, since limits are set from outside, and then becomes the **program**. As long as the
//! anchor is not waited for, no other group has its number.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::{CodeLimits, CodeOptions, Protection};
use crate::toolbox::folder::OutputFolder;

/// What is to be run.
pub(super) struct Job<'a> {
    /// The program and its arguments.
    pub(super) command: Vec<OsString>,
    /// Its whole environment.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Where it runs.
    pub(super) folder: &'a OutputFolder,
    /// How.
    pub(super) options: &'a CodeOptions,
}

/// What came of it.
pub(super) struct Ended {
    pub(super) exit_code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) stopped: Option<Stopped>,
    pub(super) not_enforced: Vec<Protection>,
}

/// Why a program was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    Time,
    Cancelled,
    Processes,
    Cpu,
    FileSize,
    Signal(i32),
}

impl Stopped {
    pub(super) fn sentence(self, limits: &CodeLimits) -> String {
        match self {
            Self::Time => {
                format!("the program took longer than {:?}, and was killed with all its processes", limits.time)
            }
            Self::Cancelled => "the program was cancelled, and was killed with all its processes".to_owned(),
            Self::Processes => {
                format!("the program had more than {} processes, and was killed with all of them", limits.processes)
            }
            Self::Cpu => format!("the program used more than {} seconds of processor time", limits.cpu_seconds),
            Self::FileSize => "the program wrote a larger file than it may".to_owned(),
            Self::Signal(signal) => format!("the program was ended by signal {signal}"),
        }
    }
}

/// Says, from anywhere, that a program is to end.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicU8>);

impl Stop {
    const TIME: u8 = 1;
    const CANCELLED: u8 = 2;

    /// Stops the program; the first reason stands.
    pub(super) fn now(&self, why: Stopped) {
        let why = if why == Stopped::Time { Self::TIME } else { Self::CANCELLED };
        // Who comes second has nothing to add.
        _ = self.0.compare_exchange(0, why, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn said(&self) -> Option<Stopped> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            Self::TIME => Some(Stopped::Time),
            _ => Some(Stopped::Cancelled),
        }
    }
}

#[cfg(unix)]
pub(super) use unix::{missing, run};

#[cfg(not(unix))]
pub(super) fn missing() -> Vec<Protection> {
    Vec::new()
}

#[cfg(not(unix))]
pub(super) fn run(_: &Job<'_>, _: &Stop) -> Result<Ended, super::CodeError> {
    Err(super::CodeError::Platform)
}

#[cfg(unix)]
mod unix {
    use std::io::{Read, Write as _};
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Child, Command, Stdio};
    use std::sync::OnceLock;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

    use super::{Ended, Job, Stop, Stopped};
    use crate::toolbox::code::runner::may_run;
    use crate::toolbox::code::{CodeError, Protection};
    use crate::toolbox::folder::OutputFolder;

    /// The longest pause between two looks at a program.
    const PAUSE: Duration = Duration::from_millis(20);

    /// How long the rest of the output of a program that was killed is waited for. Only a process that has left the group, where
    /// the machine could not forbid that, holds it open.
    const DRAIN: Duration = Duration::from_secs(1);

    /// How far a program stands back behind others: half of what there is.
    const NICE: i32 = 10;

    /// Waits for the end of the input, and ends the group.
    const ANCHOR: &str = "read -r _; kill -9 0";

    /// Waits until the limits are set, and becomes the program.
    const GATE: &str = "read -r _ && exec \"$@\" </dev/null";

    /// Says what this machine cannot hold a program to.
    pub(in crate::toolbox::code) fn missing() -> Vec<Protection> {
        static MISSING: OnceLock<Vec<Protection>> = OnceLock::new();
        MISSING.get_or_init(|| {
            let mut missing = in_thread(|| held_by_thread(None, &[], 0)).unwrap_or_else(|_| ALL.to_vec());
            missing.extend(limits_missing());
            missing
        });
        MISSING.get().cloned().unwrap_or_default()
    }

    const ALL: [Protection; 4] = [Protection::Files, Protection::Network, Protection::Processes, Protection::Group];

    /// Runs a program to its end.
    pub(in crate::toolbox::code) fn run(job: &Job<'_>, stop: &Stop) -> Result<Ended, CodeError> {
        let mut group = Group::new().map_err(CodeError::Start)?;
        let (mut gate, mut not_enforced) = start(job, group.id)?;
        let limits = &job.options.limits;
        let limited = limit(Pid::from_child(&gate), limits, job.folder.options().max_file);
        not_enforced.extend(&limited.missing);
        // Whoever watches the program goes before it.
        _ = rustix::process::setpriority_pgrp(Some(group.id), NICE);
        let started = may_run(job.options, &not_enforced).and_then(|()| open(&mut gate).map_err(CodeError::Start));
        if let Err(error) = started {
            group.kill();
            // It is dead or dying, and what it says does not matter.
            _ = gate.wait();
            return Err(error);
        }
        let stdout = kept(gate.stdout.take(), limits.output);
        let stderr = kept(gate.stderr.take(), limits.output);
        // What the kernel counts need not be counted here.
        let counted = (!limited.is_counted).then_some(limits.processes);
        let stopped = watch(&gate, group.id, stop, counted);
        group.kill();
        let status = gate.wait().map_err(CodeError::Start)?;
        drop(limited);
        let stopped = stopped.or_else(|| {
            status.signal().map(|signal| match Signal::from_named_raw(signal) {
                Some(Signal::XCPU) => Stopped::Cpu,
                Some(Signal::XFSZ) => Stopped::FileSize,
                _ => Stopped::Signal(signal),
            })
        });
        let text = |part: Receiver<String>| {
            part.recv_timeout(DRAIN)
                .unwrap_or_else(|_| "[a process that has left its group holds the output]".to_owned())
        };
        Ok(Ended { exit_code: status.code(), stdout: text(stdout), stderr: text(stderr), stopped, not_enforced })
    }

    /// A group of processes, which ends with this value.
    struct Group {
        anchor: Child,
        id: Pid,
    }

    impl Group {
        fn new() -> std::io::Result<Self> {
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

        fn kill(&mut self) {
            // A group of which nobody is left is as it should be.
            _ = kill_process_group(self.id, Signal::KILL);
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            self.kill();
            _ = self.anchor.wait();
        }
    }

    /// Starts the gate from a thread that has given up its rights, and says which ones it could not give up.
    fn start(job: &Job<'_>, group: Pid) -> Result<(Child, Vec<Protection>), CodeError> {
        let group = group.as_raw_nonzero().get();
        in_thread(|| {
            let missing = held_by_thread(Some(job.folder), &job.options.readable, group);
            may_run(job.options, &missing)?;
            let gate = Command::new("/bin/sh")
                .args(["-c", GATE, "sh"])
                .args(&job.command)
                .env_clear()
                .envs(job.environment.iter().map(|(name, value)| (name, value)))
                .current_dir(job.folder.place())
                .process_group(group)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(CodeError::Start)?;
            Ok((gate, missing))
        })
        .map_err(CodeError::Start)?
    }

    /// Does work in a thread of its own, whose rights are its own.
    fn in_thread<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("positronic-code".to_owned()).spawn_scoped(scope, work)?;
            thread.join().map_err(|_| std::io::Error::other("the thread that starts the program panicked"))
        })
    }

    #[cfg(target_os = "linux")]
    fn held_by_thread(folder: Option<&OutputFolder>, readable: &[std::path::PathBuf], group: i32) -> Vec<Protection> {
        crate::toolbox::code::sandbox::give_up_rights(folder.map(OutputFolder::dir), readable, group)
    }

    #[cfg(not(target_os = "linux"))]
    fn held_by_thread(_: Option<&OutputFolder>, _: &[std::path::PathBuf], _: i32) -> Vec<Protection> {
        ALL.to_vec()
    }

    #[cfg(target_os = "linux")]
    use crate::toolbox::code::limits::{limit, missing as limits_missing};

    #[cfg(not(target_os = "linux"))]
    struct Limited {
        missing: Vec<Protection>,
        is_counted: bool,
    }

    #[cfg(not(target_os = "linux"))]
    fn limit(_: Pid, _: &crate::toolbox::code::CodeLimits, _: u64) -> Limited {
        Limited { missing: limits_missing(), is_counted: false }
    }

    #[cfg(not(target_os = "linux"))]
    fn limits_missing() -> Vec<Protection> {
        vec![Protection::Resources, Protection::Count]
    }

    /// Lets the gate become the program.
    fn open(gate: &mut Child) -> std::io::Result<()> {
        match gate.stdin.take() {
            Some(mut line) => line.write_all(b"\n"),
            None => Err(std::io::Error::other("the gate has no input")),
        }
    }

    /// Waits until the program has ended or is to be stopped. It is not waited for as a process, so its number stays its own.
    fn watch(program: &Child, group: Pid, stop: &Stop, processes: Option<usize>) -> Option<Stopped> {
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

    /// Counts the processes of a group.
    fn count(group: Pid) -> Option<usize> {
        let entries = std::fs::read_dir("/proc").ok()?;
        let is_process = |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        let processes = entries.flatten().filter(|entry| is_process(&entry.file_name()));
        // A process that has ended in the meantime is none.
        let groups = processes.filter_map(|entry| group_of(&std::fs::read_to_string(entry.path().join("stat")).ok()?));
        Some(groups.filter(|found| *found == group.as_raw_nonzero().get()).count())
    }

    /// Reads the group of a process, which stands third after its name in parentheses. Those of the kernel have the group 0.
    fn group_of(stat: &str) -> Option<i32> {
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_whitespace().nth(2)?.parse().ok()
    }

    /// Reads all that a program writes, and keeps the beginning and the end.
    fn kept(from: Option<impl Read + Send + 'static>, limit: usize) -> Receiver<String> {
        let (sender, receiver) = channel();
        let read = move || {
            let text = from.map(|from| beginning_and_end(from, limit)).unwrap_or_default();
            // Who has given up waiting does not want to know.
            _ = sender.send(text);
        };
        // Without a thread the sender is dropped, and the text is what is said of a process that holds its output.
        _ = std::thread::Builder::new().name("positronic-code-output".to_owned()).spawn(read);
        receiver
    }

    fn beginning_and_end(mut from: impl Read, limit: usize) -> String {
        let half = limit / 2;
        let (mut beginning, mut end, mut left_out) = (Vec::new(), std::collections::VecDeque::new(), 0_u64);
        let mut part = vec![0; 16 << 10];
        loop {
            let read = match from.read(&mut part) {
                Ok(0) => break,
                Ok(read) => part.get(..read).unwrap_or_default(),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let (first, rest) = read.split_at(read.len().min(half - beginning.len()));
            beginning.extend_from_slice(first);
            end.extend(rest);
            let more = end.len().saturating_sub(limit - half);
            left_out += more as u64;
            end.drain(..more);
        }
        if left_out == 0 {
            beginning.extend(end);
            return String::from_utf8_lossy(&beginning).into_owned();
        }
        let end: Vec<u8> = end.into();
        let (beginning, end) = (String::from_utf8_lossy(&beginning), String::from_utf8_lossy(&end));
        format!("{beginning}\n[cut: {left_out} bytes are left out here; the limit is {limit}]\n{end}")
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

        #[test]
        fn output_is_whole_up_to_the_limit_and_then_cut_in_the_middle() {
            assert_eq!(beginning_and_end("0123456789".as_bytes(), 10), "0123456789");
            assert_eq!(
                beginning_and_end("0123456789a".as_bytes(), 10),
                "01234\n[cut: 1 bytes are left out here; the limit is 10]\n6789a"
            );
            let long = "x".repeat(100_000);
            assert!(beginning_and_end(long.as_bytes(), 11).contains("[cut: 99989 bytes"));
        }
    }
}
