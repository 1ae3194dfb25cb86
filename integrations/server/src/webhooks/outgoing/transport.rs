//! Sends requests to endpoints, which users have named: the server must not reach its own network for them.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::header::RETRY_AFTER;
use futures::future::BoxFuture;
use positronic_net::{AddressGuard, HostResolver, NotPublic, PrivateAddresses, SystemResolver};
use url::Url;

/// A request to an endpoint, with its signature.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OutgoingRequest {
    /// The endpoint's URL.
    pub url: Url,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// The answer of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutgoingResponse {
    /// The HTTP status.
    pub status: u16,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
}

/// The reason why an endpoint did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The endpoint is in an internal network.
    #[error("{0}; only public addresses are allowed")]
    NotPublic(#[from] NotPublic),
    /// The connection failed.
    #[error("cannot reach the endpoint: {reason}")]
    Unreachable {
        /// The reason.
        reason: String,
    },
    /// The URL is invalid, or of another scheme than `http` and `https`.
    #[error("invalid URL: {reason}")]
    Url {
        /// The reason.
        reason: String,
    },
    /// The HTTP client could not be created.
    #[error("cannot create the HTTP client: {reason}")]
    Client {
        /// The reason.
        reason: String,
    },
}

/// Sends requests to endpoints. It must not follow redirects. The sender limits the time.
pub trait WebhookTransport: Send + Sync + 'static {
    /// Sends a request.
    fn send<'a>(&'a self, request: &'a OutgoingRequest) -> BoxFuture<'a, Result<OutgoingResponse, TransportError>>;
}

/// Sends requests over HTTP. It refuses endpoints in internal networks, after it has resolved their names.
#[derive(Clone)]
pub struct HttpTransport {
    client: reqwest::Client,
    guard: AddressGuard,
}

impl HttpTransport {
    /// Creates the transport.
    ///
    /// # Errors
    ///
    /// [`TransportError::Client`] if TLS cannot be set up.
    pub fn new(private: PrivateAddresses) -> Result<Self, TransportError> {
        Self::with_resolver(Arc::new(SystemResolver), private)
    }

    /// Creates the transport with a resolver of host names.
    ///
    /// # Errors
    ///
    /// As [`HttpTransport::new`].
    pub fn with_resolver(resolver: Arc<dyn HostResolver>, private: PrivateAddresses) -> Result<Self, TransportError> {
        let guard = AddressGuard::new(resolver, private);
        let client = guard.client().user_agent(concat!("positronic/", env!("CARGO_PKG_VERSION"))).build();
        let client = client.map_err(|error| TransportError::Client { reason: innermost(&error) })?;
        Ok(Self { client, guard })
    }

    async fn send(&self, request: &OutgoingRequest) -> Result<OutgoingResponse, TransportError> {
        self.guard.check(&request.url)?;
        let OutgoingRequest { url, headers, body } = request.clone();
        let sent = self.client.post(url).headers(headers).body(body).send().await;
        let response = sent.map_err(|error| match NotPublic::cause_of(&error) {
            Some(refused) => TransportError::NotPublic(refused.clone()),
            None => TransportError::Unreachable { reason: innermost(&error) },
        })?;
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok(OutgoingResponse { status: response.status().as_u16(), retry_after })
    }
}

impl WebhookTransport for HttpTransport {
    fn send<'a>(&'a self, request: &'a OutgoingRequest) -> BoxFuture<'a, Result<OutgoingResponse, TransportError>> {
        Box::pin(self.send(request))
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpTransport")
    }
}

/// Formats the innermost cause, which is the most understandable one.
fn innermost(error: &reqwest::Error) -> String {
    let mut inner: &dyn Error = error;
    while let Some(cause) = inner.source() {
        inner = cause;
    }
    inner.to_string()
}
