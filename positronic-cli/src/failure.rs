//! Where errors become prose, and outcomes become exit codes.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | the run completed, the command did what it was asked to do |
//! | 1 | the run failed |
//! | 2 | the command line is wrong: unknown brain or run, an id that fits several runs, bad option, unknown flag |
//! | 3 | the run waits for an approval or an answer, and nobody is here to give it |
//! | 4 | the run was cancelled otherwise than by Ctrl-C |
//! | 5 | there is no model: no key, no address, no cassette, or the cassette cannot be read |
//! | 6 | the surroundings are not in order: no project, a build that fails, a file or a store that cannot be used |
//! | 7 | the run refuses it: it is over, decided already, in another worker's hands, or what was sent does not fit |
//! | 130 | Ctrl-C: `run` has cancelled the run, every other command has left it as it is |
//! | 143 | the system told the process to end, or the terminal went away: the run stays, for `work` |

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use positronic_core::record::{RunId, SignalId};
use positronic_core::runner::SignalError;
use positronic_core::store::StoreError;

use crate::options::OptionsError;
use crate::suggest::did_you_mean;

/// The table of exit codes as `--help` shows it.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    completed
  1    the run failed
  2    the command line is wrong: unknown brain or run, bad option, unknown flag
  3    the run waits for an approval or an answer, and nobody is here to give it
  4    the run was cancelled otherwise than by Ctrl-C
  5    there is no model: no key, no address, no cassette
  6    the surroundings are not in order: no project, a failed build, the store
  7    the run refuses it: it is over or decided already, or it does not fit
  130  Ctrl-C: `run` has cancelled the run, every other command has left it
  143  told to end by the system; the run stays, and `work` goes on with it";

/// How a command ended, as its exit code says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    RunFailed,
    Usage,
    Unanswered,
    Cancelled,
    NoModel,
    Surroundings,
    Refused,
    Interrupted,
    /// The system told the process to end.
    Told,
    /// As the project's own binary says it.
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
            Self::Surroundings => 6,
            Self::Refused => 7,
            Self::Interrupted => 130,
            Self::Told => 143,
            #[cfg(not(unix))]
            Self::Other(code) => code,
        }
    }
}

