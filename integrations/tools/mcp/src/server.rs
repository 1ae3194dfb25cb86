//! The public handle of a server.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::dsl::{Options, Services, State, Tool};
use positronic_core::record::ToolDecl;

use super::error::McpError;
use super::loop_tools::{ToolOrigin, tool};
use super::names::server_name;
use super::options::McpOptions;
use super::server_lifecycle::Session;
use super::tool_list::{Listing, recalled};
use super::transport::McpTransport;

/// An MCP server whose tools a loop uses. Clones share the connection.
///
/// Creating it starts nothing. It is started or connected when its tools are first needed, and ends with its last clone, which
/// a brain's loop may own. All iterations and runs of this process share the connection.
///
/// The connection is bound to the runtime that created it, so a server must be used on one runtime.
#[derive(Debug, Clone)]
pub struct McpServer {
    session: Arc<Session>,
}

impl McpServer {
    /// Creates a server with a name, a transport ([`McpCommand`](super::McpCommand), [`McpHttp`](super::McpHttp),
    /// [`McpStream`](super::McpStream)) and options. Its tools' names begin with its name.
    ///
    /// # Errors
    ///
    /// [`McpError::ServerName`] for an invalid name, [`McpError::Config`] for an invalid URL or header.
    pub fn new(name: &str, transport: impl Into<McpTransport>, options: McpOptions) -> Result<Self, McpError> {
        server_name(name)?;
        let transport = transport.into();
        transport.check().map_err(|what| McpError::Config { server: name.to_owned(), what })?;
        Ok(Self { session: Arc::new(Session::new(name, transport, options)) })
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.session.name
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &McpOptions {
        &self.session.options
    }

    /// Starts or connects to the server and lists its tools, to find errors before a run begins.
    ///
    /// # Errors
    ///
    /// [`McpError::Start`] when it cannot be reached, and other errors when its tools are unusable.
    pub async fn connect(&self) -> Result<(), McpError> {
        self.listing(Duration::ZERO).await.map(drop)
    }

    /// Returns the server's current tools, for a loop's [`tools`](positronic_core::dsl::Loop::tools). The list is fixed; the plugin
    /// [`Mcp`](super::Mcp) updates it when it changes.
    ///
    /// ```no_run
    /// # async fn doc(files: positronic_mcp::McpServer) -> positronic_core::Result<()> {
    /// use positronic_core::prelude::*;
    ///
    /// let tools = files.tools().await?;
    /// let clerk = brain("Clerk").r#loop("Work", move |cx| cx.system("Work.").tools(tools.clone()));
    /// # let _ = clerk;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// See [`McpServer::connect`].
    pub async fn tools<O: Options, S: State, V: Services>(&self) -> Result<Vec<Tool<O, S, V>>, McpError> {
        Ok(self.made(&*self.listing(Duration::ZERO).await?).map(|(_, tool)| tool).collect())
    }

    /// Closes the connection, and ends the server's process. The next call starts the server again.
    pub async fn close(&self) {
        self.session.close().await;
    }

    pub(super) async fn listing(&self, reconnect_timeout: Duration) -> Result<Arc<Listing>, McpError> {
        self.session.listing(reconnect_timeout).await
    }

    /// Builds the tools of a list, each with the server's own name for it.
    pub(super) fn made<'a, O: Options, S: State, V: Services>(
        &'a self,
        listing: &'a Listing,
    ) -> impl Iterator<Item = (&'a str, Tool<O, S, V>)> {
        listing.tools.iter().map(|listed| (listed.tool.as_str(), tool(&self.session, listed, ToolOrigin::Listed)))
    }

    /// Rebuilds the server's tools in a logged iteration, without asking the server.
    pub(super) fn recalled<O: Options, S: State, V: Services>(&self, iteration: &[ToolDecl]) -> Vec<Tool<O, S, V>> {
        let Session { name, options, .. } = &*self.session;
        let listed = iteration.iter().filter_map(|decl| recalled(name, decl, options));
        listed.map(|listed| tool(&self.session, &Arc::new(listed), ToolOrigin::Recalled)).collect()
    }
}
