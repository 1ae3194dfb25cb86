//! Route: where requests go, decided by code.

use std::fmt;

use futures::future::BoxFuture;
use positronic_core::record::ModelError;

use super::endpoint::Endpoint;

/// Decides where a request goes. An adapter asks it before each request, so that tokens can rotate.
pub trait Route: fmt::Debug + Send + Sync {
    /// Returns the URL of an API, such as `["chat", "completions"]`, with the headers of the next request.
    ///
    /// # Errors
    ///
    /// Why there is none, such as a token that cannot be renewed. The request fails with this error, whose kind decides about
    /// retries.
    fn endpoint<'a>(&'a self, path: &'a [&'a str]) -> BoxFuture<'a, Result<Endpoint, ModelError>>;
}
