//! Errors of MCP servers.

use std::time::Duration;

use thiserror::Error;

/// The reason why a server has no tools, or a call no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum McpError {
    /// The server's name is invalid.
    #[error("`{0}` is not a valid name of an MCP server: use 1 to 24 letters, digits, `-` and single `_` between them")]
    ServerName(String),
    /// The configuration of a transport is invalid.
    #[error("the MCP server `{server}` has an invalid configuration: {what}")]
    Config {
        /// The server.
        server: String,
        /// What is wrong.
        what: String,
    },
    /// The options name a tool that the server does not have.
    #[error("`{option}` names the tool `{tool}`, which the MCP server `{server}` does not have; it has {known}")]
    NoSuchTool {
        /// The server.
        server: String,
        /// The option.
        option: &'static str,
        /// The tool.
        tool: String,
        /// The server's tools.
        known: String,
    },
    /// Two tools would have the same name.
    #[error(
        "the tools `{one}` and `{other}` of the MCP server `{server}` would both be named `{name}`; rename one of them \
         with `renamed`, or omit it with `without`"
    )]
    SameName {
        /// The server.
        server: String,
        /// One tool.
        one: String,
        /// The other one.
        other: String,
        /// The name.
        name: String,
    },
    /// The loop already has a tool with this name.
    #[error(
        "the tool `{tool}` of the MCP server `{server}` would be named `{name}`, as another tool of the loop; rename it \
         with `renamed`"
    )]
    Taken {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// The name.
        name: String,
    },
    /// A tool's new name is invalid.
    #[error("the tool `{tool}` of the MCP server `{server}` cannot be renamed: {what}")]
    Renamed {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// What is wrong with the name.
        what: String,
    },
    /// A tool's schema is not usable.
    #[error(
        "the tool `{tool}` of the MCP server `{server}` has an unusable schema: {what}; omit the tool with \
         `without`"
    )]
    Schema {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// What is wrong with it.
        what: String,
    },
    /// The server lists too many tools.
    #[error("the MCP server `{server}` lists more than {most} {of}")]
    TooMany {
        /// The server.
        server: String,
        /// The limit.
        most: usize,
        /// The limited items.
        of: &'static str,
    },
    /// The server could not be started, or the connection failed.
    #[error("the MCP server `{server}` did not start: {what}")]
    Start {
        /// The server.
        server: String,
        /// What happened.
        what: String,
        /// Whether a retry may succeed.
        transient: bool,
    },
    /// The server failed several times and is not contacted for a while.
    #[error("the MCP server `{server}` failed {times} times and is not restarted before {left:?} have passed: {last}")]
    Resting {
        /// The server.
        server: String,
        /// How long it rests.
        left: Duration,
        /// How often it has failed.
        times: u32,
        /// What happened last.
        last: String,
    },
    /// The server ended, or the connection broke, before the answer.
    #[error("the MCP server `{server}` ended before it answered: {what}; whether the call took effect is unknown")]
    Died {
        /// The server.
        server: String,
        /// The known details.
        what: String,
    },
    /// The request did not reach the server, or was rejected on the way.
    #[error("the MCP server `{server}` did not accept the request: {what}")]
    Request {
        /// The server.
        server: String,
        /// What happened.
        what: String,
        /// Whether a retry may succeed.
        transient: bool,
    },
    /// The call timed out.
    #[error(
        "the MCP server `{server}` did not answer within {time:?}, and was cancelled; whether the call took effect is \
         unknown"
    )]
    Time {
        /// The server.
        server: String,
        /// The limit.
        time: Duration,
    },
    /// The server answered with an error of the protocol.
    #[error("the MCP server `{server}` refused: {message} (code {code})")]
    Refused {
        /// The server.
        server: String,
        /// The code.
        code: i32,
        /// What it says.
        message: String,
    },
    /// The server no longer lists the tool of an open call.
    #[error("the MCP server `{server}` no longer lists the tool `{tool}` of the call")]
    Gone {
        /// The server.
        server: String,
        /// The tool, as models and people see it.
        tool: String,
    },
    /// The server's answer does not match the request.
    #[error("the MCP server `{server}` sent an invalid answer: {what}")]
    Answer {
        /// The server.
        server: String,
        /// What.
        what: String,
    },
}

impl McpError {
    /// Returns whether a retry may succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Died { .. } | Self::Start { transient: true, .. } | Self::Request { transient: true, .. })
    }

    /// Returns whether the error may disappear with time, like any failed connection.
    pub(super) const fn may_recover(&self) -> bool {
        matches!(
            self,
            Self::Died { .. } | Self::Start { .. } | Self::Request { .. } | Self::Resting { .. } | Self::Time { .. }
        )
    }

    /// Converts into a tool error, which is transient if a retry may succeed.
    pub(super) fn into_result(self) -> positronic_core::Error {
        if self.is_transient() { positronic_core::Error::transient(self) } else { self.into() }
    }
}
