//! Errors of fetching.

use std::time::Duration;

use thiserror::Error;

/// The maximum number of redirects: browsers and curl assume a loop after 20 and more, and pages need only a few.
pub(super) const REDIRECTS: usize = 5;

/// The reason why a fetch failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The list of hosts has an invalid entry.
    #[error("invalid list of hosts: {0}")]
    Pattern(String),
    /// The HTTP client could not be created.
    #[error("cannot create the HTTP client: {0}")]
    Client(String),
    /// The URL is invalid.
    #[error("`{url}` is not a valid URL: {reason}")]
    Url {
        /// The URL.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The host is not listed.
    #[error("`{host}` is not an allowed host; allowed are: {hosts}")]
    Host {
        /// The host, with a non-default port.
        host: String,
        /// The listed hosts.
        hosts: String,
    },
    /// The host is not public.
    #[error("{0}; only public addresses are allowed")]
    Private(String),
    /// There were too many redirects.
    #[error("`{url}` is redirected more than {REDIRECTS} times")]
    Redirects {
        /// The first URL.
        url: String,
    },
    /// The request timed out.
    #[error("`{host}` did not answer within {time:?}; try again later, or another source")]
    Time {
        /// The host.
        host: String,
        /// The limit.
        time: Duration,
    },
    /// The connection failed.
    #[error("cannot reach `{host}`: {reason}; check the network")]
    Unreachable {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The answer broke off.
    #[error("the answer of `{host}` broke off: {reason}")]
    Broken {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
}

impl FetchError {
    /// Returns whether a retry may succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Time { .. } | Self::Unreachable { .. } | Self::Broken { .. })
    }

    /// Converts into a tool error.
    pub(crate) fn into_tool_error(self) -> positronic_core::Error {
        if self.is_transient() { positronic_core::Error::transient(self) } else { self.into() }
    }
}
