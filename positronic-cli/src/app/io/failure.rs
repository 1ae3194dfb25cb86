//! Error messages and exit codes of the command line.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | the run completed, the command succeeded; `work` for all runs was interrupted |
//! | 1 | the run failed |
//! | 2 | usage error: unknown brain or run, ambiguous id, invalid option, unknown flag |
//! | 3 | the run waits for an approval or an answer, and there is no terminal to ask on |
//! | 4 | the run was cancelled, but not by Ctrl-C |
//! | 5 | no model: no key, no base URL, no cassette, or an unreadable cassette; `models check`: a model failed |
//! | 6 | environment error: no project, a failed build, an unusable file or store |
//! | 7 | the run refuses the signal: it is over, already decided, claimed by another worker, or the content is invalid |
//! | 8 | the run completed, but a limit has cut off a loop |
//! | 9 | the run failed, because a guard or a plugin stopped a loop |
//! | 130 | Ctrl-C: `run` has cancelled the run, every other command has left it unchanged |
//! | 143 | SIGTERM, or SIGHUP when the terminal closes: the run stays, and `work` continues it |

use std::fmt::{self, Display, Write as _};
use std::io;
use std::path::Path;

use positronic_core::record::SignalId;
use positronic_core::runner::{SignalError, StartError};
use positronic_core::store::StoreError;

use crate::cli::Exit;
use crate::render::shorten;

/// The length of a line of an error: a longer one repeats a long argument.
pub(crate) const MAX_COLUMNS: usize = 4000;

/// Why a command failed: the problem, its remedies, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    message: String,
    /// The remedies, one per line.
    pub(crate) hints: Vec<String>,
    /// The kind of the error if the command's own output failed.
    pub(crate) output: Option<io::ErrorKind>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Display) -> Self {
        Self { exit, message: message.to_string(), hints: Vec::new(), output: None }
    }

    /// The command line names something unknown or contradicts itself.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The run does not accept this now.
    pub(crate) fn refused(message: impl Display) -> Self {
        Self::new(Exit::Refused, message)
    }

    /// No model can answer.
    pub(crate) fn model(message: impl Display) -> Self {
        Self::new(Exit::NoModel, message)
    }

    /// The store, a file or the project is unusable.
    pub(crate) fn environment(message: impl Display) -> Self {
        Self::new(Exit::Environment, message)
    }

    /// Reports that this binary was built without a feature of positronic-cli.
    #[cfg(not(all(feature = "serve", feature = "sqlite", feature = "postgres")))]
    pub(crate) fn feature(what: impl Display, feature: &str) -> Self {
        Self::environment(format!("{what}: it was built without the feature `{feature}` of positronic-cli"))
            .hint(format!("switch it on in the project: cargo add positronic-cli --features {feature}"))
    }

    /// Converts an error of a file; `doing` names the failed action, such as `cannot read`.
    pub(crate) fn file<P: AsRef<Path>>(path: P, doing: &str) -> impl FnOnce(io::Error) -> Self + use<P> {
        let what = format!("{doing} {}", path.as_ref().display());
        move |error| Self::environment(format!("{what}: {error}"))
    }

    /// A signal's id was already used with other content.
    pub(crate) fn reused_id(id: &SignalId) -> Self {
        Self::refused(format!("the signal id `{id}` was already used with other content"))
            .hint("an id identifies one signal; use another id, or none")
    }

    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        self.hints([hint.into()])
    }

    #[must_use]
    pub(crate) fn hints(mut self, hints: impl IntoIterator<Item = String>) -> Self {
        self.hints.extend(hints);
        self
    }

    /// Renders the message: the problem, then the remedies.
    pub(crate) fn prose(&self) -> String {
        let mut prose = String::from("error: ");
        let (first, rest) = self.message.split_once('\n').unwrap_or((&self.message, ""));
        prose.push_str(&shorten(first, MAX_COLUMNS));
        for line in rest.lines().chain(self.hints.iter().map(String::as_str)) {
            _ = write!(prose, "\n  {}", shorten(line, MAX_COLUMNS));
        }
        prose.push('\n');
        prose
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self { output: Some(error.kind()), ..Self::environment(format!("cannot write the output: {error}")) }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::environment(error)
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Started { run, differs } => {
                let differs: Vec<_> = differs.iter().map(ToString::to_string).collect();
                Self::refused(format!("the run `{run}` is another one: {}", differs.join(", ")))
                    .hint("the same id starts one run; give this one another id")
            }
            StartError::Store(error) => error.into(),
            // The brain needs other code, or the process ends.
            StartError::State { .. } | StartError::Action(_) | StartError::Leaves => Self::environment(error),
            other => Self::usage(other),
        }
    }
}

impl From<SignalError> for Failure {
    fn from(error: SignalError) -> Self {
        match error {
            SignalError::Refused(refusal) => Self::refused(refusal),
            SignalError::Store(error) => error.into(),
            other => Self::environment(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::EXIT_CODES;

    #[test]
    fn store_that_fails_at_a_signal_is_no_failed_run() {
        let full = StoreError::Failed { message: "no space left on the device".to_owned() };
        assert_eq!(Failure::from(SignalError::Store(full.clone())).exit, Exit::Environment);
        assert_eq!(Failure::from(StartError::Store(full)).exit, Exit::Environment);
        assert_eq!(Failure::from(StartError::Leaves).exit, Exit::Environment);
    }

    #[test]
    fn long_argument_is_not_repeated_in_full() {
        let prose = Failure::usage(format!("unknown run `{}`", "x".repeat(120_000))).hint("y".repeat(5000)).prose();
        assert!(prose.lines().all(|line| line.chars().count() <= MAX_COLUMNS + "error: ".len()), "{}", prose.len());
    }

    #[test]
    fn table_lists_every_exit_code() {
        let all = [
            Exit::Done,
            Exit::RunFailed,
            Exit::Usage,
            Exit::Unanswered,
            Exit::Cancelled,
            Exit::NoModel,
            Exit::Environment,
            Exit::Refused,
            Exit::Interrupted,
            Exit::Terminated,
        ];
        for exit in all {
            let start = format!("  {:<5}", exit.code());
            assert!(EXIT_CODES.lines().any(|line| line.starts_with(&start)), "{exit:?}");
        }
    }
}
