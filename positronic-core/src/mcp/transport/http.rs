//! A server that is reached over streamable HTTP.

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
use crate::mcp::names::plain;
use crate::mcp::options::McpOptions;
use crate::mcp::secrets::Secrets;

/// How often a request may be sent on. A server moves its own address at most, such as one without a slash at its end.
const REDIRECTS: usize = 3;

/// The longest pause before an event stream that failed is opened again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How much of what a server says beside the protocol is shown.
const SHOWN: usize = 200;

/// An MCP server that is reached over streamable HTTP.
///
/// Where the server repeats its token, or a secret header, in the result of a call, `[hidden]` stands in its place, from 16 bytes on.
///
/// Requests are sent on to other paths of the same host only, since they carry the author's headers. A server that has forgotten the
/// session is given a new one. Nothing is read from the environment, such as a proxy.
#[derive(Clone)]
#[must_use = "an address is given to `McpServer::new`"]
pub struct McpHttp {
    url: String,
    bearer: Option<String>,
    headers: Vec<(String, String)>,
}

impl McpHttp {
    /// Begins with the address of the server's endpoint, such as `https://tracker.example/mcp`.
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

    /// Checks what the author has given.
    pub(super) fn check(&self) -> Result<(), String> {
        let url = reqwest::Url::parse(&self.url).map_err(|error| format!("its address is none: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("its address begins with `{}:`; use `https://…` or `http://…`", url.scheme()));
        }
        if let Some(token) = &self.bearer {
            HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| "its bearer token is no text for a header")?;
        }
        self.parsed_headers().map(drop)
    }

    pub(super) fn secrets(&self) -> Secrets {
        let headers = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Secrets::named(headers.chain(self.bearer.as_deref().map(|token| ("authorization", token))))
    }

    /// Returns the host, for sentences: an address may hold secrets.
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
            let header = HeaderName::try_from(name).map_err(|_| format!("`{name}` is no name of a header"))?;
            let mut value =
                HeaderValue::try_from(value).map_err(|_| format!("the value of the header `{name}` is none"))?;
            value.set_sensitive(true);
            Ok((header, value))
        });
        parsed.collect()
    }

    pub(super) fn transport(&self, options: &McpOptions) -> Result<StreamableHttpClientTransport<Paced>, String> {
        let client = reqwest::Client::builder()
            .connect_timeout(options.connect_timeout)
            .no_proxy()
            // A kept connection whose last answer was not read to its end stalls the next request.
            .pool_max_idle_per_host(0)
            .redirect(same_host())
            .build()
            .map_err(|error| format!("the HTTP client cannot be made: {error}"))?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
            .custom_headers(self.parsed_headers()?)
            .max_sse_event_size(options.message);
        if let Some(token) = &self.bearer {
            config = config.auth_header(token.as_str());
        }
        // Where the server says nothing, pauses double from a second on.
        let mut pauses = ExponentialBackoff::default();
        pauses.max_delay = Some(LONGEST_PAUSE);
        config.retry_config = Arc::new(pauses);
        Ok(StreamableHttpClientTransport::with_client(Paced::new(client), config))
    }
}

/// Follows what keeps the request as it is, and stays with the host.
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

/// Says why a request failed, without the address, and whether another try may mend it.
pub(super) fn failure(host: &str, error: &DynamicTransportError) -> (String, bool) {
    let mut next: Option<&(dyn StdError + 'static)> = Some(&*error.error);
    while let Some(source) = next {
        if let Some(error) = source.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            return said(host, error);
        }
        next = source.source();
    }
    (short(&error.error.to_string()), false)
}

fn said(host: &str, error: &StreamableHttpError<reqwest::Error>) -> (String, bool) {
    match error {
        StreamableHttpError::Client(error) if error.is_connect() || error.is_timeout() => {
            (format!("nobody answers at {host}"), true)
        }
        StreamableHttpError::Client(error) => match error.status() {
            Some(status) => (format!("{host} answers with {status}"), status.is_server_error()),
            None => (format!("the connection to {host} broke; whether the call had its effect is unknown"), true),
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
        StreamableHttpError::SessionExpired => (format!("{host} has forgotten the session"), true),
        other => (short(&other.to_string()), false),
    }
}

fn denied(host: &str, status: u16) -> String {
    format!(
        "{host} does not let us in (HTTP {status}); give it a token with `.bearer(…)` or a header with `.header(…)`"
    )
}

/// Shortens a text; what came without a body ends in a colon, which is dropped.
fn short(text: &str) -> String {
    plain(text, SHOWN).trim_end_matches([':', ' ']).to_owned()
}
