//! Why nothing was fetched.

use std::time::Duration;

use thiserror::Error;

/// How often a request may be sent on to another address: what browsers and curl take as a sign of a circle is 20 and more, and
/// no page needs more than a few.
pub(super) const REDIRECTS: usize = 5;

/// Why nothing was fetched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The author's list has something that is no host.
    #[error("the list of hosts is wrong: {0}")]
    Pattern(String),
    /// The HTTP client could not be made.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
    /// The address is none.
    #[error("`{url}` is no address: {reason}")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The host is not listed.
    #[error("`{host}` may not be asked; the hosts are: {hosts}")]
    Host {
        /// The host, with its port where that is not the usual one.
        host: String,
        /// What is listed.
        hosts: String,
    },
    /// The host is not in the public internet.
    #[error("{0}; only public addresses may be asked")]
    Private(String),
    /// There were too many redirects.
    #[error("`{url}` is sent on more than {REDIRECTS} times")]
    Redirects {
        /// The first address.
        url: String,
    },
    /// It took too long.
    #[error("`{host}` did not answer within {time:?}; try again later, or another source")]
    Time {
        /// The host.
        host: String,
        /// The limit.
        time: Duration,
    },
    /// No connection came about.
    #[error("`{host}` cannot be reached: {reason}; is there a network?")]
    Unreachable {
        /// The host.
        host: String,
        /// What was said.
        reason: String,
    },
    /// The answer broke off.
    #[error("the answer of `{host}` broke off: {reason}")]
    Broken {
        /// The host.
        host: String,
        /// What was said.
        reason: String,
    },
}

impl FetchError {
    /// Says whether the same request may do better later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Time { .. } | Self::Unreachable { .. } | Self::Broken { .. })
    }

    /// Makes the error of a tool.
    pub(in crate::toolbox) fn into_tool_error(self) -> crate::Error {
        if self.is_transient() { crate::Error::transient(self) } else { self.into() }
    }
}
