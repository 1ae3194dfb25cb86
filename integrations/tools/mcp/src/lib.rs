//! Tools of MCP servers, for use in loops.
//!
//! An author creates a server once ([`McpServer`]); it is started or connected when a loop first needs it. The plugin [`Mcp`] adds
//! its current tools to every iteration.
//!
//! ```no_run
//! use positronic_mcp::{Mcp, McpCommand, McpHttp, McpOptions, McpServer};
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
//! **Names.** The tool `search` of the server `docs` becomes `docs__search`. A name that providers reject is sanitized and gets a
//! part of its hash, so two tools never share a name ([`McpOptions::renamed`] overrides it).
//!
//! **Approvals.** A server's annotations of its own tools are untrusted hints, and are ignored without
//! [`McpOptions::trust_annotations`]: then `readOnlyHint` means `read_only`, and `idempotentHint` means `idempotent`, which also
//! allows a rerun after a crash. Every other call needs a person's approval, unless the author lists the tool in
//! [`McpOptions::read_only`] or [`McpOptions::unattended`]. See
//! `docs/decisions/0019-annotations-of-a-server-are-untrusted.md`.
//!
//! **Failures** become the result of a call: an `error` with a message. The next call restarts a server that has died or does not
//! respond, with pauses if that does not help. Only a server that was never reached fails the loop, unless it is
//! [optional](McpOptions::optional); after a restart of the process, the run waits for a server that it has used before
//! ([`McpOptions::reconnect_timeout`]).
//!
//! | file | what it does |
//! |---|---|
//! | `server.rs`, `plugin.rs`, `loop_tools.rs` | the public API: the server, the plugin, its tools |
//! | `server_lifecycle.rs` | when a server is started, listed again, and paused |
//! | `connection.rs` | a connection: requests with timeouts, progress, cancellation |
//! | `transport/` | the transports: a process, HTTP, or the author's stream |
//! | `tool_list.rs`, `names.rs`, `policy.rs` | the validated list of tools; names; approvals |
//! | `answer.rs` | conversion of answers into results and files |

mod answer;
mod connection;
mod error;
mod lenient_results;
mod loop_tools;
mod names;
mod notifications;
mod options;
mod plugin;
mod policy;
mod secrets;
mod server;
mod server_identity;
mod server_lifecycle;
mod tool_list;
mod transport;

pub use error::McpError;
pub use options::McpOptions;
pub use plugin::{Mcp, McpState};
pub use server::McpServer;
pub use server_identity::McpSeen;
pub use transport::{McpCommand, McpHttp, McpStream, McpTransport};
