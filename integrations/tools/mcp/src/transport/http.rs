//! Transport over streamable HTTP.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::transport::{DynamicTransportError, StreamableHttpClientTransport};

use super::paced::Paced;
use crate::names::printable;
use crate::options::McpOptions;
use crate::secrets::Secrets;

/// The maximum number of redirects, such as for a missing slash at the end.
const REDIRECTS: usize = 3;

/// The maximum pause before a failed event stream is reopened.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The maximum shown characters of a server's error texts.
const SHOWN: usize = 200;

/// An MCP server behind streamable HTTP.
///
/// If the result of a call contains the token or a secret header of 16 bytes or more, it is replaced by `[hidden]`.
///
/// Redirects are followed only on the same host, since requests contain the author's headers. An expired session is replaced.
/// Proxies in the environment are ignored.
#[derive(Clone)]
#[must_use = "an address is given to `McpServer::new`"]
pub struct McpHttp {
    url: String,
    bearer: Option<String>,
    headers: Vec<(String, String)>,
}

impl McpHttp {
    /// Creates a transport with the URL of the server's endpoint, such as `https://tracker.example/mcp`.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), bearer: None, headers: Vec::new() }
    }

    /// Sends a bearer token with every request.
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        self.bearer = Some(token.into());
        self
    }

    /// Sends a header with every request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Validates the configuration.
    pub(super) fn check(&self) -> Result<(), String> {
        let url = reqwest::Url::parse(&self.url).map_err(|error| format!("invalid URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("unsupported URL scheme `{}:`; use `https://…` or `http://…`", url.scheme()));
        }
        if let Some(token) = &self.bearer {
            HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| "the bearer token is not a valid header value")?;
        }
        self.parsed_headers().map(drop)
    }

    pub(super) fn secrets(&self) -> Secrets {
        let headers = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Secrets::named(headers.chain(self.bearer.as_deref().map(|token| ("authorization", token))))
    }

    /// Returns the host, for messages: the URL may contain secrets.
    pub(super) fn host(&self) -> String {
        let url = reqwest::Url::parse(&self.url).ok();
        let host = url.as_ref().and_then(|url| Some((url.host_str()?, url.port())));
        match host {
            Some((host, Some(port))) => format!("{host}:{port}"),
            Some((host, None)) => host.to_owned(),
            None => String::new(),
        }
    }

    fn parsed_headers(&self) -> Result<HashMap<HeaderName, HeaderValue>, String> {
        let parsed = self.headers.iter().map(|(name, value)| {
            let header = HeaderName::try_from(name).map_err(|_| format!("`{name}` is not a valid header name"))?;
            let mut value =
                HeaderValue::try_from(value).map_err(|_| format!("the value of the header `{name}` is invalid"))?;
            value.set_sensitive(true);
            Ok((header, value))
        });
        parsed.collect()
    }

    pub(super) fn transport(&self, options: &McpOptions) -> Result<StreamableHttpClientTransport<Paced>, String> {
        let client = reqwest::Client::builder()
            .connect_timeout(options.connect_timeout)
            .no_proxy()
            // A pooled connection whose last answer was not fully read stalls the next request.
            .pool_max_idle_per_host(0)
            .redirect(same_host())
            .build()
            .map_err(|error| format!("cannot create the HTTP client: {error}"))?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
            .custom_headers(self.parsed_headers()?)
            .max_sse_event_size(options.message);
        if let Some(token) = &self.bearer {
            config = config.auth_header(token.as_str());
        }
        // Pauses double from one second on, unless the server sets them.
        let mut pauses = ExponentialBackoff::default();
        pauses.max_delay = Some(MAX_PAUSE);
        config.retry_config = Arc::new(pauses);
        Ok(StreamableHttpClientTransport::with_client(Paced::new(client), config))
    }
}

/// Follows redirects that keep the method, on the same host.
fn same_host() -> Policy {
    Policy::custom(|attempt| {
        let is_kept = matches!(attempt.status().as_u16(), 307 | 308);
        let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
        if is_kept && is_same && attempt.previous().len() <= REDIRECTS { attempt.follow() } else { attempt.stop() }
    })
}

impl fmt::Debug for McpHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("McpHttp").field("host", &self.host()).field("headers", &names).finish_non_exhaustive()
    }
}

/// Describes a failed request without its URL, and whether a retry may succeed.
pub(super) fn failure(host: &str, error: &DynamicTransportError) -> (String, bool) {
    let mut next: Option<&(dyn StdError + 'static)> = Some(&*error.error);
    while let Some(source) = next {
        if let Some(error) = source.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            return describe(host, error);
        }
        next = source.source();
    }
    (short(&error.error.to_string()), false)
}

fn describe(host: &str, error: &StreamableHttpError<reqwest::Error>) -> (String, bool) {
    match error {
        StreamableHttpError::Client(error) if error.is_connect() || error.is_timeout() => {
            (format!("no response from {host}"), true)
        }
        StreamableHttpError::Client(error) => match error.status() {
            Some(status) => (format!("{host} answers with {status}"), status.is_server_error()),
            None => (format!("the connection to {host} broke; whether the call took effect is unknown"), true),
        },
        StreamableHttpError::AuthRequired(_) => (denied(host, 401), false),
        StreamableHttpError::InsufficientScope(_) => (denied(host, 403), false),
        StreamableHttpError::HttpStatus(status) => {
            (format!("{host} answers with {}", short(&status.to_string())), true)
        }
        StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => {
            (denied(host, 401), false)
        }
        StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 403") => {
            (denied(host, 403), false)
        }
        StreamableHttpError::UnexpectedServerResponse(text) => (format!("{host} answers with {}", short(text)), false),
        StreamableHttpError::UnexpectedContentType(kind) => {
            let kind = kind.as_deref().unwrap_or("nothing");
            (format!("{host} answers with {}, which no MCP server does; is the address right?", short(kind)), false)
        }
        StreamableHttpError::SessionExpired => (format!("{host} has dropped the session"), true),
        other => (short(&other.to_string()), false),
    }
}

fn denied(host: &str, status: u16) -> String {
    format!("{host} denied access (HTTP {status}); give it a token with `.bearer(…)` or a header with `.header(…)`")
}

/// Truncates a text and drops the trailing colon of an empty body.
fn short(text: &str) -> String {
    printable(text, SHOWN).trim_end_matches([':', ' ']).to_owned()
}
