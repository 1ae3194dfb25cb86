//! The HTTP clients of a transport: one for plain HTTP, which loads no root certificates, and one for TLS.
//!
//! Each is created for the first request that needs it. Loading the certificates of the platform takes about a hundred times
//! as long as sending a request.

use parking_lot::Mutex;
use positronic_core::record::{ModelError, ModelErrorKind};

use super::endpoint::Endpoint;
use super::options::HttpOptions;
use super::unreachable::root_cause;

/// The user agent of requests.
const USER_AGENT: &str = concat!("positronic/", env!("CARGO_PKG_VERSION"));

/// The clients that exist so far.
#[derive(Debug, Default)]
pub(super) struct Clients {
    plain: Mutex<Option<reqwest::Client>>,
    tls: Mutex<Option<reqwest::Client>>,
}

impl Clients {
    /// Returns the client for requests to an endpoint.
    pub(super) fn client(&self, options: &HttpOptions, endpoint: &Endpoint) -> Result<reqwest::Client, ModelError> {
        let needs_tls = needs_tls(options, endpoint);
        let mut client = self.slot(needs_tls).lock();
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        Ok(client.insert(build(options, needs_tls)?).clone())
    }

    /// Drops the client of an endpoint, one of whose connections may be broken. The next request makes another, also for the
    /// other endpoints that are reached in the same way, with TLS or without.
    pub(super) fn renew(&self, options: &HttpOptions, endpoint: &Endpoint) {
        *self.slot(needs_tls(options, endpoint)).lock() = None;
    }

    const fn slot(&self, tls: bool) -> &Mutex<Option<reqwest::Client>> {
        if tls { &self.tls } else { &self.plain }
    }
}

fn needs_tls(options: &HttpOptions, endpoint: &Endpoint) -> bool {
    let is_https = |proxy: &str| proxy.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
    let by_proxy = || options.proxy.as_deref().is_some_and(|proxy| is_https(proxy.trim_start()));
    // A sender has clients of its own.
    options.sender.is_none() && (endpoint.is_tls() || by_proxy())
}

fn build(options: &HttpOptions, tls: bool) -> Result<reqwest::Client, ModelError> {
    let mut builder = reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(options.timeouts.connect)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy();
    if !tls {
        builder = builder.tls_certs_only([]);
    }
    if let Some(proxy) = &options.proxy {
        builder = builder.proxy(read_proxy(proxy)?);
    }
    builder.build().map_err(|error| ModelError::new(ModelErrorKind::BadRequest, root_cause(&error)))
}

/// Parses the URL of a proxy. `reqwest` would ignore an unknown scheme and connect without a proxy.
pub(super) fn read_proxy(address: &str) -> Result<reqwest::Proxy, ModelError> {
    const SCHEMES: [&str; 5] = ["http", "https", "socks4", "socks5", "socks5h"];
    let url = reqwest::Url::parse(address).ok().filter(|url| SCHEMES.contains(&url.scheme()) && url.has_host());
    url.and_then(|url| reqwest::Proxy::all(url).ok()).ok_or_else(|| {
        let sentence = "invalid proxy URL; write it as http://host:port or socks5://host:port";
        ModelError::new(ModelErrorKind::BadRequest, sentence)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_needs_tls() {
        for (url, proxy, expected) in [
            ("http://h/v1", None, false),
            ("http://h/v1", Some("http://p:1"), false),
            ("http://h/v1", Some("socks5://p:1"), false),
            ("http://h/v1", Some(" HTTPS://p:1"), true),
            ("https://h/v1", None, true),
            ("https://h/v1", Some("http://p:1"), true),
        ] {
            let options = HttpOptions::builder().provider("p").model("m").proxy(proxy.map(str::to_owned)).build();
            assert_eq!(needs_tls(&options, &Endpoint::of_url(url).unwrap()), expected, "{url} {proxy:?}");
        }
    }

    #[test]
    fn client_is_created_once_and_anew_after_a_failure() {
        let options = HttpOptions::builder().provider("p").model("m").build();
        let endpoint = Endpoint::of_url("http://h/v1").unwrap();
        let clients = Clients::default();

        clients.client(&options, &endpoint).unwrap();
        assert!(clients.plain.lock().is_some() && clients.tls.lock().is_none());
        clients.renew(&options, &endpoint);
        assert!(clients.plain.lock().is_none());
    }
}
