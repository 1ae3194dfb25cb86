//! The `positronic` command, and the library with which a project's own binary has the same commands.
//!
//! A project's `main` says which brains there are; [`Project::main`] does the rest:
//!
//! ```no_run
//! use positronic_cli::Project;
//! use positronic_core::prelude::*;
//!
//! fn main() -> std::process::ExitCode {
//!     let hello = brain("Hello").step("Greet", async |_| Ok("hello".to_owned()));
//!     Project::new().brain(hello).main()
//! }
//! ```
//!
//! Data goes to stdout, everything else to stderr. Modules in reading order: `cli` (the command line), `start` (from
//! arguments to exit code), `commands` (one verb a file), `kept` (the store), `find` (which run is meant), [`options`],
//! `session` (one run at the terminal), `chat` (one run after the other at the terminal), `conversations` (as they are kept), `answers` (who is asked when a run waits), [`display`] (what a person sees of a
//! run), `lists` (many runs), `failure` (errors as prose, exit codes), `settings` (the environment).

mod answers;
mod atomic_write;
mod cargo;
mod chat;
mod cli;
mod commands;
mod conversations;
pub mod display;
mod endpoint;
mod failure;
mod file_names;
mod find;
mod interrupts;
mod json;
mod kept;
mod limits;
mod lists;
mod markdown;
mod models;
mod names;
pub mod options;
mod prices;
mod private;
mod project;
mod project_dir;
mod recording;
mod report;
mod rewind;
mod screen;
mod session;
mod settings;
mod start;
mod suggest;
mod template;
mod ui;

pub use project::Project;
pub use start::positronic;