/// Why a command could not do what it was asked to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("there is no brain `{written}`")]
    UnknownBrain { written: String, near: Vec<String>, known: Vec<String> },
    #[error("the brain `{brain}` names the action `{action}`, which the project does not have")]
    UnknownAction { brain: String, action: String, near: Vec<String>, known: Vec<String> },
    #[error("{}:\n{source}", unfit(.brain, .source.problems.len()))]
    Options { brain: String, source: OptionsError },
    #[error("no model is configured, and `{brain}` has no cassette of its own")]
    NoModel { brain: String },
    #[error("`{model}` has answered in the run `{run}`, and a recording does not go on in its place")]
    OtherModel { run: RunId, model: String },
    #[error("the cassette {name} answers for its own `{option}` alone, and no model is here to answer for another one")]
    OtherOption { name: String, option: String, recorded: String },
    #[error("there is no endpoint that could answer as `{model}`")]
    NoEndpoint { model: String },
    #[error("there is nothing to record: no model is configured")]
    NothingToRecord,
    #[error("the model cannot be used: {message}")]
    Model { message: String },
    #[error("the cassette {name} cannot be played: {message}")]
    Cassette { name: String, message: String },
    #[error("{} is not empty", dir.display())]
    NotEmpty { dir: PathBuf },
    #[error("{} is a file", file.display())]
    NoFolder { file: PathBuf },
    #[error("`{name}` cannot be made into a package's name")]
    NoPackageName { name: String },
    #[error("{} is no checkout of the framework: it has no positronic-core", dir.display())]
    NoCheckout { dir: PathBuf },
    #[error("there is no project here")]
    NoProject { from: PathBuf },
    #[error("the project has several binaries: {}", names.join(", "))]
    SeveralBinaries { names: Vec<String> },
    #[error("the project's binary could not be built")]
    Build,
    #[error("cargo does not answer: {message}")]
    Cargo { message: String },
    #[error("there is no store at {place}")]
    NoStore { place: String },
    #[error("{} is there already", file.display())]
    Exists { file: PathBuf },
    #[error("{} is a folder", folder.display())]
    NoFile { folder: PathBuf },
    #[error("{} {}: {source}", path.display(), doing)]
    File { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("the output could not be written: {0}")]
    Output(#[from] io::Error),
    #[error("the run could not be carried out: {message}")]
    Run { message: String },
    #[error("the run waits, and nobody is here to answer:\n{}", waiting.join("\n"))]
    Unanswered { waiting: Vec<String>, lines: Vec<String> },
    #[error("there is no run `{written}` in {place}")]
    UnknownRun { written: String, place: String, near: Vec<String>, list: String },
    #[error("there is no brain `{written}`, and no run in {place}")]
    UnknownBrainOrRun { written: String, place: String, near: Vec<String>, known: Vec<String> },
    #[error("`{written}` is the beginning of several runs")]
    AmbiguousRun { written: String, candidates: Vec<String> },
    #[error("there is no conversation `{written}` in {place}")]
    UnknownConversation { written: String, place: String, near: Vec<String>, list: String },
    #[error("`{written}` is the beginning of several conversations")]
    AmbiguousConversation { written: String, candidates: Vec<String> },
    #[error("several calls of the run wait for a decision; name those that are meant, or say --all")]
    SeveralCalls { calls: Vec<String> },
    #[error("several loops or brains of the run ask for more; name the one that is meant")]
    SeveralAsk { asking: Vec<String> },
    #[error("`{written}` is no place of a call")]
    NoCall { written: String, reason: String },
    #[error("the brain of {run} has no stage `{written}`")]
    UnknownStage { written: String, run: String, near: Vec<String>, known: Vec<String> },
    #[error("{message}")]
    Misused { message: String, hint: String },
    #[error("{message}")]
    Refused { message: String, hints: Vec<String> },
    #[error("{message}")]
    Store { message: String, hints: Vec<String> },
    #[error("{} holds no prices: {reason}", path.display())]
    Prices { path: PathBuf, reason: String },
    #[error("{}, line {line}: {reason}", path.display())]
    Import { path: PathBuf, line: usize, reason: String },
    #[error("{}, line 1: a newer release wrote it (format {format}); this one reads up to {known}", path.display())]
    ImportNewer { path: PathBuf, format: u32, known: u32 },
}

impl Failure {
    /// Says that the store, or something in it, cannot be used.
    pub(crate) fn store(error: impl std::fmt::Display) -> Self {
        Self::Store { message: error.to_string(), hints: Vec::new() }
    }

