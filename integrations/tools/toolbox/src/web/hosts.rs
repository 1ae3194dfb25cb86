//! The list of allowed hosts.

use url::{Host, Url};

/// What to do about a host that is not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unlisted {
    /// The call fails, with the list.
    #[default]
    Refuse,
    /// A person is asked. A redirect to such a host is still refused, since it was not approved.
    Ask,
}

/// A listed host: a name, `*.` and a name for all subdomains, or an address; with `:` and a non-default port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostPattern {
    below: bool,
    host: String,
    port: Option<u16>,
}

impl HostPattern {
    /// Parses a pattern; the error contains the pattern and the reason.
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        let wrong = |reason: &str| format!("`{pattern}` is not a valid host: {reason}");
        let (below, rest) = match pattern.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, pattern),
        };
        if rest.contains('*') {
            return Err(wrong("a `*` stands at the beginning, before a dot"));
        }
        // Parsed with the URL library, so that both normalise in the same way.
        let url = Url::parse(&format!("http://{rest}/")).map_err(|error| wrong(&error.to_string()))?;
        let bare = url.path() == "/" && url.username().is_empty() && url.password().is_none() && url.query().is_none();
        let host = url.host_str().filter(|_| bare && url.fragment().is_none());
        let host = host.ok_or_else(|| wrong("it is a name or an address, and a port at most"))?;
        let port = rest.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        Ok(Self { below, host: host.trim_end_matches('.').to_owned(), port })
    }

    pub(super) fn fits(&self, url: &Url) -> bool {
        let Some(host) = url.host_str().map(|host| host.trim_end_matches('.')) else { return false };
        let port = match self.port {
            Some(port) => url.port_or_known_default() == Some(port),
            // The URL omits a default port.
            None => url.port().is_none(),
        };
        let name = match self.below {
            false => host == self.host,
            true => {
                matches!(url.host(), Some(Host::Domain(_)))
                    && host.strip_suffix(&self.host).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
        };
        name && port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, url: &str) -> bool {
        HostPattern::parse(pattern).unwrap().fits(&Url::parse(url).unwrap())
    }

    #[test]
    fn pattern_matches_only_its_host() {
        assert!(fits("docs.rs", "https://docs.rs/serde"));
        assert!(fits("Docs.RS", "https://docs.rs./serde"), "a name may end with a dot, and has no case");
        assert!(fits("bücher.example", "https://xn--bcher-kva.example/"));
        assert!(fits("*.example.org", "https://a.b.example.org/"));
        assert!(fits("127.0.0.1:8080", "http://127.0.0.1:8080/"));
        for (pattern, url) in [
            ("docs.rs", "https://evil-docs.rs/"),
            ("docs.rs", "https://docs.rs.evil.example/"),
            ("docs.rs", "https://docs.rs@evil.example/"),
            ("docs.rs", "https://docs.rs:8443/"),
            ("*.example.org", "https://example.org/"),
            ("*.example.org", "https://evilexample.org/"),
            ("*.0.0.1", "http://127.0.0.1/"),
            ("127.0.0.1:8080", "http://127.0.0.1/"),
        ] {
            assert!(!fits(pattern, url), "{pattern} {url}");
        }
    }

    #[test]
    fn invalid_host_is_rejected() {
        for wrong in ["", "*", "a*.b", "https://a.b", "a.b/c", "me@a.b", "a b", "*.*.b"] {
            assert!(HostPattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
