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
//! Data goes to stdout, everything else to stderr. The folders are layers, from below: `render` (words and layout of what
//! people see of a run), `cli` (flags, the values that people write, exit codes), `app` (the project, its store and models,
//! errors as prose), `session` (one run at the terminal), `chat` (a conversation at the terminal), `commands` (one verb a
//! file). `start` dispatches from arguments to an exit code.

mod app;
mod chat;
mod cli;
mod commands;
mod render;
mod session;
mod start;

pub use app::Project;
pub use start::positronic;
