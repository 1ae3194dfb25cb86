//! `Idempotency-Key`: the client's own id of a request. The id of the signal or of the new run is derived from it, so it is
//! in the log and not in a cache. Where the log of one run is not enough, the key is an entry of the store.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use positronic_core::record::{Timestamp, sha256};
use positronic_core::store::{Entry, EntryFilter, EventStore, StoreError};

use crate::auth::Caller;
use crate::problem::{Problem, ProblemType};
use crate::routes::RequestContext;

const KEY: &str = "idempotency-key";
const REPLAYED: &str = "idempotency-replayed";
/// The longest key.
const MAX_KEY: usize = 255;

/// How long a key counts that is an entry of the store, and how many old ones a request removes at most.
const KEPT_FOR: Duration = Duration::from_hours(30 * 24);
const SWEPT: usize = 20;

/// The key of a request.
pub(crate) struct Key {
    key: String,
    is_given: bool,
    /// Whether it is the id of a protocol, and not that of the header.
    is_named: bool,
    /// Whose key it is.
    subject: String,
    user: Option<String>,
}

impl Key {
    /// Returns the key of a request, or a new one.
    pub(super) fn of(cx: &RequestContext) -> Result<Self, Problem> {
        let caller = cx.caller()?;
        let (subject, user) = (caller.subject().to_owned(), caller.user_id().map(str::to_owned));
        let Some(header) = cx.parts.headers.get(KEY) else {
            let key = crate::auth::secret().map_err(|error| Problem::new(ProblemType::Internal).detail(error))?;
            return Ok(Self { key, is_given: false, is_named: false, subject, user });
        };
        // The draft's form is a quoted string.
        let key = header.to_str().unwrap_or_default().trim().trim_matches('"').to_owned();
        if (1..=MAX_KEY).contains(&key.len()) {
            return Ok(Self { key, is_given: true, is_named: false, subject, user });
        }
        Err(Problem::new(ProblemType::InvalidHeader)
            .detail(format!("`Idempotency-Key`: expected 1 to {MAX_KEY} visible ASCII characters")))
    }

    /// Returns the id of a message to a conversation, which has only the messages of one user: that of a protocol as it is, since
    /// its client finds the message by it.
    pub(crate) fn message_id(&self, conversation: &str) -> String {
        if self.is_named { self.key.clone() } else { self.id(&format!("message\n{conversation}")) }
    }

    /// Returns the key of a request whose protocol has an id of its own for what it asks.
    pub(crate) fn named(caller: &Caller, key: String) -> Self {
        let (subject, user) = (caller.subject().to_owned(), caller.user_id().map(str::to_owned));
        Self { key, is_given: true, is_named: true, subject, user }
    }

    /// Returns whether the client has sent it.
    pub(super) const fn is_given(&self) -> bool {
        self.is_given
    }

    /// Returns the id of what the request creates: a UUID (version 8) of the caller, the key and the place. A key of one
    /// caller says nothing about those of others.
    pub(crate) fn id(&self, place: &str) -> String {
        let mut bytes = [0_u8; 16];
        let parts = serde_json::json!([self.subject, self.user, place, self.key]);
        let hash = sha256(parts.to_string().as_bytes());
        for (byte, digits) in bytes.iter_mut().zip(hash.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
        }
        uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
    }

    /// Adds the key to an answer, and whether the request is a repeated one.
    pub(super) fn mark(&self, response: &mut Response, is_replay: bool) {
        if let Ok(key) = HeaderValue::try_from(&self.key) {
            response.headers_mut().insert(HeaderName::from_static(KEY), key);
        }
        if is_replay {
            response.headers_mut().insert(HeaderName::from_static(REPLAYED), HeaderValue::from_static("true"));
        }
    }
}

/// Returns the time of the request whose key is an entry of the store.
pub(super) fn time_of(entry: &Entry) -> Option<Timestamp> {
    serde_json::from_value(entry.value.get("at")?.clone()).ok()
}

/// Returns whether a key that is an entry of the store still counts.
pub(super) fn counts(entry: &Entry, now: Timestamp) -> bool {
    time_of(entry).is_some_and(|at| now.since(at) <= KEPT_FOR)
}

/// Removes some of the keys of a kind that no longer count: those after a new one, whose place among the others is random.
pub(super) async fn sweep_keys(store: &dyn EventStore, kind: &str, new: &str, now: Timestamp) -> Result<(), Problem> {
    for entry in store.entries(&EntryFilter::builder().kind(kind).after(new).limit(SWEPT).build()).await? {
        if !counts(&entry, now) {
            match store.remove_entry(kind, &entry.key, entry.revision).await {
                Ok(()) | Err(StoreError::EntryChanged { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
