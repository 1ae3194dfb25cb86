//! Who may do what: callers, their scopes, and the checks of hosts and origins.

mod callers;
mod cors;
mod deciders;
mod headers;
mod host;
mod limits;
mod login;
mod proxy;
mod secret;
mod sessions;
mod site;
mod tokens;

use std::fmt;

use axum::http::request::Parts;
use futures::future::BoxFuture;
use positronic_core::record::{RunSummary, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use callers::StoredCallers;
pub(crate) use cors::{allow, allowed_origin, preflight};
pub use deciders::{DeciderPolicy, DeciderRule, Deciders, InvalidDeciderRule, Question};
pub(crate) use headers::security_headers;
pub(crate) use host::allowed_host;
pub(crate) use limits::{AnswerSlot, Limits};
pub use login::Login;
pub use proxy::{InvalidIpRange, IpRange};
pub(crate) use proxy::{client_address, client_prefix, is_tls, is_trusted};
pub(crate) use secret::secret;
pub(crate) use sessions::{ListedSession, LoggedIn, Sessions};
pub(crate) use site::same_site;
pub use tokens::{Token, TokenError};

use crate::problem::Problem;

/// A right of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// Reads runs, pending items and brains.
    Read,
    /// Starts runs and sends messages.
    Run,
    /// Decides pending items: approves, rejects, grants, replies.
    Decide,
    /// Sends requests of the log to a model again, with changes and outside of runs.
    Playground,
    /// Pauses, resumes, cancels and forks runs, and sees the runs of all users.
    Operate,
    /// Manages schedules and webhooks, and has all other scopes.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 6] = [Self::Read, Self::Run, Self::Decide, Self::Playground, Self::Operate, Self::Admin];

    /// Returns the scope as a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Decide => "decide",
            Self::Playground => "playground",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    subject: String,
    user: Option<String>,
    scopes: Vec<Scope>,
    /// The titles of the brains whose runs it may start; empty for all.
    brains: Vec<String>,
    expires: Option<Timestamp>,
}

impl Caller {
    /// Creates a caller that acts for a user and sees only the runs of that user, unless it has the scope
    /// [`Scope::Operate`]. The user is also the subject that the log names.
    pub fn user(user: impl Into<String>, scopes: impl Into<Vec<Scope>>) -> Self {
        let user = user.into();
        Self { subject: user.clone(), user: Some(user), scopes: scopes.into(), brains: Vec::new(), expires: None }
    }

    /// Creates a caller that sees the runs of all users. The log names it by its subject.
    pub fn service(subject: impl Into<String>, scopes: impl Into<Vec<Scope>>) -> Self {
        Self { subject: subject.into(), user: None, scopes: scopes.into(), brains: Vec::new(), expires: None }
    }

    /// Sets the name in the log.
    #[must_use]
    pub fn subject_named(self, subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), ..self }
    }

    /// Sets when its right ends; its open streams end then, too.
    #[must_use]
    pub fn expires(self, at: Timestamp) -> Self {
        Self { expires: Some(at), ..self }
    }

    /// Sets of which brains it may start runs, by their titles; of all brains if the list is empty.
    #[must_use]
    pub fn brains(self, titles: impl Into<Vec<String>>) -> Self {
        Self { brains: titles.into(), ..self }
    }

    /// Returns the name in the log.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns whether it has a scope.
    #[must_use]
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }

    /// Returns its scopes.
    #[must_use]
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// Returns the user for whom it acts.
    #[must_use]
    pub fn user_id(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the person that rules name: its user, or else its subject.
    pub(crate) fn person(&self) -> &str {
        self.user.as_deref().unwrap_or(&self.subject)
    }

    /// Returns whether it may start runs of a brain.
    pub(crate) fn starts(&self, brain: &str) -> bool {
        self.brains.is_empty() || self.brains.iter().any(|title| title == brain)
    }

    /// Returns the user to whose runs it is limited.
    pub(crate) fn only_user(&self) -> Option<&str> {
        self.user.as_deref().filter(|_| !self.may(Scope::Operate))
    }

    pub(crate) fn sees(&self, row: &RunSummary) -> bool {
        self.only_user().is_none_or(|user| row.user.as_deref() == Some(user))
    }

    pub(crate) fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    pub(crate) const fn expiry(&self) -> Option<Timestamp> {
        self.expires
    }
}

/// Finds the caller of a request: a service's own authentication. Give [`Scope::Decide`] only to people who may approve, and see
/// [`OptionsBuilder::deciders`](crate::OptionsBuilder::deciders) for rules about whom.
///
/// ```
/// use axum::http::request::Parts;
/// use futures::future::BoxFuture;
/// use positronic_server::{Authenticate, Caller, Problem, Scope};
///
/// /// Trusts the user that the service's own middleware has found.
/// struct Own;
///
/// #[derive(Clone)]
/// struct User(String);
///
/// impl Authenticate for Own {
///     fn authenticate<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<Option<Caller>, Problem>> {
///         let user = request.extensions.get::<User>().map(|user| user.0.clone());
///         Box::pin(async { Ok(user.map(|user| Caller::user(user, [Scope::Read, Scope::Run]))) })
///     }
/// }
/// ```
pub trait Authenticate: Send + Sync + 'static {
    /// Returns the caller of a request; `None` if it has none.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the caller cannot be found now.
    fn authenticate<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<Option<Caller>, Problem>>;
}
