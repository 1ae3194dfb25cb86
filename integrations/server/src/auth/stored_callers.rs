//! The callers that the router itself knows: tokens, and sessions of browsers.

use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use futures::future::BoxFuture;
use positronic_core::record::Timestamp;
use positronic_core::runner::Client;
use positronic_core::store::StoreError;

use super::secret::secret;
use super::sessions::{ListedSession, LoggedIn, Session, Sessions, VALID};
use super::tokens::Token;
use super::{Authenticate, Caller, IpRange, Scope};
use crate::problem::{Problem, ProblemType};
use crate::settings::RouterSettings;

/// Knows the callers of tokens and of browser sessions.
pub(crate) struct StoredCallers {
    client: Client,
    /// Whether all browsers reach the router over TLS.
    pub(super) is_public_tls: bool,
    pub(super) trusted_proxies: Vec<IpRange>,
}

impl StoredCallers {
    pub(crate) fn new(client: &Client, settings: &RouterSettings) -> Self {
        let is_public_tls = settings.public_url.as_ref().is_some_and(|url| url.scheme() == "https");
        Self { client: client.clone(), is_public_tls, trusted_proxies: settings.trusted_proxies.clone() }
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
        let token = token.ok_or_else(|| {
            Problem::new(ProblemType::Unauthenticated).detail("the token is unknown, revoked or expired")
        })?;
        self.store(parts, LoggedIn::Token { id: token.id }, now).await
    }

    async fn store(&self, parts: &Parts, login: LoggedIn, now: Timestamp) -> Result<(Caller, String), Problem> {
        let secret = secret().map_err(|error| Problem::new(ProblemType::Internal).detail(error))?;
        let session = Sessions::new(&self.client).begin(&secret, login, now).await?;
        let caller = self.caller(&session).await?.ok_or(ProblemType::Unauthenticated)?;
        Ok((caller, self.set_cookie(parts, &secret, VALID)))
    }

    /// Ends the session of a request and returns the cookie that removes it from the browser.
    pub(crate) async fn end(&self, parts: &Parts) -> Result<String, Problem> {
        if let Some(session) = self.session(parts).await? {
            Sessions::new(&self.client).end(&session).await?;
        }
        Ok(self.set_cookie(parts, "", Duration::ZERO))
    }

    /// Returns the session of a request.
    pub(crate) async fn session(&self, parts: &Parts) -> Result<Option<ListedSession>, StoreError> {
        match self.session_of(parts) {
            Some(secret) => Sessions::new(&self.client).find(secret).await,
            None => Ok(None),
        }
    }

    /// Returns the caller of a session; `None` if its token no longer exists.
    pub(crate) async fn caller(&self, session: &Session) -> Result<Option<Caller>, StoreError> {
        Ok(match &session.login {
            LoggedIn::Code { subject } => Some(Caller::service(subject, Scope::ALL).expires(session.expires)),
            LoggedIn::Token { id } => Token::find(&self.client, id).await?.map(|token| {
                let caller = token.caller();
                let expires = caller.expiry().map_or(session.expires, |expires| expires.min(session.expires));
                caller.expires(expires)
            }),
        })
    }

    async fn of_request(&self, parts: &Parts) -> Result<Option<Caller>, StoreError> {
        if let Some(header) = parts.headers.get(AUTHORIZATION) {
            let Some(token) = header.to_str().ok().and_then(bearer) else { return Ok(None) };
            return Ok(Token::authenticated(&self.client, token).await?.map(|token| token.caller()));
        }
        match self.session(parts).await? {
            Some(known) => self.caller(&known.session).await,
            None => Ok(None),
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
