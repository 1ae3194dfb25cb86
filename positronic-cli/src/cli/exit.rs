//! Exit codes.

/// The table of exit codes as `--help` shows it.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    completed; `work` for all runs was interrupted (Ctrl-C, SIGTERM)
  1    the run failed
  2    usage error: unknown brain or run, invalid option, unknown flag
  3    the run waits for an approval or an answer, and no terminal to ask on
  4    the run was cancelled, but not by Ctrl-C
  5    no model: no key, no base URL, no cassette; `models check`: a model failed
  6    environment error: no project, a failed build, an unusable store
  7    the run refuses: it is over, already decided, or the input is invalid
  8    the run completed, but a limit has cut off its last loop
  9    the run failed, because a guard or a plugin stopped a loop
  130  Ctrl-C: `run` has cancelled the run, other commands leave it unchanged
  143  terminated by SIGTERM or SIGHUP; the run stays, and `work` continues it";

/// Outcome of a command, with its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    RunFailed,
    Usage,
    Unanswered,
    Cancelled,
    NoModel,
    Environment,
    Refused,
    /// The run completed, but a limit of iterations, tokens, money or time has cut off a loop.
    CutOff,
    /// A guard of a loop, or the veto of a plugin, has failed the run.
    Guarded,
    Interrupted,
    /// SIGTERM or SIGHUP.
    Terminated,
    /// Exit code of the project's own binary.
    #[cfg(not(unix))]
    Other(u8),
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::RunFailed => 1,
            Self::Usage => 2,
            Self::Unanswered => 3,
            Self::Cancelled => 4,
            Self::NoModel => 5,
            Self::Environment => 6,
            Self::Refused => 7,
            Self::CutOff => 8,
            Self::Guarded => 9,
            Self::Interrupted => 130,
            Self::Terminated => 143,
            #[cfg(not(unix))]
            Self::Other(code) => code,
        }
    }
}
