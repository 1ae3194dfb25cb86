//! The URL of an API: built from a base URL, and shown in messages.

use positronic_core::record::{ModelError, ModelErrorKind};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// A URL that requests are sent to. It is shown without credentials.
#[derive(Clone)]
pub struct Endpoint {
    url: Url,
    server: String,
    headers: HeaderMap,
    advice: Option<String>,
}

impl Endpoint {
    /// Appends the segments of a path to a base URL, before its query if it has one. The base URL includes the version of the
    /// API; a trailing slash is ignored.
    ///
    /// # Errors
    ///
    /// [`BadRequest`](ModelErrorKind::BadRequest) when the base URL is not an `http` or `https` URL.
    pub fn new(base: &str, path: &[&str]) -> Result<Self, ModelError> {
        let mut endpoint = Self::of_url(base)?;
        endpoint.url.path_segments_mut().map_err(|()| refused(base))?.pop_if_empty().extend(path);
        Ok(endpoint)
    }

    /// Takes a whole URL.
    ///
    /// # Errors
    ///
    /// [`BadRequest`](ModelErrorKind::BadRequest) when it is not an `http` or `https` URL.
    pub fn of_url(url: &str) -> Result<Self, ModelError> {
        let parsed = Url::parse(url.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = parsed.ok_or_else(|| refused(url))?;
        let host = url.host_str().unwrap_or_default();
        let server = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Ok(Self { url, server, headers: HeaderMap::new(), advice: None })
    }

    /// Adds a parameter to the query.
    #[must_use]
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.url.query_pairs_mut().append_pair(name, value);
        self
    }

    /// Sets a header of the requests to this URL; it overrides the transport's.
    ///
    /// # Errors
    ///
    /// [`BadRequest`](ModelErrorKind::BadRequest) for a value that is not valid in a header.
    pub fn header(mut self, name: &'static str, value: &str) -> Result<Self, ModelError> {
        let value = HeaderValue::from_str(value).map_err(|_| {
            let sentence = format!("the header `{name}` has an invalid value; use no control characters");
            ModelError::new(ModelErrorKind::BadRequest, sentence)
        })?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    /// Sets headers of the requests to this URL; they override the transport's. Errors do not show their values.
    #[must_use]
    pub fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self.headers.values_mut().for_each(|value| value.set_sensitive(true));
        self
    }

    /// Sets what to check when the server does not know the path.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    pub(super) fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }

    pub(super) const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub(super) const fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the server as events name it: its host, and its port unless that is the usual one.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Returns scheme, host and port; if `swapped`, with the other scheme on the same port.
    pub(super) fn origin(&self, swapped: bool) -> String {
        let scheme = if self.is_tls() == swapped { "http" } else { "https" };
        match self.url.port().or_else(|| self.url.port_or_known_default().filter(|_| swapped)) {
            Some(port) => format!("{scheme}://{}:{port}", self.host()),
            None => format!("{scheme}://{}", self.host()),
        }
    }
}

fn refused(url: &str) -> ModelError {
    let sentence = format!("invalid base URL `{}`; write it as https://host/v1", without_user(url));
    ModelError::new(ModelErrorKind::BadRequest, sentence)
}

/// Shows the URL without user, password and query, which may contain a key.
impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.origin(false), self.url.path())
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Removes user, password and query from a URL, or from a text that is not a valid URL.
pub(super) fn without_user(base: &str) -> String {
    let (scheme, rest) = base.split_once("://").map_or(("", base), |(scheme, rest)| (scheme, rest));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    if scheme.is_empty() { rest.to_owned() } else { format!("{scheme}://{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_path_is_appended_before_the_query() {
        let url = |base: &str| Endpoint::new(base, &["chat", "completions"]).unwrap();

        assert_eq!(url("http://h:8080/v1").url().as_str(), "http://h:8080/v1/chat/completions");
        assert_eq!(url(" https://h/v1/ ").url().as_str(), "https://h/v1/chat/completions");
        assert_eq!((url("http://h:8080/v1").server(), url("https://a:b@h:443/v1").server()), ("h:8080", "h"));
        let versioned = url("https://h/d?api-version=1").query("alt", "sse");
        assert_eq!(versioned.url().as_str(), "https://h/d/chat/completions?api-version=1&alt=sse");
    }

    #[test]
    fn header_has_a_valid_value() {
        let endpoint = Endpoint::new("https://h/v1", &[]).unwrap();

        let with = endpoint.clone().header("anthropic-beta", "a,b").unwrap();
        assert_eq!(with.headers().get("anthropic-beta").unwrap(), "a,b");
        let error = endpoint.header("anthropic-beta", "a\nb").unwrap_err();
        assert_eq!(error.message, "the header `anthropic-beta` has an invalid value; use no control characters");
    }

    #[test]
    fn messages_show_no_credentials() {
        let endpoint = Endpoint::new("https://ann:pass@h:8443/v1?key=k", &["chat", "completions"]).unwrap();

        assert_eq!(endpoint.to_string(), "https://h:8443/v1/chat/completions");
        assert_eq!(endpoint.origin(true), "http://h:8443");
        let error = Endpoint::new("ftp://ann:pass@h/v1?key=k", &[]).unwrap_err();
        assert_eq!(error.message, "invalid base URL `ftp://h/v1`; write it as https://host/v1");
    }
}
