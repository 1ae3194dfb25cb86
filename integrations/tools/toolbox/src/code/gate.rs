//! Start of a program: by a thread that has dropped its privileges, through a gate that waits until its limits are set.
//!
//! The gate is a shell in the program's group. It waits for a line, since limits are set from outside, and then execs the program.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

use super::protections::may_run;
use super::supervise::Program;
use super::{CodeError, Protection};

/// Waits until the limits are set, and execs the program.
const GATE: &str = "read -r _ && exec \"$@\" </dev/null";

/// A program that has not started.
pub(super) struct WaitingProgram {
    pub(super) shell: Child,
    /// The missing protections.
    pub(super) missing: Vec<Protection>,
    /// The folder, temporarily owned by the program's user.
    pub(super) lent: Option<Lent>,
}

impl WaitingProgram {
    /// Starts the gate.
    pub(super) fn start(job: &Program<'_>, group: Pid) -> Result<Self, CodeError> {
        // The program must not get descriptors that this process has inherited or that a C library has opened.
        close_fds::set_fds_cloexec_threadsafe(3, &[]);
        let lent = Lent::of(job.folder);
        let started = shell(job, group, lent.as_ref())?;
        let (started, lent) = match (started, lent) {
            // That user cannot reach the folder, so the program runs as this process's user, and reports the missing protection.
            (None, Some(lent)) => {
                drop(lent);
                (shell(job, group, None)?, None)
            }
            (started, lent) => (started, lent),
        };
        let refused = || CodeError::Start(std::io::Error::other("the thread could not give up its rights"));
        let (shell, missing) = started.ok_or_else(refused)?;
        Ok(Self { shell, missing, lent })
    }

    /// Starts the program.
    pub(super) fn open(&mut self) -> std::io::Result<()> {
        match self.shell.stdin.take() {
            Some(mut line) => line.write_all(b"\n"),
            None => Err(std::io::Error::other("the gate has no input")),
        }
    }
}

/// Starts the shell; `None` if the thread could not become the user.
fn shell(job: &Program<'_>, group: Pid, lent: Option<&Lent>) -> Result<Option<(Child, Vec<Protection>)>, CodeError> {
    in_thread(|| {
        let Some(missing) = give_up_rights(Some(job), group.as_raw_nonzero().get(), lent.map(Lent::user)) else {
            return Ok(None);
        };
        may_run(job.options, &missing)?;
        let shell = Command::new("/bin/sh")
            .args(["-c", GATE, "sh"])
            .args(&job.command)
            .env_clear()
            .envs(job.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(job.folder.path())
            .process_group(group.as_raw_nonzero().get())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(CodeError::Start)?;
        Ok(Some((shell, missing)))
    })
    .map_err(CodeError::Start)?
}

/// Runs work in its own thread, whose privileges are separate.
pub(super) fn in_thread<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    let restore = keep_dumpable();
    let done = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("positronic-code".to_owned()).spawn_scoped(scope, work)?;
        thread.join().map_err(|_| std::io::Error::other("the thread that starts the program panicked"))
    });
    restore();
    done
}

/// Returns a function that undoes a process-wide effect: after a thread has changed its user, core dumps and debuggers of the
/// same user are disabled.
#[cfg(target_os = "linux")]
fn keep_dumpable() -> impl FnOnce() {
    use std::sync::OnceLock;

    use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};

    // Read before the first change, since the threads of several runs overlap.
    static BEFORE: OnceLock<Option<DumpableBehavior>> = OnceLock::new();
    let before = *BEFORE.get_or_init(|| dumpable_behavior().ok());
    move || {
        if let Some(before) = before {
            // If it cannot be restored, the setting is the safer one.
            _ = set_dumpable_behavior(before);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn keep_dumpable() -> impl FnOnce() {
    || ()
}

/// Returns the protections that this machine lacks, other than limits.
pub(super) fn missing() -> Vec<Protection> {
    let user = reserve();
    let asked = |user: Option<&ProgramUser>| in_thread(|| give_up_rights(None, 0, user)).ok().flatten();
    let missing = asked(user.as_ref()).or_else(|| asked(None));
    missing.unwrap_or_else(|| vec![Protection::Files, Protection::Network, Protection::Processes, Protection::Group])
}

#[cfg(target_os = "linux")]
pub(super) use super::user::{Lent, ProgramUser};

#[cfg(target_os = "linux")]
fn reserve() -> Option<ProgramUser> {
    ProgramUser::reserve()
}

/// Drops all privileges that can be dropped; returns `None` if the thread could not become the user.
#[cfg(target_os = "linux")]
fn give_up_rights(job: Option<&Program<'_>>, group: i32, user: Option<&ProgramUser>) -> Option<Vec<Protection>> {
    use super::sandbox::{Confinement, give_up_rights};

    let reached: Vec<&Path> = job
        .map(|job| [Some(job.folder.path()), job.command.first().map(Path::new)])
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    give_up_rights(&Confinement {
        folder: job.map(|job| job.folder.dir()),
        readable: job.map_or(&[], |job| &job.options.readable),
        reached: &reached,
        group,
        user,
    })
    .ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{Lent, ProgramUser, give_up_rights, reserve};

/// Other Unixes drop nothing.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::{Program, Protection};
    use crate::folder::OutputFolder;

    pub(in super::super) struct ProgramUser;
    pub(in super::super) struct Lent(ProgramUser);

    impl Lent {
        pub(super) fn of(_: &OutputFolder) -> Option<Self> {
            None
        }

        pub(super) fn user(&self) -> &ProgramUser {
            &self.0
        }
    }

    pub(super) fn reserve() -> Option<ProgramUser> {
        None
    }

    pub(super) fn give_up_rights(_: Option<&Program<'_>>, _: i32, _: Option<&ProgramUser>) -> Option<Vec<Protection>> {
        Some(vec![Protection::Files, Protection::Network, Protection::Processes, Protection::Group])
    }
}
