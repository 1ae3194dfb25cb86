//! The caller of a request.

use positronic_core::record::{RunSummary, Timestamp};

use super::Scope;

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
