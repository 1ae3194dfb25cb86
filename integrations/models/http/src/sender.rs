//! Sender: what sends requests in place of the transport's own client.

use std::fmt;

use futures::future::BoxFuture;
use positronic_core::record::ModelError;

/// Sends requests, for example through a stack of middleware. The timeouts of the transport apply, except for that of the
/// connection; its proxy does not. A sender should not retry: the engine does, and records each retry.
pub trait HttpSender: fmt::Debug + Send + Sync {
    /// Sends a request and returns the answer with its body unread, whatever its status.
    fn send(&self, request: reqwest::Request) -> BoxFuture<'_, Result<reqwest::Response, SendError>>;
}

/// Why a sender returns no answer.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The connection failed; the transport explains it.
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    /// A failure whose kind is known.
    #[error(transparent)]
    Model(#[from] ModelError),
}
