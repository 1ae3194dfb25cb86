//! HTTP client of Restate's ingress.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::ClientError;

/// Restate adds this header to the answer of an invocation, so an answer without it is not one of a service.
const INVOCATION: &str = "x-restate-id";

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long Restate may take to accept a request. A request that returns the answer of a service has no such limit.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// A client of Restate's ingress.
#[derive(Debug, Clone)]
pub(crate) struct Ingress {
    url: String,
    token: Option<String>,
    http: reqwest::Client,
}

impl Ingress {
    pub(crate) fn new(url: &str) -> Self {
        let http = reqwest::Client::builder().tcp_nodelay(true).tcp_keepalive(Duration::from_secs(20));
        let http = http.connect_timeout(CONNECT_TIMEOUT).build();
        Self { url: url.trim_end_matches('/').to_owned(), token: None, http: http.unwrap_or_default() }
    }

    pub(crate) fn token(self, token: String) -> Self {
        Self { token: Some(token), ..self }
    }

    /// Calls a handler and returns its output. The same idempotency key attaches to the same invocation.
    pub(crate) async fn call<I: Serialize + Sync, O: DeserializeOwned>(
        &self,
        path: &[&str],
        input: &I,
        idempotency_key: Option<&str>,
    ) -> Result<O, ClientError> {
        let body = serde_json::to_vec(input).map_err(|error| ClientError::Input { reason: error.to_string() })?;
        self.request(Method::POST, path, Some(body), idempotency_key).await
    }

    /// Returns the output of an invocation.
    pub(crate) async fn get<O: DeserializeOwned>(&self, path: &[&str]) -> Result<O, ClientError> {
        self.request(Method::GET, path, None, None).await
    }

    async fn request<O: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        body: Option<Vec<u8>>,
        idempotency_key: Option<&str>,
    ) -> Result<O, ClientError> {
        let lost = |error: reqwest::Error| match error.is_builder() {
            true => ClientError::Input { reason: chain(&error) },
            false => ClientError::Ingress { reason: chain(&error) },
        };
        let mut url = reqwest::Url::parse(&self.url)
            .map_err(|error| ClientError::Input { reason: format!("invalid URL of the ingress: {error}") })?;
        match url.path_segments_mut() {
            Ok(mut segments) => _ = segments.pop_if_empty().extend(path),
            Err(()) => {
                return Err(ClientError::Input { reason: format!("invalid URL of the ingress: {}", self.url) });
            }
        }
        let mut request = self.http.request(method, url);
        if path.last() == Some(&"send") {
            request = request.timeout(SEND_TIMEOUT);
        }
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(key) = idempotency_key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let response = request.send().await.map_err(lost)?;
        let (status, is_invocation) = (response.status(), response.headers().contains_key(INVOCATION));
        let bytes = response.bytes().await.map_err(lost)?;
        let text = || String::from_utf8_lossy(&bytes).chars().take(500).collect();
        match status {
            status if status.is_success() => {
                serde_json::from_slice(&bytes).map_err(|error| ClientError::Output { reason: error.to_string() })
            }
            StatusCode::NOT_FOUND if !is_invocation => Err(ClientError::NoService { reason: text() }),
            status if is_invocation => Err(ClientError::Failed { status: status.as_u16(), reason: text() }),
            status => Err(ClientError::Ingress { reason: format!("{status}: {}", text()) }),
        }
    }
}

/// Writes an error with its sources.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let links = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string);
    links.collect::<Vec<_>>().join(": ")
}
