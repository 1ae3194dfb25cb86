//! A server, as an author has it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::error::McpError;
use super::list::{Listing, recalled};
use super::names::server_name;
use super::options::McpOptions;
use super::session::Session;
use super::tools::{Known, tool};
use super::transport::McpTransport;
use crate::dsl::{Options, Services, State, Tool};
use crate::record::ToolDecl;

/// An MCP server whose tools are used. A clone is the same server, with the same connection.
///
/// Nothing is started when it is made. It is started, or connected to, when its tools are needed first, and ends with its last
/// clone; a brain whose loop uses it holds one. Calls of all iterations and runs of this process share the connection.
///
/// The connection lives on the runtime that has made it, so a server is used on one runtime.
#[derive(Clone)]
pub struct McpServer {
    session: Arc<Session>,
}

impl McpServer {
    /// Makes a server with a name, how it is reached ([`McpCommand`](super::McpCommand), [`McpHttp`](super::McpHttp),
    /// [`McpStream`](super::McpStream)), and how its tools are used. Its tools' names begin with its name.
    ///
    /// # Errors
    ///
    /// [`McpError::ServerName`] when the name is none, [`McpError::Config`] when an address or a header is none.
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

    /// Returns how its tools are used.
    #[must_use]
    pub fn options(&self) -> &McpOptions {
        &self.session.options
    }

    /// Starts the server, or connects to it, and lists its tools, so that what is wrong is known before a run begins.
    ///
    /// # Errors
    ///
    /// [`McpError::Start`] when it cannot be reached, and others when its tools cannot be used.
    pub async fn connect(&self) -> Result<(), McpError> {
        self.listing(Duration::ZERO).await.map(drop)
    }

    /// Returns the tools as the server lists them now, for a loop's [`tools`](crate::dsl::Loop::tools). They stay as they are;
    /// the plugin [`Mcp`](super::Mcp) lists them anew where they have changed.
    ///
    /// ```no_run
    /// # async fn doc(files: positronic_core::mcp::McpServer) -> positronic_core::Result<()> {
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
    /// As [`McpServer::connect`].
    pub async fn tools<O: Options, S: State, V: Services>(&self) -> Result<Vec<Tool<O, S, V>>, McpError> {
        Ok(self.made(&*self.listing(Duration::ZERO).await?).map(|(_, tool)| tool).collect())
    }

    /// Ends the connection, and a process with it. Whoever calls a tool afterwards starts the server anew.
    pub async fn close(&self) {
        self.session.close().await;
    }

    pub(super) async fn listing(&self, patience: Duration) -> Result<Arc<Listing>, McpError> {
        self.session.listing(patience).await
    }

    /// Makes the tools of a list, each with the server's own name for it.
    pub(super) fn made<'a, O: Options, S: State, V: Services>(
        &'a self,
        listing: &'a Listing,
    ) -> impl Iterator<Item = (&'a str, Tool<O, S, V>)> {
        listing.tools.iter().map(|listed| (listed.tool.as_str(), tool(&self.session, listed, Known::Listed)))
    }

    /// Makes those tools of an iteration that has begun which are the server's, as the log has them, without asking the server.
    pub(super) fn recalled<O: Options, S: State, V: Services>(&self, iteration: &[ToolDecl]) -> Vec<Tool<O, S, V>> {
        let Session { name, options, .. } = &*self.session;
        let listed = iteration.iter().filter_map(|decl| recalled(name, decl, options));
        listed.map(|listed| tool(&self.session, &Arc::new(listed), Known::Recalled)).collect()
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("name", &self.session.name)
            .field("transport", &self.session.transport)
            .field("options", &self.session.options)
            .finish_non_exhaustive()
    }
}
