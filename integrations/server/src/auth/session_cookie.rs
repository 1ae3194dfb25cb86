//! The cookie of a browser's session: its name, its attributes, and how it is read.

use std::time::Duration;

use axum::http::header::{COOKIE, HOST};
use axum::http::request::Parts;

use super::proxy::is_tls;
use super::stored_callers::StoredCallers;

impl StoredCallers {
    /// Returns the header that stores a cookie in the browser, or removes it.
    pub(super) fn set_cookie(&self, parts: &Parts, value: &str, valid: Duration) -> String {
        let (name, age) = (self.cookie_name(parts), valid.as_secs());
        let secure = if self.is_tls(parts) { "; Secure" } else { "" };
        format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}")
    }

    fn is_tls(&self, parts: &Parts) -> bool {
        self.is_public_tls || is_tls(&self.trusted_proxies, parts)
    }

    /// Returns the name of the cookie. Browsers send a cookie to all ports of a host, so that of a local server has the port in its
    /// name: several servers do not overwrite each other's.
    fn cookie_name(&self, parts: &Parts) -> String {
        if self.is_tls(parts) {
            return "__Host-positronic".to_owned();
        }
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let port = host.rsplit_once(':').map(|(_, port)| port);
        match port.filter(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())) {
            Some(port) => format!("positronic-{port}"),
            None => "positronic".to_owned(),
        }
    }

    /// Returns the secret of the session in the cookie of a request.
    pub(super) fn session_of<'p>(&self, parts: &'p Parts) -> Option<&'p str> {
        let own = self.cookie_name(parts);
        let cookies = parts.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == own).map(|(_, value)| value)
    }
}
