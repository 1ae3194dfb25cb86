//! `run_code`: programs that a model writes, run in the output folder and held there.
//!
//! ```text
//!  call ─▶ runner.rs: one program at a time in a folder; what files are new
//!            └▶ supervise.rs: one run, to its end
//!                 ├▶ group.rs: a group of processes, killed whole
//!                 ├▶ gate.rs: a thread that gives up its rights (sandbox.rs) and starts the program
//!                 │    ├▶ syscalls.rs: the system calls that a program may make
//!                 │    └▶ user.rs: the unprivileged user that it runs as where this process is root
//!                 ├▶ limits.rs: what it may use up
//!                 └▶ output.rs: what it writes
//! ```
//!
//! Rights that a thread gives up (Landlock, a seccomp filter, its user, capabilities) are given up for the programs that it starts,
//! too, and for no other thread. So no helper program is needed, and no code between fork and exec. What the machine cannot hold a
//! program to is a [`Protection`] in its result. See `docs/decisions/0015-programs-are-held-by-a-thread-that-gave-up-its-rights.md`
//! and `docs/decisions/0025-programs-have-an-allow-list-of-system-calls-and-a-user-of-their-own.md`.

#[cfg(unix)]
mod gate;
#[cfg(unix)]
mod group;
mod interpreter;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(unix)]
mod output;
mod runner;
#[cfg(target_os = "linux")]
mod sandbox;
mod supervise;
#[cfg(target_os = "linux")]
mod syscalls;
#[cfg(target_os = "linux")]
mod user;

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use typed_builder::TypedBuilder;

use super::blocking::blocking;
use super::files::show;
use super::folder::FolderError;
use crate::dsl::{Options, Services, State, Tool, ToolContext};

pub use interpreter::Interpreter;
pub use runner::{CodeRunner, Ran};

/// How many files of one run are shown; the others are in the folder all the same.
const SHOWN_FILES: usize = 100;

/// How much longer than a program its call may take: for hashing what it has made.
const GRACE: Duration = Duration::from_secs(30);

/// What a program may use up.
#[derive(Debug, Clone, PartialEq, Eq, TypedBuilder)]
pub struct CodeLimits {
    /// How long it may take; 60 seconds where nothing is said, as for every tool.
    #[builder(default = Duration::from_secs(60))]
    pub time: Duration,
    /// How many seconds of processor time each of its processes may use; 60 where nothing is said, one processor for all the
    /// time.
    #[builder(default = 60)]
    pub cpu_seconds: u64,
    /// How much memory each of its processes may address, in bytes; 1 GiB where nothing is said: Python alone addresses some
    /// 20 MiB, with its libraries for tables and charts several hundred.
    #[builder(default = 1 << 30)]
    pub memory: u64,
    /// How many processes it may have at once; 32 where nothing is said: a shell's pipeline, or a pool of workers.
    #[builder(default = 32)]
    pub processes: usize,
    /// How many files each of its processes may have open; 256 where nothing is said, the smallest default among Unixes.
    #[builder(default = 256)]
    pub open_files: u64,
    /// How much of its output and of its error output is kept, in bytes each; 32 KiB where nothing is said: some 8,000 tokens.
    /// The beginning and the end are kept.
    #[builder(default = 32 << 10)]
    pub output: usize,
}

impl Default for CodeLimits {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// How programs are run.
#[derive(Debug, Clone, PartialEq, Eq, TypedBuilder)]
pub struct CodeOptions {
    /// The languages; `python3` and `sh` where nothing is said.
    #[builder(default = vec![Interpreter::python3(), Interpreter::sh()])]
    pub interpreters: Vec<Interpreter>,
    /// The languages, by name, whose programs run without a person's approval; none where nothing is said.
    #[builder(default, setter(transform = |names: impl IntoIterator<Item = impl Into<String>>| {
        names.into_iter().map(Into::into).collect()
    }))]
    pub unattended: Vec<String>,
    /// What a program may use up.
    #[builder(default)]
    pub limits: CodeLimits,
    /// What to do where the machine cannot hold a program to everything.
    #[builder(default)]
    pub on_missing: OnMissing,
    /// Files and folders that programs may read, beside the system's own, for instance where an interpreter of one's own is. With
    /// any, programs cannot set the times of files, as `touch` does, since they could set those of files that they only read.
    #[builder(default)]
    pub readable: Vec<PathBuf>,
    /// What the environment of programs holds, beside a search path, a language and their home. Nothing is inherited, open files
    /// neither: to start a program marks every descriptor of this process above 2 as close-on-exec. Python ignores variables of
    /// its own.
    #[builder(default)]
    pub environment: Vec<(String, String)>,
}

