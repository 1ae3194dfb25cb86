//! Error messages and exit codes of the command line.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | the run completed, the command succeeded; `work` for all runs was interrupted |
//! | 1 | the run failed |
//! | 2 | usage error: unknown brain or run, ambiguous id, invalid option, unknown flag |
//! | 3 | the run waits for an approval or an answer, and there is no terminal to ask on |
//! | 4 | the run was cancelled, but not by Ctrl-C |
//! | 5 | no model: no key, no base URL, no cassette, or an unreadable cassette |
//! | 6 | environment error: no project, a failed build, an unusable file or store |
//! | 7 | the run refuses the signal: it is over, already decided, claimed by another worker, or the content is invalid |
//! | 130 | Ctrl-C: `run` has cancelled the run, every other command has left it unchanged |
//! | 143 | SIGTERM, or SIGHUP when the terminal closes: the run stays, and `work` continues it |

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use positronic_core::record::{RunId, SignalId};
use positronic_core::runner::{SignalError, StartError};
use positronic_core::store::StoreError;

use crate::cli::exit::Exit;
use crate::cli::options::OptionsError;
use crate::cli::suggest::did_you_mean;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("unknown brain `{written}`")]
    UnknownBrain { written: String, near: Vec<String>, known: Vec<String> },
    #[error("the brain `{brain}` names the action `{action}`, which the project does not have")]
    UnknownAction { brain: String, action: String, near: Vec<String>, known: Vec<String> },
    #[error("{}:\n{source}", unfit(.brain, .source.problems.len()))]
    Options { brain: String, source: OptionsError },
    #[error("no model is configured, and `{brain}` has no bundled cassette")]
    NoModel { brain: String },
    #[error("`{model}` has answered in the run `{run}`, and a recording cannot continue for it")]
    OtherModel { run: RunId, model: String },
    #[error("the cassette {name} only answers for its own `{option}`, and no model is configured for another one")]
    OtherOption { name: String, option: String, recorded: String },
    #[error("no endpoint is configured for the model `{model}`")]
    NoEndpoint { model: String },
    #[error("cannot record: no model is configured")]
    NothingToRecord,
    #[error("cannot use the model: {message}")]
    Model { message: String },
    #[error("cannot play the cassette {name}: {message}")]
    Cassette { name: String, message: String },
    #[error("{} is not empty", dir.display())]
    NotEmpty { dir: PathBuf },
    #[error("{} is a file and not a folder", file.display())]
    NoFolder { file: PathBuf },
    #[error("cannot derive a package name from `{name}`")]
    NoPackageName { name: String },
    #[error("{} is not a checkout of the framework: it has no folder positronic-core", dir.display())]
    NoCheckout { dir: PathBuf },
    #[error("no project found")]
    NoProject { from: PathBuf },
    #[error("the project has several binaries: {}", names.join(", "))]
    SeveralBinaries { names: Vec<String> },
    #[error("cannot build the project's binary")]
    Build,
    #[error("cannot run cargo: {message}")]
    Cargo { message: String },
    #[error("no store found at {place}")]
    NoStore { place: String },
    #[error("{} already exists", file.display())]
    Exists { file: PathBuf },
    #[error("{} is a folder and not a file", folder.display())]
    NoFile { folder: PathBuf },
    #[error("{doing} {}: {source}", path.display())]
    File { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    #[error("cannot execute the run: {message}")]
    Run { message: String },
    #[error("the run waits for an answer, and there is no terminal to ask on:\n{}", waiting.join("\n"))]
    Unanswered { waiting: Vec<String>, lines: Vec<String> },
    #[error("unknown run `{written}` in {place}")]
    UnknownRun { written: String, place: String, near: Vec<String>, list: String },
    #[error("unknown brain `{written}`, and no such run in {place}")]
    UnknownBrainOrRun { written: String, place: String, near: Vec<String>, known: Vec<String> },
    #[error("`{written}` is an ambiguous prefix of several runs")]
    AmbiguousRun { written: String, candidates: Vec<String> },
    #[error("unknown conversation `{written}` in {place}")]
    UnknownConversation { written: String, place: String, near: Vec<String>, list: String },
    #[error("`{written}` is an ambiguous prefix of several conversations")]
    AmbiguousConversation { written: String, candidates: Vec<String> },
    #[error("several calls of the run wait for a decision; name the calls, or use --all")]
    SeveralCalls { calls: Vec<String> },
    #[error("several loops or brains of the run ask to raise a limit; name one of them")]
    SeveralAsk { asking: Vec<String> },
    #[error("invalid call path `{written}`")]
    NoCall { written: String, reason: String },
    #[error("the brain of {run} has no stage `{written}`")]
    UnknownStage { written: String, run: String, near: Vec<String>, known: Vec<String> },
    #[error("{message}")]
    Misused { message: String, hint: String },
    #[error("{message}")]
    Refused { message: String, hints: Vec<String> },
    #[error("{message}")]
    Store { message: String, hints: Vec<String> },
    #[error("invalid price table {}: {reason}", path.display())]
    Prices { path: PathBuf, reason: String },
    #[error("{}, line {line}: {reason}", path.display())]
    Import { path: PathBuf, line: usize, reason: String },
    #[error("{}, line 1: written by a newer release (format {format}); this release reads formats up to {known}", path.display())]
    ImportNewer { path: PathBuf, format: u32, known: u32 },
}

