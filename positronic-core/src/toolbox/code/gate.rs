//! How a program is started: by a thread that has given up its rights, as a gate that waits until its limits are set.
//!
//! The gate is a shell in the program's group. It waits for a line, since limits are set from outside, and then becomes the program.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

use super::runner::may_run;
use super::supervise::Job;
use super::{CodeError, Protection};

/// Waits until the limits are set, and becomes the program.
const GATE: &str = "read -r _ && exec \"$@\" </dev/null";

/// A program that has not begun.
pub(super) struct Gate {
    pub(super) shell: Child,
    /// What it is not held to.
    pub(super) missing: Vec<Protection>,
    /// The folder, lent to the program's user.
    pub(super) lent: Option<Lent>,
}

impl Gate {
    /// Starts the gate, and says what it could not be held to.
    pub(super) fn start(job: &Job<'_>, group: Pid) -> Result<Self, CodeError> {
        // A descriptor that this process has inherited, or that a C library has opened, is none of the program's.
        close_fds::set_fds_cloexec_threadsafe(3, &[]);
        let lent = Lent::of(job.folder);
        let started = shell(job, group, lent.as_ref())?;
        let (started, lent) = match (started, lent) {
            // The user cannot reach the folder. Better as ourselves, and said so, than not at all.
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

    /// Lets the gate become the program.
    pub(super) fn open(&mut self) -> std::io::Result<()> {
        match self.shell.stdin.take() {
            Some(mut line) => line.write_all(b"\n"),
            None => Err(std::io::Error::other("the gate has no input")),
        }
    }
}

/// Starts the shell; none where the thread could not become the user.
fn shell(job: &Job<'_>, group: Pid, lent: Option<&Lent>) -> Result<Option<(Child, Vec<Protection>)>, CodeError> {
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
            .current_dir(job.folder.place())
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

/// Does work in a thread of its own, whose rights are its own.
pub(super) fn in_thread<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    let restore = keep_dumpable();
    let done = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("positronic-code".to_owned()).spawn_scoped(scope, work)?;
        thread.join().map_err(|_| std::io::Error::other("the thread that starts the program panicked"))
    });
    restore();
    done
}

/// Returns what undoes an effect on the whole process: once a thread has changed its user, no core is dumped and no debugger of the
/// same user gets in.
#[cfg(target_os = "linux")]
fn keep_dumpable() -> impl FnOnce() {
    use std::sync::OnceLock;

    use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};

    // Asked before the first change, since the threads of several runs overlap.
    static BEFORE: OnceLock<Option<DumpableBehavior>> = OnceLock::new();
    let before = *BEFORE.get_or_init(|| dumpable_behavior().ok());
    move || {
        if let Some(before) = before {
            // What cannot be restored is the safer setting.
            _ = set_dumpable_behavior(before);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn keep_dumpable() -> impl FnOnce() {
    || ()
}

/// Says what this machine cannot hold a program to, other than its limits.
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

/// Gives up what can be; nothing where the thread could not become the user.
#[cfg(target_os = "linux")]
fn give_up_rights(job: Option<&Job<'_>>, group: i32, user: Option<&ProgramUser>) -> Option<Vec<Protection>> {
    use super::sandbox::{Confinement, give_up_rights};

    let reached: Vec<&Path> = job
        .map(|job| [Some(job.folder.place()), job.command.first().map(Path::new)])
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

/// Other Unixes give up nothing.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::{Job, Protection};
    use crate::toolbox::folder::OutputFolder;

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

    pub(super) fn give_up_rights(_: Option<&Job<'_>>, _: i32, _: Option<&ProgramUser>) -> Option<Vec<Protection>> {
        Some(vec![Protection::Files, Protection::Network, Protection::Processes, Protection::Group])
    }
}
