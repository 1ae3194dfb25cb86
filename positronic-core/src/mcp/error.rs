//! What goes wrong with a server.

use std::time::Duration;

use thiserror::Error;

/// Why a server has no tools to offer, or a call no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum McpError {
    /// The author's name for a server is none.
    #[error("`{0}` is no name of an MCP server: use 1 to 24 letters, digits, `-` and single `_` between them")]
    ServerName(String),
    /// The author's configuration of a transport is wrong.
    #[error("the MCP server `{server}` cannot be reached as configured: {what}")]
    Config {
        /// The server.
        server: String,
        /// What is wrong.
        what: String,
    },
    /// The author's options name a tool that the server does not have.
    #[error("`{option}` names the tool `{tool}`, which the MCP server `{server}` does not have; it has {known}")]
    NoSuchTool {
        /// The server.
        server: String,
        /// The option.
        option: &'static str,
        /// The tool.
        tool: String,
        /// What the server has.
        known: String,
    },
    /// Two tools would have one name.
    #[error(
        "the tools `{one}` and `{other}` of the MCP server `{server}` would both be `{name}`; give one of them another name \
         with `renamed`, or leave it out with `without`"
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
    /// The loop has a tool of this name already.
    #[error(
        "the tool `{tool}` of the MCP server `{server}` would be `{name}`, and the iteration has a tool named so already; give it \
         another name with `renamed`"
    )]
    Taken {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// The name.
        name: String,
    },
    /// The author's other name for a tool is none.
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
        "the tool `{tool}` of the MCP server `{server}` has a schema that cannot be used: {what}; leave the tool out with \
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
    /// The list of tools is too long.
    #[error("the MCP server `{server}` lists more than {most} {of}")]
    TooMany {
        /// The server.
        server: String,
        /// The limit.
        most: usize,
        /// Of what.
        of: &'static str,
    },
    /// The server could not be started, or the connection to it not be made.
    #[error("the MCP server `{server}` did not start: {what}")]
    Start {
        /// The server.
        server: String,
        /// What happened.
        what: String,
        /// Whether another try may mend it.
        transient: bool,
    },
    /// The server failed several times, and is left alone for a while.
    #[error(
        "the MCP server `{server}` is not started again before {left:?} have passed, since it failed {times} times: {last}"
    )]
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
    /// The server ended, or the connection broke, before it answered.
    #[error("the MCP server `{server}` ended before it answered: {what}; whether the call had its effect is unknown")]
    Died {
        /// The server.
        server: String,
        /// What is known about its end.
        what: String,
    },
    /// The request did not reach the server, or was refused on the way.
    #[error("the MCP server `{server}` did not take the request: {what}")]
    Request {
        /// The server.
        server: String,
        /// What happened.
        what: String,
        /// Whether another try may mend it.
        transient: bool,
    },
    /// There was no answer in time.
    #[error(
        "the MCP server `{server}` did not answer within {time:?}, and was told to stop; whether the call had its effect is \
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
    /// A call waits for a tool that the server does not list any more.
    #[error("the MCP server `{server}` does not list the tool `{tool}` any more, for which the call was made")]
    Gone {
        /// The server.
        server: String,
        /// The tool, as models and people see it.
        tool: String,
    },
    /// The server answered something that is no answer to the request.
    #[error("the MCP server `{server}` answered something else: {what}")]
    Answer {
        /// The server.
        server: String,
        /// What.
        what: String,
    },
}

impl McpError {
    /// Says whether another try may mend it.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Died { .. } => true,
            Self::Start { transient, .. } | Self::Request { transient, .. } => *transient,
            Self::ServerName(_)
            | Self::Config { .. }
            | Self::NoSuchTool { .. }
            | Self::SameName { .. }
            | Self::Taken { .. }
            | Self::Renamed { .. }
            | Self::Schema { .. }
            | Self::TooMany { .. }
            | Self::Resting { .. }
            | Self::Time { .. }
            | Self::Refused { .. }
            | Self::Gone { .. }
            | Self::Answer { .. } => false,
        }
    }

    /// Says whether time may mend it, as it mends whatever keeps a server from being reached.
    pub(super) const fn may_pass(&self) -> bool {
        match self {
            Self::Died { .. }
            | Self::Start { .. }
            | Self::Request { .. }
            | Self::Resting { .. }
            | Self::Time { .. } => true,
            Self::ServerName(_)
            | Self::Config { .. }
            | Self::NoSuchTool { .. }
            | Self::SameName { .. }
            | Self::Taken { .. }
            | Self::Renamed { .. }
            | Self::Schema { .. }
            | Self::TooMany { .. }
            | Self::Refused { .. }
            | Self::Gone { .. }
            | Self::Answer { .. } => false,
        }
    }

    /// Makes the error of a tool, which says whether another try may mend it.
    pub(super) fn into_result(self) -> crate::Error {
        if self.is_transient() { crate::Error::transient(self) } else { self.into() }
    }
}
