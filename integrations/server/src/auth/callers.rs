//! The callers that the router itself knows: browser sessions.

use std::collections::HashMap;
use std::time::Duration;

use axum::http::header::COOKIE;
use axum::http::request::Parts;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use positronic_core::record::Timestamp;
use positronic_core::runner::{Clock as _, SystemClock};

use super::login::{hash_of, secret};
use super::{Authenticate, Caller, Scope};
use crate::options::Options;
use crate::problem::{Problem, ProblemType};

/// How long a session is valid.
const VALID: Duration = Duration::from_hours(30 * 24);

/// Knows the callers of browser sessions.
pub(crate) struct StoredCallers {
    /// The cookie's name, and whether the router is behind TLS.
    cookie: (&'static str, bool),
    sessions: Mutex<HashMap<String, Caller>>,
}

impl StoredCallers {
    pub(crate) fn new(options: &Options) -> Self {
        let is_tls = options.public_url.as_ref().is_some_and(|url| url.scheme() == "https");
        let name = if is_tls { "__Host-positronic" } else { "positronic" };
        Self { cookie: (name, is_tls), sessions: Mutex::default() }
    }

    /// Begins a session and returns its cookie.
    pub(crate) fn begin(&self, now: Timestamp) -> Result<(Caller, String), Problem> {
        let secret = secret().map_err(|error| Problem::new(ProblemType::Internal).detail(error))?;
        let caller = Caller::service("local", Scope::ALL).expires(now.after(VALID));
        self.sessions.lock().insert(hash_of(&secret), caller.clone());
        Ok((caller, self.set_cookie(&secret, VALID)))
    }

    /// Ends the session of a request and returns the cookie that removes it from the browser.
    pub(crate) fn end(&self, parts: &Parts) -> String {
        if let Some(secret) = self.session_of(parts) {
            self.sessions.lock().remove(&hash_of(secret));
        }
        self.set_cookie("", Duration::ZERO)
    }

    fn set_cookie(&self, value: &str, valid: Duration) -> String {
        let (name, is_tls) = self.cookie;
        let secure = if is_tls { "; Secure" } else { "" };
        format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={}{secure}", valid.as_secs())
    }

    fn session_of<'p>(&self, parts: &'p Parts) -> Option<&'p str> {
        let cookies = parts.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.cookie.0).map(|(_, value)| value)
    }
}

impl Authenticate for StoredCallers {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<Option<Caller>, Problem>> {
        Box::pin(async {
            let session = self.session_of(request).map(hash_of);
            let caller = session.and_then(|hash| self.sessions.lock().get(&hash).cloned());
            Ok(caller.filter(|caller| !caller.has_expired(SystemClock.now())))
        })
    }
}
