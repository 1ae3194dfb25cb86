//! Plugin that adds servers' tools to every iteration.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use futures::future::join_all;
use positronic_core::Result;
use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::record::is_invisible;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::McpError;
use super::names::{NAME, names_of, printable};
use super::server::McpServer;
use super::server_identity::McpSeen;

/// The maximum characters of a server's instructions.
const INSTRUCTIONS: usize = 8 << 10;

/// Adds the current tools of MCP servers to every iteration of a loop; see the [crate](crate).
///
/// A server that was listed once may be unavailable in later iterations: its tools stay, and calls report the error. One that was
/// never reached fails the loop, unless it is [optional](super::McpOptions::optional). After a restart of the process the servers are
/// started again; the run waits for one that it has used before ([timeout](super::McpOptions::reconnect_timeout)). Open calls resume
/// like those of other tools: `read_only` and `idempotent` ones are repeated, others become `interrupted`. A repeated call keeps its
/// validated and approved arguments, and the server decides whether they are still valid.
#[derive(Debug, Clone)]
#[must_use = "servers have their effect when they are given to a loop"]
pub struct Mcp {
    servers: Vec<McpServer>,
}

impl Mcp {
    /// Creates the plugin with its servers.
    ///
    /// # Panics
    ///
    /// If two of them have the same name, since their tools would have the same names, too.
    #[track_caller]
    #[expect(clippy::panic, reason = "an author's mistake, reported at its source before anything runs")]
    pub fn of<'a>(servers: impl IntoIterator<Item = &'a McpServer>) -> Self {
        let servers: Vec<_> = servers.into_iter().cloned().collect();
        let mut names = std::collections::BTreeSet::new();
        if let Some(name) = servers.iter().map(McpServer::name).find(|name| !names.insert(*name)) {
            panic!("two MCP servers are named `{name}`; give one of them another name");
        }
        Self { servers }
    }
}

/// The state of [`Mcp`]: the identities of the servers, so that the log contains which programs a run has used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct McpState {
    /// The servers, by the author's names.
    pub servers: BTreeMap<String, McpSeen>,
}

impl PluginState for McpState {
    const NAME: &'static str = "mcp";
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Mcp {
    type State = McpState;

    fn initial(&self) -> McpState {
        McpState::default()
    }

    fn tool_names(&self, _: &dyn Fn(&str) -> String) -> Vec<String> {
        self.servers.iter().flat_map(offered).collect()
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, McpState>) -> Result<()> {
        if let Some(iteration) = cx.missing_tools() {
            for server in &self.servers {
                cx.brain_tools(&server.recalled(&iteration))?;
            }
            return Ok(());
        }
        let listings = self.servers.iter().map(|server| {
            let is_waited_for = cx.state.servers.contains_key(server.name()) && !server.options().optional;
            server.listing(if is_waited_for { server.options().reconnect_timeout } else { Duration::ZERO })
        });
        let listings = join_all(listings.collect::<Vec<_>>()).await;
        let mut away = String::new();
        for (server, listing) in self.servers.iter().zip(listings) {
            let listing = match listing {
                Ok(listing) => listing,
                Err(error) if server.options().optional => {
                    tracing::warn!(server = server.name(), %error, "a loop continues without an MCP server");
                    cx.state.servers.remove(server.name());
                    cx.later_tools(offered(server));
                    _ = writeln!(away, "The tools of `{}` are not available now.", server.name());
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            for (own, tool) in server.made(&listing) {
                let name = tool.decl().id.to_string();
                cx.brain_tools([&tool]).map_err(|_| McpError::Taken {
                    server: server.name().to_owned(),
                    tool: printable(own, NAME),
                    name,
                })?;
            }
            if let Some(text) = listing.instructions.as_ref().filter(|_| server.options().instructions) {
                let text: String = text.chars().filter(|letter| !is_invisible(*letter)).take(INSTRUCTIONS).collect();
                cx.context(format!("mcp {}", server.name()), text);
            }
            cx.state.servers.insert(server.name().to_owned(), listing.seen.clone());
        }
        if !away.is_empty() {
            cx.context("mcp", away.trim_end());
        }
        Ok(())
    }
}

/// Returns the names that the tools of a server can have in a loop.
fn offered(server: &McpServer) -> impl Iterator<Item = String> {
    let renamed = server.options().renamed.iter().map(|(_, name)| name.clone());
    renamed.chain([names_of(server.name())])
}
