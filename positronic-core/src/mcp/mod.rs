//! The tools of MCP servers as tools of a loop.
//!
//! A server is a value that the author makes once ([`McpServer`]); it is started, or connected to, when a loop first needs it. The
//! plugin [`Mcp`] adds its tools to every iteration, as the server lists them at that time.
//!
//! ```no_run
//! use positronic_core::mcp::{Mcp, McpCommand, McpHttp, McpOptions, McpServer};
//! use positronic_core::prelude::*;
//!
//! # fn main() -> positronic_core::Result<()> {
//! # let token = "";
//! let files = McpServer::new(
//!     "files",
//!     McpCommand::new("npx").args(["-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "/srv/docs"]),
//!     McpOptions::builder().read_only(["read_text_file", "list_directory"]).without(["move_file"]).build(),
//! )?;
//! let tracker = McpServer::new(
//!     "tracker",
//!     McpHttp::new("https://tracker.example/mcp").bearer(token),
//!     McpOptions::builder().trust_annotations(true).build(),
//! )?;
//! let clerk = brain("Clerk").r#loop("Work", move |cx| cx.system("Work.").plugin(Mcp::of([&files, &tracker])));
//! # let _ = clerk;
//! # Ok(())
//! # }
//! ```
//!
//! **Names.** The tool `search` of the server `docs` is `docs__search`. A name that holds what providers do not allow, or is too
//! long, is mended and gets a piece of its hash, so two tools never meet in one name ([`McpOptions::renamed`] gives another one).
//!
//! **Who is asked.** What a server says of its own tools (annotations) is a hint that binds nobody, so it is not believed unless
//! the author does so with [`McpOptions::trust_annotations`]: then `readOnlyHint` is `read_only`, and `idempotentHint`
//! `idempotent`, which also says what may run again after a crash. A person is asked before every other call, unless the
//! author names the tool ([`McpOptions::read_only`], [`McpOptions::unattended`]). See
//! `docs/decisions/0019-a-servers-word-binds-nobody.md`.
//!
//! **What can go wrong** is the result of a call: an `error` that says what happened. A server that has died or does not answer any
//! more is started anew by the next call, and rests in between where that does not help. Only a server that never came up fails the
//! loop, unless it is [optional](McpOptions::optional); one that the run has worked with before a restart is waited for
//! ([`McpOptions::patience`]).
//!
//! | file | what it does |
//! |---|---|
//! | `server.rs`, `plugin.rs`, `tools.rs` | what an author sees: the server, the plugin, its tools |
//! | `session.rs` | when a server is started, listed again, and left alone for a while |
//! | `connection.rs` | one connection: requests with time-outs, progress, cancellation |
//! | `transport/` | how a server is reached: a process, HTTP, or a stream of the author's |
//! | `list.rs`, `names.rs`, `policy.rs` | what a server lists, checked; names; who is asked |
//! | `answer.rs` | a server's answer as a result and files |

mod answer;
mod connection;
mod error;
mod list;
mod names;
mod options;
mod plugin;
mod policy;
mod secrets;
mod server;
mod session;
mod tools;
mod transport;

pub use error::McpError;
pub use options::McpOptions;
pub use plugin::{Mcp, McpSeen, McpState};
pub use server::McpServer;
pub use transport::{McpCommand, McpHttp, McpStream, McpTransport};
