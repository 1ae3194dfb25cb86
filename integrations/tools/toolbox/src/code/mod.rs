//! `run_code`: runs programs that a model writes, sandboxed in the output folder.
//!
//! ```text
//!  call ─▶ runner.rs: one program at a time in a folder; what files are new
//!            └▶ supervise.rs: one run, to its end
//!                 ├▶ process_group.rs: a group of processes, killed whole
//!                 ├▶ gate.rs: a thread that gives up its rights (sandbox.rs) and starts the program
//!                 │    ├▶ syscalls.rs: the system calls that a program may make
//!                 │    └▶ user.rs: the unprivileged user that it runs as where this process is root
//!                 ├▶ limits.rs: what it may use up, as far as the kernel limits it
//!                 ├▶ watch.rs: its end, and the rest: memory of all its processes, room in the folder (room.rs)
//!                 └▶ output_capture.rs: what it writes
//! ```
//!
//! Privileges that a thread drops (Landlock, a seccomp filter, its user, capabilities) are also dropped for the programs that it
//! starts, but not for other threads. So no helper program is needed, and no code between fork and exec. Protections that the
//! machine lacks are listed in the result as [`Protection`]s. See `docs/decisions/0015-a-restricted-thread-starts-programs.md`
//! and `docs/decisions/0025-programs-have-an-allow-list-of-system-calls-and-a-user-of-their-own.md`.

#[cfg(unix)]
mod gate;
mod interpreter;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(unix)]
mod output_capture;
#[cfg(unix)]
mod process_group;
#[cfg(unix)]
mod protections;
mod room;
mod runner;
#[cfg(target_os = "linux")]
mod sandbox;
mod stop;
mod supervise;
#[cfg(target_os = "linux")]
mod syscalls;
#[cfg(target_os = "linux")]
mod user;
#[cfg(unix)]
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use positronic_core::dsl::{Options, Services, State, Tool, ToolContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use typed_builder::TypedBuilder;

use super::blocking::blocking;
use super::files::show;
use super::folder::FolderError;

pub use interpreter::Interpreter;
pub use runner::{CodeRunner, Ran};

/// The maximum number of shown files per run; the others are only in the folder.
const SHOWN_FILES: usize = 100;

/// Additional time of a call beyond its program: for hashing the created files.
const GRACE: Duration = Duration::from_secs(30);

/// The resource limits of a program.
#[derive(Debug, Clone, PartialEq, Eq, TypedBuilder)]
#[non_exhaustive]
pub struct CodeLimits {
    /// The maximum duration; 60 seconds by default, as for every tool.
    #[builder(default = Duration::from_secs(60))]
    pub time: Duration,
    /// The maximum processor time of each of its processes, in seconds; 60 by default, one processor for the full
    /// duration.
    #[builder(default = 60)]
    pub cpu_seconds: u64,
    /// The maximum address space of each of its processes, in bytes; 1 GiB by default: Python alone needs some
    /// 20 MiB, with its libraries for tables and charts several hundred.
    #[builder(default = 1 << 30)]
    pub memory: u64,
    /// The maximum memory that all of its processes have in use together, in bytes; 1 GiB by default, as for a single one. What they
    /// share counts once, if the system tells how much it is. It is watched while the program runs, on Linux.
    #[builder(default = 1 << 30)]
    pub total_memory: u64,
    /// The maximum number of concurrent processes; 32 by default: a shell's pipeline, or a pool of workers.
    #[builder(default = 32)]
    pub processes: usize,
    /// The maximum number of open files of each process; 256 by default, the smallest default among Unixes.
    #[builder(default = 256)]
    pub open_files: u64,
    /// The maximum stored size of its output and of its error output, in bytes each; 32 KiB by default: some 8,000 tokens.
    /// The beginning and the end are stored.
    #[builder(default = 32 << 10)]
    pub output: usize,
}

impl Default for CodeLimits {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// Options for running programs.
#[derive(Debug, Clone, PartialEq, Eq, TypedBuilder)]
#[non_exhaustive]
pub struct CodeOptions {
    /// The languages; `python3` and `sh` by default.
    #[builder(default = vec![Interpreter::python3(), Interpreter::sh()])]
    pub interpreters: Vec<Interpreter>,
    /// The languages, by name, whose programs run without a person's approval; none by default.
    #[builder(default, setter(transform = |names: impl IntoIterator<Item = impl Into<String>>| {
        names.into_iter().map(Into::into).collect()
    }))]
    pub unattended: Vec<String>,
    /// The resource limits.
    #[builder(default)]
    pub limits: CodeLimits,
    /// What to do if the machine lacks protections.
    #[builder(default)]
    pub on_missing: OnMissing,
    /// Files and folders that programs may read, besides the system's own, for instance for a custom interpreter. If set,
    /// programs cannot set the times of files, as `touch` does, and cannot lock files with `flock`, since they could do both to
    /// files that they only read.
    #[builder(default)]
    pub readable: Vec<PathBuf>,
    /// Environment variables of programs, besides a search path, a language and their home. Nothing is inherited, nor are open
    /// files: starting a program marks all descriptors of this process above 2 as close-on-exec. Python ignores its own
    /// variables.
    #[builder(default)]
    pub environment: Vec<(String, String)>,
}

impl Default for CodeOptions {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// What to do if the machine lacks protections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMissing {
    /// Run it, and report the missing protections in the approval request and in the result.
    #[default]
    Say,
    /// Do not run it.
    Refuse,
}

/// A protection from a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Protection {
    /// It reads and writes no files outside of the folder, except for reading the system's own, and changes no metadata: modes,
    /// owners, times, attributes. It may lock files that it can read, until it ends.
    Files,
    /// It has no network access.
    Network,
    /// It reaches no other processes, and gets no additional privileges.
    Processes,
    /// None of its processes leaves the group, which is killed as a unit.
    Group,
    /// Its memory, processor time and open files are limited.
    Resources,
    /// The number of its processes is limited.
    Count,
    /// It does not run as root, even if this process does: then the program has its own user.
    User,
}

impl Protection {
    /// Describes what a program could do without it.
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

/// The reason why a program did not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The language is unknown.
    #[error("unknown language `{language}`; available are {known}")]
    Language {
        /// The requested language.
        language: String,
        /// The known languages.
        known: String,
    },
    /// The interpreter is not installed.
    #[error("cannot find `{name}` on this machine: searched {looked}; install it, or choose another language")]
    NoInterpreter {
        /// The interpreter.
        name: String,
        /// Where it was searched.
        looked: String,
    },
    /// The machine lacks protections, and the author requires them.
    #[error("the program was not run, because this machine cannot enforce the required protections: {missing}")]
    NotProtected {
        /// The missing protections.
        missing: String,
    },
    /// It failed to start.
    #[error("cannot start the program: {0}")]
    Start(#[source] std::io::Error),
    /// The folder or its disk has no room for what a program may write.
    #[error("the program was not run: {full}; ask a person to remove files, or replace files with shorter ones")]
    NoRoom {
        /// The limit.
        #[source]
        full: FolderError,
    },
    /// The folder failed.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Programs are not supported on this platform.
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

/// Creates the tool that runs programs. Every call needs a person's approval, except for the languages of
/// [`CodeOptions::unattended`].
///
/// Its result contains the exit code, the output and the error output, the paths of new and changed files (which become `file` outputs),
/// the reason if the program was stopped, and the missing protections.
///
/// ```
/// use positronic_core::prelude::*;
/// use positronic_toolbox::{self as toolbox, CodeOptions, CodeRunner, OutputFolder};
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
