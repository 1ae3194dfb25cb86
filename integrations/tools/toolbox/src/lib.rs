//! Tools for agents, each with limits: files, programs, the web, finishing, and plans.
//!
//! The permissions of a tool are a value that the author creates once, such as an [`OutputFolder`]; tools are built from it in the
//! loop's configuration, which runs before every model call. So permissions are set in the author's code, never in a model's
//! arguments.
//!
//! | tools | created by | from | approval |
//! |---|---|---|---|
//! | `write_file`, `read_file`, `list_files` | [`files`] | [`OutputFolder`] | optionally, before a file is replaced |
//! | `run_code` | [`run_code`] | [`CodeRunner`] | always, except for listed languages |
//! | `http_fetch` | [`http_fetch`] | [`Fetcher`] | optionally, for hosts that are not listed |
//! | `search_web` | [`search_web`] | [`WebSearch`] | no |
//! | `finish` | [`finish`], [`finish_with`] | – | no |
//! | `plan` | [`plan`](plan()) | a brain for the parts, [`PlanOptions`] | no |
//!
//! ```no_run
//! use positronic_core::prelude::*;
//! use positronic_toolbox::{self as toolbox, CodeOptions, CodeRunner, OutputFolder, WebSearch};
//!
//! # fn main() -> positronic_core::Result<()> {
//! let folder = OutputFolder::open("out")?;
//! let code = CodeRunner::new(&folder, CodeOptions::builder().unattended(["python3"]).build());
//! let web = WebSearch::duckduckgo()?;
//! let agent = brain("Agent").r#loop("Work", move |cx| {
//!     cx.system("Reach the goal, and finish.")
//!         .tools(toolbox::files(&folder))
//!         .tools([toolbox::run_code(&code), toolbox::search_web(&web), toolbox::finish(Some(&folder))])
//! });
//! # let _ = agent;
//! # Ok(())
//! # }
//! ```

mod blocking;
mod code;
mod files;
mod finish;
mod folder;
mod html_tokens;
mod plan;
mod random;
mod search;
mod web;

pub use code::{CodeError, CodeLimits, CodeOptions, CodeRunner, Interpreter, OnMissing, Protection, Ran, run_code};
pub use files::{files, list_files, read_file, write_file};
pub use finish::{Finished, finish, finish_with};
pub use folder::{FolderEntry, FolderError, FolderOptions, OutputFolder, Overwrite, ReadText};
pub use plan::{OnFailure, PartStatus, PlanOptions, PlanOrder, PlanPart, PlanResult, SubGoal, plan};
pub use positronic_net::{HostResolver, PrivateAddresses, SystemResolver};
pub use search::{DuckDuckGo, SearchError, SearchHit, SearchOptions, SearchProvider, WebSearch, search_web};
pub use web::{FetchError, FetchOptions, Fetched, Fetcher, HtmlAs, Unlisted, http_fetch};