    /// Says that a signal's id was used before, for something else.
    pub(crate) fn another(id: &SignalId) -> Self {
        Self::Refused {
            message: format!("the signal `{id}` was sent before with another content"),
            hints: vec!["the same id is the same signal; give this one another id, or none".to_owned()],
        }
    }

    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::UnknownBrain { .. }
            | Self::UnknownAction { .. }
            | Self::Options { .. }
            | Self::NoPackageName { .. }
            | Self::NotEmpty { .. }
            | Self::NoFolder { .. }
            | Self::NoFile { .. }
            | Self::Exists { .. }
            | Self::NoCheckout { .. }
            | Self::UnknownRun { .. }
            | Self::UnknownBrainOrRun { .. }
            | Self::AmbiguousRun { .. }
            | Self::UnknownConversation { .. }
            | Self::AmbiguousConversation { .. }
            | Self::SeveralCalls { .. }
            | Self::SeveralAsk { .. }
            | Self::NoCall { .. }
            | Self::UnknownStage { .. }
            | Self::Misused { .. } => Exit::Usage,
            Self::NoModel { .. }
            | Self::OtherModel { .. }
            | Self::OtherOption { .. }
            | Self::NoEndpoint { .. }
            | Self::NothingToRecord
            | Self::Model { .. }
            | Self::Cassette { .. } => Exit::NoModel,
            Self::Run { .. } => Exit::RunFailed,
            Self::Unanswered { .. } => Exit::Unanswered,
            Self::Refused { .. } => Exit::Refused,
            Self::NoProject { .. }
            | Self::NoStore { .. }
            | Self::SeveralBinaries { .. }
            | Self::Build
            | Self::Cargo { .. }
            | Self::File { .. }
            | Self::Store { .. }
            | Self::Import { .. }
            | Self::ImportNewer { .. }
            | Self::Prices { .. }
            | Self::Output(_) => Exit::Surroundings,
        }
    }

    /// Says what can be done about it, one piece of advice a line.
    pub(crate) fn hints(&self) -> Vec<String> {
        match self {
            Self::UnknownAction { near, known, .. } => {
                let near: Vec<&str> = near.iter().map(String::as_str).collect();
                let has = match known.as_slice() {
                    [] => "the project has no actions; add one with `Project::action`".to_owned(),
                    known => format!("the project has the actions {}", known.join(", ")),
                };
                did_you_mean(&near).into_iter().chain([has]).collect()
            }
            Self::UnknownBrain { near, known, .. } | Self::UnknownBrainOrRun { near, known, .. } => {
                let near: Vec<&str> = near.iter().map(String::as_str).collect();
                did_you_mean(&near).into_iter().chain(listed(known)).collect()
            }
            Self::Options { source, .. } if source.example.is_empty() => Vec::new(),
            Self::Options { source, .. } => vec![format!("for example: {}", source.example)],
            Self::NoEndpoint { .. } => vec![
                "set OPENAI_API_KEY or OPENAI_BASE_URL".to_owned(),
                "without `--model`, a bundled cassette answers where there is one".to_owned(),
            ],
            Self::OtherOption { recorded, .. } => vec![
                format!("its own is: {recorded}"),
                "set OPENAI_API_KEY to talk to OpenAI, or OPENAI_BASE_URL for another endpoint of its kind".to_owned(),
            ],
            Self::OtherModel { .. } => {
                vec!["set OPENAI_API_KEY or OPENAI_BASE_URL, as when the run began".to_owned()]
            }
            Self::NoModel { .. } => vec![
                "set OPENAI_API_KEY to talk to OpenAI, or OPENAI_BASE_URL for another endpoint of its kind".to_owned(),
                "or run without a key: --cassette FILE plays a recording that --record FILE made".to_owned(),
            ],
            Self::NothingToRecord => {
                vec!["set OPENAI_API_KEY, or OPENAI_BASE_URL for another endpoint of its kind".to_owned()]
            }
            Self::NotEmpty { .. } | Self::NoFolder { .. } => {
                vec!["name a folder that does not exist yet, or an empty one".to_owned()]
            }
            Self::NoFile { .. } => vec!["name a file, in this folder or elsewhere".to_owned()],
            Self::NoStore { .. } => {
                vec![
                    "look at --store and POSITRONIC_STORE; `run` and `import` make a store where there is none"
                        .to_owned(),
                ]
            }
            Self::Exists { .. } => vec!["name another file, or say --force to replace it".to_owned()],
            Self::NoPackageName { .. } => vec!["name a folder with a letter in its name".to_owned()],
            Self::NoCheckout { .. } => vec!["--path takes the folder that holds positronic-core".to_owned()],
            Self::NoProject { from } => vec![
                format!("looked for a package that depends on positronic-cli, from {} upwards", from.display()),
                "make a project with: positronic new my-project".to_owned(),
            ],
            Self::Unanswered { lines, .. } => {
                let how = "run it on a terminal to be asked, or with --cassette FILE that holds an answer, such as";
                std::iter::once(how.to_owned()).chain(lines.iter().map(|line| format!("  {line}"))).collect()
            }
            Self::UnknownRun { near, list, .. } => {
                let near: Vec<&str> = near.iter().map(String::as_str).collect();
                did_you_mean(&near).into_iter().chain([format!("`{list}` lists the runs")]).collect()
            }
            Self::UnknownStage { near, known, .. } => {
                let near: Vec<&str> = near.iter().map(String::as_str).collect();
                let known = format!("its stages are {}", quoted(known));
                did_you_mean(&near).into_iter().chain([known]).collect()
            }
            Self::UnknownConversation { near, list, .. } => {
                let near: Vec<&str> = near.iter().map(String::as_str).collect();
                did_you_mean(&near).into_iter().chain([format!("`{list}` lists the conversations")]).collect()
            }
            Self::AmbiguousRun { candidates, .. } | Self::AmbiguousConversation { candidates, .. } => candidates.clone(),
            Self::SeveralCalls { calls: lines } | Self::SeveralAsk { asking: lines } => lines.clone(),
            Self::NoCall { reason, .. } => vec![reason.clone()],
            Self::Misused { hint, .. } => vec![hint.clone()],
            Self::Refused { hints, .. } | Self::Store { hints, .. } => hints.clone(),
            Self::ImportNewer { .. } => vec!["nothing was taken in; a newer release of positronic reads it".to_owned()],
            Self::Import { .. } => {
                vec!["nothing was taken in; export the run again, and copy the file whole".to_owned()]
            }
            Self::SeveralBinaries { .. } => {
                vec!["say which one with `default-run` in the package's Cargo.toml".to_owned()]
            }
            Self::Model { .. }
            | Self::Cassette { .. }
            | Self::Build
            | Self::Cargo { .. }
            | Self::File { .. }
            | Self::Output(_)
            | Self::Run { .. } => Vec::new(),
            Self::Prices { .. } => vec![
                "a table is `as_of = \"2026-11-01\"` and, under `[prices]`, lines such as `\"openai/gpt-5\" = { input = 1.25, output = 10 }`"
                    .to_owned(),
            ],
        }
    }

    /// Writes the whole message: what is wrong, then what can be done.
    pub(crate) fn prose(&self) -> String {
        let mut prose = String::from("error: ");
        let message = self.to_string();
        let (first, rest) = message.split_once('\n').unwrap_or((&message, ""));
        prose.push_str(first);
        for line in rest.lines().chain(self.hints().iter().map(String::as_str)) {
            _ = write!(prose, "\n  {line}");
        }
        prose.push('\n');
        prose
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::store(error)
    }
}

