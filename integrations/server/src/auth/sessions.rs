//! Sessions of browsers, in the store: so they outlive the process, and a person can see and end them.

use std::time::Duration;

use positronic_core::record::Timestamp;
use positronic_core::runner::Client;
use positronic_core::store::{Entry, EntryFilter, StoreError};
use serde::{Deserialize, Serialize};

use super::secret::hash_of;

/// The kind of the store's entries. Their keys are the hashes of the cookies' values.
const KIND: &str = "session";
/// How long a session is valid.
pub(crate) const VALID: Duration = Duration::from_hours(30 * 24);
/// The most sessions of one subject; the oldest one ends when a further one begins.
const MOST: usize = 20;
/// The length of an id, which is the beginning of the key.
const ID: usize = 16;

/// The sessions of a store.
pub(crate) struct Sessions<'c>(&'c Client);

/// A session of a browser.
#[derive(Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) expires: Timestamp,
    #[serde(default)]
    pub(crate) created: Timestamp,
    pub(crate) login: LoggedIn,
}

/// How a browser was logged in.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LoggedIn {
    /// By a one-use code, in the name of the person who started the server.
    Code { subject: String },
    /// By a token, with the same rights for as long as it exists.
    Token { id: String },
}

/// A session in a list.
pub(crate) struct ListedSession {
    pub(crate) id: String,
    pub(crate) session: Session,
    entry: Entry,
}

impl<'c> Sessions<'c> {
    pub(crate) const fn new(client: &'c Client) -> Self {
        Self(client)
    }

    /// Stores a session under the hash of its secret, and ends the oldest ones of the same login if there are too many.
    pub(crate) async fn begin(&self, secret: &str, login: LoggedIn, now: Timestamp) -> Result<Session, StoreError> {
        let mut own: Vec<_> = self.list(now).await?.into_iter().filter(|known| known.session.login == login).collect();
        own.sort_by_key(|known| std::cmp::Reverse(known.session.created));
        for old in own.into_iter().skip(MOST - 1) {
            self.end(&old).await?;
        }
        let session = Session { expires: now.after(VALID), created: now, login };
        let value = serde_json::to_value(&session).unwrap_or_default();
        self.0.store().put_entry(KIND, &hash_of(secret), &value, None).await?;
        Ok(session)
    }

    /// Returns the session of a secret.
    pub(crate) async fn find(&self, secret: &str) -> Result<Option<ListedSession>, StoreError> {
        let entry = self.0.store().entry(KIND, &hash_of(secret)).await?;
        Ok(entry.and_then(ListedSession::of))
    }

    /// Lists the sessions that are valid, and removes the others.
    pub(crate) async fn list(&self, now: Timestamp) -> Result<Vec<ListedSession>, StoreError> {
        let mut listed = Vec::new();
        for entry in self.0.store().entries(&EntryFilter::builder().kind(KIND).build()).await? {
            let (key, revision) = (entry.key.clone(), entry.revision);
            match ListedSession::of(entry) {
                Some(known) if known.session.expires > now => listed.push(known),
                _ => self.remove(&key, revision).await?,
            }
        }
        Ok(listed)
    }

    /// Ends a session.
    pub(crate) async fn end(&self, session: &ListedSession) -> Result<(), StoreError> {
        self.remove(&session.entry.key, session.entry.revision).await
    }

    /// Ends all sessions that were begun with a token.
    pub(crate) async fn end_all_of_token(&self, token: &str) -> Result<(), StoreError> {
        let of_token = |known: &ListedSession| matches!(&known.session.login, LoggedIn::Token { id } if id == token);
        for session in self.list(Timestamp(i64::MIN)).await?.iter().filter(|known| of_token(known)) {
            self.end(session).await?;
        }
        Ok(())
    }

    async fn remove(&self, key: &str, revision: u64) -> Result<(), StoreError> {
        match self.0.store().remove_entry(KIND, key, revision).await {
            // Another request has removed it.
            Ok(()) | Err(StoreError::EntryChanged { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl ListedSession {
    fn of(entry: Entry) -> Option<Self> {
        let session = serde_json::from_value(entry.value.clone()).ok()?;
        let id = entry.key.chars().take(ID).collect();
        Some(Self { id, session, entry })
    }
}
