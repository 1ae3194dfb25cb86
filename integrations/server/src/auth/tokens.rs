//! Access tokens: `pos_<id>_<secret>`. The store has the hash of the secret, which is shown once, when the token is created.

use positronic_core::record::Timestamp;
use positronic_core::runner::Client;
use positronic_core::store::{EntryFilter, StoreError};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use super::secret::{hash_of, secret};
use super::{Caller, Scope, Sessions};

/// The kind of the store's entries.
const KIND: &str = "token";
/// How every token begins, so that scanners of secrets find it.
const PREFIX: &str = "pos_";
/// The length of an id, in hexadecimal digits.
const ID: usize = 12;

/// An access token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct Token {
    /// Its id.
    #[builder(default)]
    #[serde(skip)]
    pub id: String,
    /// The name in the log.
    #[builder(setter(into))]
    pub subject: String,
    /// The user for whom it acts; without one, it sees the runs of all users.
    #[builder(default)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Its rights.
    #[builder(setter(into))]
    pub scopes: Vec<Scope>,
    /// The titles of the brains whose runs it may start; empty for all.
    #[builder(default)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brains: Vec<String>,
    /// When it was created.
    pub created: Timestamp,
    /// When it expires.
    #[builder(default)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// An entry of the store.
#[derive(Serialize, Deserialize)]
struct StoredToken {
    /// The SHA-256 of the secret.
    hash: String,
    #[serde(flatten)]
    token: Token,
}

/// The reason why a token was not created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The system has no source of randomness.
    #[error("the system has no source of randomness: {0}")]
    Random(getrandom::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Token {
    /// Stores a token, and returns it with its secret, which cannot be read again.
    ///
    /// # Errors
    ///
    /// [`TokenError`]; nothing was stored then.
    pub async fn create(client: &Client, token: Self) -> Result<(Self, String), TokenError> {
        let secret = secret().map_err(TokenError::Random)?;
        let mut id = hash_of(&secret);
        id.truncate(ID);
        let stored = StoredToken { hash: hash_of(&secret), token };
        // The fields of a token can be encoded.
        let value = serde_json::to_value(&stored).unwrap_or_default();
        client.store().put_entry(KIND, &id, &value, None).await?;
        let written = format!("{PREFIX}{id}_{secret}");
        Ok((Self { id, ..stored.token }, written))
    }

    /// Lists the tokens of a store, by their ids.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn list(client: &Client) -> Result<Vec<Self>, StoreError> {
        let entries = client.store().entries(&EntryFilter::builder().kind(KIND).build()).await?;
        let read = |entry: positronic_core::store::Entry| {
            let stored: StoredToken = serde_json::from_value(entry.value).ok()?;
            Some(Self { id: entry.key, ..stored.token })
        };
        Ok(entries.into_iter().filter_map(read).collect())
    }

    /// Returns whether the token has expired.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Revokes a token and ends the sessions of browsers that were logged in with it. Returns whether there was one with this
    /// id.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn revoke(client: &Client, id: &str) -> Result<bool, StoreError> {
        let Some(entry) = client.store().entry(KIND, id).await? else { return Ok(false) };
        client.store().remove_entry(KIND, id, entry.revision).await?;
        Sessions::new(client).end_all_of_token(id).await?;
        Ok(true)
    }

    /// Returns the token with this id.
    pub(super) async fn find(client: &Client, id: &str) -> Result<Option<Self>, StoreError> {
        Ok(stored(client, id).await?.map(|stored| stored.token))
    }

    /// Returns the token of a text with its secret; `None` if there is none or the secret is another one.
    pub(super) async fn authenticated(client: &Client, written: &str) -> Result<Option<Self>, StoreError> {
        let Some((id, secret)) = written.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')) else {
            return Ok(None);
        };
        if id.len() != ID || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let Some(StoredToken { hash, token }) = stored(client, id).await? else { return Ok(None) };
        let is_same = hash.as_bytes().ct_eq(hash_of(secret).as_bytes());
        Ok(bool::from(is_same).then_some(token))
    }

    /// Returns the caller with the rights of the token.
    pub(super) fn caller(&self) -> Caller {
        let caller = match &self.user {
            Some(user) => Caller::user(user, self.scopes.clone()).subject_named(&self.subject),
            None => Caller::service(&self.subject, self.scopes.clone()),
        };
        let caller = caller.brains(self.brains.clone());
        match self.expires {
            Some(expires) => caller.expires(expires),
            None => caller,
        }
    }
}

async fn stored(client: &Client, id: &str) -> Result<Option<StoredToken>, StoreError> {
    let Some(entry) = client.store().entry(KIND, id).await? else { return Ok(None) };
    let mut stored: Option<StoredToken> = serde_json::from_value(entry.value).ok();
    if let Some(stored) = &mut stored {
        stored.token.id = entry.key;
    }
    Ok(stored)
}
