//! The run of one program: its group, its gate, its limits, and its end.
//!
//! A run begins with two shells: the anchor of the group (`process_group.rs`) and the gate (`gate.rs`), which execs the program when its
//! limits are set (`limits.rs`). When the program ends or is stopped, the group is killed.

use std::ffi::OsString;

use super::stop::{StopReason, StopRequest};
use super::{CodeOptions, Protection};
use crate::folder::OutputFolder;

/// A program to run.
pub(super) struct Program<'a> {
    /// The program and its arguments.
    pub(super) command: Vec<OsString>,
    /// Its environment.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub(super) folder: &'a OutputFolder,
    /// The options.
    pub(super) options: &'a CodeOptions,
}

/// The result of a program.
pub(super) struct ProgramResult {
    pub(super) exit_code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) stopped: Option<StopReason>,
    pub(super) not_enforced: Vec<Protection>,
}

#[cfg(not(unix))]
pub(super) fn missing() -> Vec<Protection> {
    Vec::new()
}

#[cfg(not(unix))]
pub(super) fn run(
    _: &Program<'_>,
    _: &mut super::room::DiskUse<'_>,
    _: &StopRequest,
) -> Result<ProgramResult, super::CodeError> {
    Err(super::CodeError::Platform)
}

#[cfg(unix)]
pub(super) use unix::{missing, run};

#[cfg(unix)]
mod unix {
    use std::os::unix::process::ExitStatusExt as _;
    use std::sync::OnceLock;
    use std::sync::mpsc::Receiver;
    use std::time::Duration;

    use rustix::process::{Pid, Signal};

    use super::{Program, ProgramResult, StopReason, StopRequest};
    use crate::code::gate::{self, Lent, WaitingProgram, in_thread};
    use crate::code::output_capture::kept;
    use crate::code::process_group::ProcessGroup;
    use crate::code::protections::may_run;
    use crate::code::room::DiskUse;
    use crate::code::watch::Watch;
    use crate::code::{CodeError, Protection};

    /// How long to wait for the rest of a killed program's output. Only a process that has left the group, on a
    /// machine without that protection, holds it open.
    const DRAIN: Duration = Duration::from_secs(1);

    /// Returns the protections that this machine lacks.
    pub(in crate::code) fn missing() -> Vec<Protection> {
        static MISSING: OnceLock<Vec<Protection>> = OnceLock::new();
        MISSING.get_or_init(|| gate::missing().into_iter().chain(limits_missing()).collect()).clone()
    }

    /// Runs a program to its end.
    pub(in crate::code) fn run(
        job: &Program<'_>,
        room: &mut DiskUse<'_>,
        stop: &StopRequest,
    ) -> Result<ProgramResult, CodeError> {
        let group = ProcessGroup::new().map_err(CodeError::Start)?;
        let mut gate = WaitingProgram::start(job, group.id)?;
        let limits = &job.options.limits;
        let limited = limit(&gate, job)?;
        let mut not_enforced = std::mem::take(&mut gate.missing);
        not_enforced.extend(&limited.missing);
        let started = may_run(job.options, &not_enforced).and_then(|()| gate.open().map_err(CodeError::Start));
        if let Err(error) = started {
            group.kill();
            // It is dead or dying, and its status does not matter.
            _ = gate.shell.wait();
            return Err(error);
        }
        let stdout = kept(gate.shell.stdout.take(), limits.output);
        let stderr = kept(gate.shell.stderr.take(), limits.output);
        // The kernel may count the processes already.
        let processes = (!limited.is_counted).then_some(limits.processes);
        let watch = Watch { group: group.id, processes, memory: limits.total_memory, room };
        let stopped = watch.until_the_end(&gate.shell, stop);
        group.end();
        let status = gate.shell.wait().map_err(CodeError::Start)?;
        drop((limited, gate.lent));
        let stopped = stopped.or_else(|| {
            status.signal().map(|signal| match Signal::from_named_raw(signal) {
                Some(Signal::XCPU) => StopReason::Cpu,
                Some(Signal::XFSZ) => StopReason::FileSize,
                _ => StopReason::Signal(signal),
            })
        });
        let text = |part: Receiver<String>| {
            part.recv_timeout(DRAIN)
                .unwrap_or_else(|_| "[a process that has left its group holds the output]".to_owned())
        };
        Ok(ProgramResult {
            exit_code: status.code(),
            stdout: text(stdout),
            stderr: text(stderr),
            stopped,
            not_enforced,
        })
    }

    /// Limits a program that has not started. Only its own user may do that, or root with more capabilities than containers have.
    fn limit(gate: &WaitingProgram, job: &Program<'_>) -> Result<Limited, CodeError> {
        let (program, max_file) = (Pid::from_child(&gate.shell), job.folder.options().max_file);
        let user = gate.lent.as_ref().map(Lent::user);
        let work = || limit_as(program, &job.options.limits, max_file, user);
        if user.is_some() { in_thread(work).map_err(CodeError::Start) } else { Ok(work()) }
    }

    #[cfg(target_os = "linux")]
    use crate::code::limits::{Limited, limit as limit_as, missing as limits_missing};

    #[cfg(not(target_os = "linux"))]
    struct Limited {
        missing: Vec<Protection>,
        is_counted: bool,
    }

    #[cfg(not(target_os = "linux"))]
    fn limit_as(_: Pid, _: &crate::code::CodeLimits, _: u64, _: Option<&crate::code::gate::ProgramUser>) -> Limited {
        Limited { missing: limits_missing(), is_counted: false }
    }

    #[cfg(not(target_os = "linux"))]
    fn limits_missing() -> Vec<Protection> {
        vec![Protection::Resources, Protection::Count]
    }
}