impl Failure {
    /// The store or an entry of it is unusable.
    pub(crate) fn store(error: impl std::fmt::Display) -> Self {
        Self::Store { message: error.to_string(), hints: Vec::new() }
    }

    /// A signal's id was already used with other content.
    pub(crate) fn another(id: &SignalId) -> Self {
        Self::Refused {
            message: format!("the signal id `{id}` was already used with other content"),
            hints: vec!["an id identifies one signal; use another id, or none".to_owned()],
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
            | Self::Output(_) => Exit::Environment,
        }
    }

    /// Returns the remedies, one per line.
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
                "without `--model`, the bundled cassette answers if there is one".to_owned(),
            ],
            Self::OtherOption { recorded, .. } => vec![
                format!("it was recorded with: {recorded}"),
                "set OPENAI_API_KEY for OpenAI, or OPENAI_BASE_URL for another compatible endpoint".to_owned(),
            ],
            Self::OtherModel { .. } => {
                vec!["set OPENAI_API_KEY or OPENAI_BASE_URL as at the start of the run".to_owned()]
            }
            Self::NoModel { .. } => vec![
                "set OPENAI_API_KEY for OpenAI, or OPENAI_BASE_URL for another compatible endpoint".to_owned(),
                "or run without a key: --cassette FILE plays a recording of --record FILE".to_owned(),
            ],
            Self::NothingToRecord => {
                vec!["set OPENAI_API_KEY, or OPENAI_BASE_URL for another compatible endpoint".to_owned()]
            }
            Self::NotEmpty { .. } | Self::NoFolder { .. } => {
                vec!["name a new or an empty folder".to_owned()]
            }
            Self::NoFile { .. } => vec!["name a file".to_owned()],
            Self::NoStore { .. } => {
                vec![
                    "check --store and POSITRONIC_STORE; `run` and `import` create a missing store"
                        .to_owned(),
                ]
            }
            Self::Exists { .. } => vec!["name another file, or use --force to replace it".to_owned()],
            Self::NoPackageName { .. } => vec!["use a folder name with a letter".to_owned()],
            Self::NoCheckout { .. } => vec!["--path takes the folder that contains positronic-core".to_owned()],
            Self::NoProject { from } => vec![
                format!("looked for a package that depends on positronic-cli, from {} upwards", from.display()),
                "create a project with: positronic new my-project".to_owned(),
            ],
            Self::Unanswered { lines, .. } => {
                let how = "run it on a terminal, or with a --cassette FILE that contains an answer, such as";
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
            Self::ImportNewer { .. } => vec!["nothing was imported; use a newer release of positronic".to_owned()],
            Self::Import { .. } => {
                vec!["nothing was imported; export the run again, and copy the complete file".to_owned()]
            }
            Self::SeveralBinaries { .. } => {
                vec!["set `default-run` in the package's Cargo.toml".to_owned()]
            }
            Self::Model { .. }
            | Self::Cassette { .. }
            | Self::Build
            | Self::Cargo { .. }
            | Self::File { .. }
            | Self::Output(_)
            | Self::Run { .. } => Vec::new(),
            Self::Prices { .. } => vec![
                "a price table is `as_of = \"2026-11-01\"` and, under `[prices]`, lines such as `\"openai/gpt-5\" = { input = 1.25, output = 10 }`"
                    .to_owned(),
            ],
        }
    }

    /// Renders the message: the problem, then the remedies.
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

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Started { run, differs } => {
                let differs: Vec<_> = differs.iter().map(ToString::to_string).collect();
                let message = format!("the run `{run}` is another one: {}", differs.join(", "));
                let hint = "the same id starts one run; give this one another id".to_owned();
                Self::Refused { message, hints: vec![hint] }
            }
            StartError::Store(error) => error.into(),
            other => Self::Run { message: other.to_string() },
        }
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
        1 => format!("1 problem with the options of `{brain}`"),
        problems => format!("{problems} problems with the options of `{brain}`"),
    }
}

fn listed(known: &[String]) -> Option<String> {
    if known.is_empty() {
        return Some("the project has no brains; add one with `Project::brain`".to_owned());
    }
    Some(format!("the project has the brains {}", quoted(known)))
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::exit::EXIT_CODES;

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

    #[test]
    fn failure_states_the_problem_and_the_remedy() {
        let failure = Failure::UnknownBrain {
            written: "suport".to_owned(),
            near: vec!["Support Agent".to_owned()],
            known: vec!["Support Agent".to_owned(), "Survey".to_owned()],
        };

        insta::assert_snapshot!(failure.prose(), @r"
        error: unknown brain `suport`
          did you mean `Support Agent`?
          the project has the brains `Support Agent`, `Survey`
        ");
        insta::assert_snapshot!(Failure::NoModel { brain: "Survey".to_owned() }.prose(), @r"
        error: no model is configured, and `Survey` has no bundled cassette
          set OPENAI_API_KEY for OpenAI, or OPENAI_BASE_URL for another compatible endpoint
          or run without a key: --cassette FILE plays a recording of --record FILE
        ");
    }
}
