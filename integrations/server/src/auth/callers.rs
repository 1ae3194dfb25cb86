//! The callers that the router itself knows: tokens, and sessions of browsers. Both are in the store, so they outlive the
//! process.

use std::time::Duration;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use axum::http::request::Parts;
use futures::future::BoxFuture;
use positronic_core::record::Timestamp;
use positronic_core::runner::Client;
use positronic_core::store::{EntryFilter, StoreError};
use serde::{Deserialize, Serialize};

use super::login::{hash_of, secret};
use super::tokens::Token;
use super::{Authenticate, Caller, Scope};
use crate::options::Options;
use crate::problem::{Problem, ProblemType};

/// The kind of the store's entries. Their keys are the hashes of the cookies' values.
const KIND: &str = "session";
/// How long a session is valid.
const VALID: Duration = Duration::from_hours(30 * 24);

/// Knows the callers of tokens and of browser sessions.
pub(crate) struct StoredCallers {
    client: Client,
    /// Whether browsers reach the router over TLS.
    is_tls: bool,
}

/// A session of a browser.
#[derive(Serialize, Deserialize)]
struct Session {
    expires: Timestamp,
    login: LoggedIn,
}

/// How a browser was logged in.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LoggedIn {
    /// By a one-use code, in the name of the person who started the server.
    Code { subject: String },
    /// By a token, with the same rights for as long as it exists.
    Token { id: String },
}

impl StoredCallers {
    pub(crate) fn new(client: &Client, options: &Options) -> Self {
        let is_tls = options.public_url.as_ref().is_some_and(|url| url.scheme() == "https");
        Self { client: client.clone(), is_tls }
    }

    /// Begins the session of a person who has used a one-use code, and returns its cookie.
    pub(crate) async fn begin(
        &self,
        parts: &Parts,
        subject: &str,
        now: Timestamp,
    ) -> Result<(Caller, String), Problem> {
        self.store(parts, LoggedIn::Code { subject: subject.to_owned() }, now).await
    }

    /// Begins a session with the rights of a token, and returns its cookie.
    pub(crate) async fn begin_with_token(
        &self,
        parts: &Parts,
        token: &str,
        now: Timestamp,
    ) -> Result<(Caller, String), Problem> {
        let token = Token::authenticated(&self.client, token).await?;
        let token = token.filter(|token| !token.caller().has_expired(now));
        let token = token.ok_or_else(|| Problem::new(ProblemType::Unauthenticated).detail("the token is unknown"))?;
        self.store(parts, LoggedIn::Token { id: token.id }, now).await
    }

    async fn store(&self, parts: &Parts, login: LoggedIn, now: Timestamp) -> Result<(Caller, String), Problem> {
        self.remove_expired(now).await?;
        let secret = secret().map_err(|error| Problem::new(ProblemType::Internal).detail(error))?;
        let session = Session { expires: now.after(VALID), login };
        let value = serde_json::to_value(&session).unwrap_or_default();
        self.client.store().put_entry(KIND, &hash_of(&secret), &value, None).await?;
        let caller = self.caller(session).await?.ok_or(ProblemType::Unauthenticated)?;
        Ok((caller, self.set_cookie(parts, &secret, VALID)))
    }

    async fn remove_expired(&self, now: Timestamp) -> Result<(), StoreError> {
        let store = self.client.store();
        for entry in store.entries(&EntryFilter::builder().kind(KIND).build()).await? {
            let session: Option<Session> = serde_json::from_value(entry.value).ok();
            if session.is_none_or(|session| session.expires <= now) {
                match store.remove_entry(KIND, &entry.key, entry.revision).await {
                    Ok(()) | Err(StoreError::EntryChanged { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Ends the session of a request and returns the cookie that removes it from the browser.
    pub(crate) async fn end(&self, parts: &Parts) -> Result<String, Problem> {
        if let Some(secret) = self.session_of(parts) {
            let (store, key) = (self.client.store(), hash_of(secret));
            if let Some(entry) = store.entry(KIND, &key).await? {
                store.remove_entry(KIND, &key, entry.revision).await?;
            }
        }
        Ok(self.set_cookie(parts, "", Duration::ZERO))
    }

    async fn caller(&self, session: Session) -> Result<Option<Caller>, StoreError> {
        Ok(match session.login {
            LoggedIn::Code { subject } => Some(Caller::service(subject, Scope::ALL).expires(session.expires)),
            LoggedIn::Token { id } => Token::find(&self.client, &id).await?.map(|token| {
                let caller = token.caller();
                let expires = caller.expiry().map_or(session.expires, |expires| expires.min(session.expires));
                caller.expires(expires)
            }),
        })
    }

    fn set_cookie(&self, parts: &Parts, value: &str, valid: Duration) -> String {
        let (name, age) = (self.cookie_name(parts), valid.as_secs());
        let secure = if self.is_tls { "; Secure" } else { "" };
        format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}")
    }

    /// Returns the name of the cookie. Browsers send a cookie to all ports of a host, so that of a local server has the port in its
    /// name: several servers do not overwrite each other's.
    fn cookie_name(&self, parts: &Parts) -> String {
        if self.is_tls {
            return "__Host-positronic".to_owned();
        }
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let port = host.rsplit_once(':').map(|(_, port)| port);
        match port.filter(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())) {
            Some(port) => format!("positronic-{port}"),
            None => "positronic".to_owned(),
        }
    }

    fn session_of<'p>(&self, parts: &'p Parts) -> Option<&'p str> {
        let own = self.cookie_name(parts);
        let cookies = parts.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == own).map(|(_, value)| value)
    }

    async fn of_request(&self, parts: &Parts) -> Result<Option<Caller>, StoreError> {
        if let Some(header) = parts.headers.get(AUTHORIZATION) {
            let Some(token) = header.to_str().ok().and_then(bearer) else { return Ok(None) };
            return Ok(Token::authenticated(&self.client, token).await?.map(|token| token.caller()));
        }
        let Some(secret) = self.session_of(parts) else { return Ok(None) };
        let Some(entry) = self.client.store().entry(KIND, &hash_of(secret)).await? else { return Ok(None) };
        match serde_json::from_value(entry.value) {
            Ok(session) => self.caller(session).await,
            Err(_) => Ok(None),
        }
    }
}

/// Returns the token of an `Authorization` header.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

impl Authenticate for StoredCallers {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<Option<Caller>, Problem>> {
        Box::pin(async { Ok(self.of_request(request).await?) })
    }
}
