//! The kinds of failures of model calls, and which of them a retry can help.

use serde::{Deserialize, Serialize};

/// The kinds of model failures. The kind determines whether a retry can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// Too many requests (429).
    RateLimited,
    /// The account's quota is used up (429 with a quota code).
    QuotaExhausted,
    /// The provider failed (5xx).
    Server,
    /// The answer timed out.
    Timeout,
    /// The connection failed.
    Connection,
    /// The stream ended before the answer was finished.
    Truncated,
    /// The answer could not be understood.
    Malformed,
    /// The API key is missing, wrong, or not allowed (401, 403).
    Auth,
    /// The model or the URL does not exist (404).
    NotFound,
    /// The request exceeds the model's context.
    ContextTooLong,
    /// The provider rejected the request (other 4xx).
    BadRequest,
    /// The provider's filter rejected the content.
    Filtered,
    /// The model or its API has no support for a file or a tool of the request, which was not sent.
    Unsupported,
    /// A scripted model or a cassette has no answer for this request.
    Unscripted,
}

impl ModelErrorKind {
    /// Returns whether a retry of the same request can succeed.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::RateLimited | Self::Server | Self::Timeout | Self::Connection | Self::Truncated | Self::Malformed => {
                true
            }
            Self::QuotaExhausted
            | Self::Auth
            | Self::NotFound
            | Self::ContextTooLong
            | Self::BadRequest
            | Self::Filtered
            | Self::Unsupported
            | Self::Unscripted => false,
        }
    }
}