impl From<SignalError> for Failure {
    fn from(error: SignalError) -> Self {
        match error {
            SignalError::Refused(refusal) => Self::Refused { message: refusal.to_string(), hints: Vec::new() },
            SignalError::Store(error) => error.into(),
            other => Self::Run { message: other.to_string() },
        }
    }
}

fn unfit(brain: &str, problems: usize) -> String {
    match problems {
        1 => format!("there is a problem with the options of `{brain}`"),
        problems => format!("there are {problems} problems with the options of `{brain}`"),
    }
}

fn listed(known: &[String]) -> Option<String> {
    if known.is_empty() {
        return Some("the project has no brain; add one with Project::brain".to_owned());
    }
    Some(format!("the project has {}", quoted(known)))
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_lists_every_exit_code() {
        let all = [
            Exit::Done,
            Exit::RunFailed,
            Exit::Usage,
            Exit::Unanswered,
            Exit::Cancelled,
            Exit::NoModel,
            Exit::Surroundings,
            Exit::Refused,
            Exit::Interrupted,
            Exit::Told,
        ];
        for exit in all {
            let start = format!("  {:<5}", exit.code());
            assert!(EXIT_CODES.lines().any(|line| line.starts_with(&start)), "{exit:?}");
        }
    }

    #[test]
    fn failure_states_the_problem_and_the_remedy() {
        let failure = Failure::UnknownBrain {
            written: "suport".to_owned(),
            near: vec!["Support Agent".to_owned()],
            known: vec!["Support Agent".to_owned(), "Survey".to_owned()],
        };

        insta::assert_snapshot!(failure.prose(), @r"
        error: there is no brain `suport`
          did you mean `Support Agent`?
          the project has `Support Agent`, `Survey`
        ");
        insta::assert_snapshot!(Failure::NoModel { brain: "Survey".to_owned() }.prose(), @r"
        error: no model is configured, and `Survey` has no cassette of its own
          set OPENAI_API_KEY to talk to OpenAI, or OPENAI_BASE_URL for another endpoint of its kind
          or run without a key: --cassette FILE plays a recording that --record FILE made
        ");
    }
}