impl Default for CodeOptions {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// What to do where the machine cannot hold a program to everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMissing {
    /// Run it, and say in the question for approval and in the result what is missing.
    #[default]
    Say,
    /// Do not run it.
    Refuse,
}

/// Something that a program is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Protection {
    /// It reads and writes no files outside the folder, but for reading the system's own, and changes no metadata of any: modes,
    /// owners, times, attributes.
    Files,
    /// It has no network.
    Network,
    /// It reaches no processes but its own, and gets no rights that it was not started with.
    Processes,
    /// None of its processes leaves the group that is killed as a whole.
    Group,
    /// It uses no more memory, processor time and open files than it may.
    Resources,
    /// It has no more processes than it may.
    Count,
    /// It does not run as root. This process may: then the program has a user of its own.
    User,
}

impl Protection {
    /// Says what a program could do without it.
    #[must_use]
    pub const fn missing(self) -> &'static str {
        match self {
            Self::Files => "the program could reach files outside the folder",
            Self::Network => "the program could reach the network",
            Self::Processes => "the program could reach other processes of this user",
            Self::Group => "a process of the program could outlive it",
            Self::Resources => "the program's memory, processor time and open files are not limited",
            Self::Count => "the number of the program's processes is watched and not limited",
            Self::User => "the program runs as root, without its capabilities",
        }
    }
}

/// Why a program did not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The author has no such language.
    #[error("there is no language `{language}`; there are {known}")]
    Language {
        /// What was asked for.
        language: String,
        /// What there is.
        known: String,
    },
    /// The interpreter is not on this machine.
    #[error("`{name}` is not on this machine: there is no {looked}; install it, or choose another language")]
    NoInterpreter {
        /// The interpreter.
        name: String,
        /// Where it was looked for.
        looked: String,
    },
    /// The machine cannot hold a program to everything, and the author wants that.
    #[error("the program was not run, because this machine cannot hold it to what the author demands: {missing}")]
    NotProtected {
        /// What is missing.
        missing: String,
    },
    /// It could not be started.
    #[error("the program could not be started: {0}")]
    Start(#[source] std::io::Error),
    /// The folder failed.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// There are no such processes here.
    #[error("programs can be run on Unix systems only")]
    Platform,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunCode {
    /// The language of the program.
    language: String,
    /// The whole program.
    code: String,
}

/// Makes the tool that runs programs. A person is asked before every call, but for the languages of
/// [`CodeOptions::unattended`].
///
/// Its result has the exit code, the output and the error output, the paths of new and changed files (which become `file` outputs),
/// why the program was stopped if it was, and what this machine could not hold it to.
///
/// ```
/// use positronic_core::prelude::*;
/// use positronic_core::toolbox::{self, CodeOptions, CodeRunner, OutputFolder};
///
/// # fn main() -> positronic_core::Result<()> {
/// # let place = std::env::temp_dir().join(format!("positronic-code-{}", std::process::id()));
/// let folder = OutputFolder::open(&place)?;
/// let code = CodeRunner::new(&folder, CodeOptions::default());
/// let analyst = brain("Analyst").r#loop("Count", move |cx| {
///     cx.system("Count.").tools(toolbox::files(&folder)).tools([toolbox::run_code(&code)])
/// });
/// # let _ = analyst;
/// # std::fs::remove_dir_all(place)?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn run_code<O: Options, S: State, V: Services>(runner: &CodeRunner) -> Tool<O, S, V> {
    let (asked, runner) = (runner.clone(), runner.clone());
    let languages: Vec<_> = runner.options().interpreters.iter().map(|known| format!("`{}`", known.name)).collect();
    Tool::new("run_code", |t| {
        t.title("Run a program")
            .description(format!(
                "Runs a program in the output folder, where its files stay. It has no network and no other files. Languages: {}.",
                languages.join(", ")
            ))
            .destructive()
            .sequential()
            .timeout(runner.options().limits.time + GRACE)
            .approval(move |program: &RunCode, _| {
                let (asked, language) = (asked.clone(), program.language.clone());
                async move { blocking(move || asked.asks(&language)).await }
            })
            .execute(move |RunCode { language, code }, cx: ToolContext<O, S, V>| {
                let runner = runner.clone();
                async move {
                    let mut ran = runner.run(&language, &code).await?;
                    let more = ran.files.len().saturating_sub(SHOWN_FILES);
                    if more > 0 {
                        ran.notes.push(format!("{more} more files in the folder are new or changed"));
                        ran.files.truncate(SHOWN_FILES);
                    }
                    let result = ran.to_json();
                    for file in ran.files {
                        show(&cx, runner.folder(), file).await?;
                    }
                    Ok(result)
                }
            })
    })
}
