//! Entries: small documents beside the logs, such as schedules and the hashes of access tokens.

use serde_json::Value;

use super::{BoxFuture, StoreError};

/// Keeps small documents beside the logs.
#[diagnostic::on_unimplemented(note = "a store around another one gets this trait by implementing `StoreWrapper`")]
pub trait EntryStore: Send + Sync + 'static {
    /// Returns an entry, or `None`.
    fn entry<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, StoreError>>;

    /// Lists entries of a kind in the order of their keys' bytes.
    fn entries<'a>(&'a self, filter: &'a EntryFilter) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>>;

    /// Creates an entry, or changes the one with the expected revision, and returns its new revision. With `None` the
    /// entry must not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError::EntryChanged`] when the entry does not have the expected revision.
    fn put_entry<'a>(
        &'a self,
        kind: &'a str,
        key: &'a str,
        value: &'a Value,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Removes an entry, if there is one.
    ///
    /// # Errors
    ///
    /// [`StoreError::EntryChanged`] when the entry has another revision than the expected one.
    fn remove_entry<'a>(&'a self, kind: &'a str, key: &'a str, expected: u64) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// A document that belongs to no run, found by its kind and key.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// Its key, unique among the entries of its kind.
    pub key: String,
    /// Counts the changes since the entry was created, from 1.
    pub revision: u64,
    /// The document.
    pub value: Value,
}

impl Entry {
    /// Creates an entry as a store returns it.
    pub fn new(key: impl Into<String>, revision: u64, value: Value) -> Self {
        Self { key: key.into(), revision, value }
    }
}

/// Filter for a list of entries of one kind, in the order of their keys' bytes.
#[derive(Debug, Clone, PartialEq, Eq, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct EntryFilter {
    /// The kind.
    #[builder(setter(into))]
    pub kind: String,
    /// Only entries whose key begins with this.
    #[builder(default, setter(into))]
    pub prefix: String,
    /// Only entries that the list shows after this key.
    #[builder(default, setter(strip_option, into))]
    pub after: Option<String>,
    /// Whether the list begins with the last key.
    #[builder(default)]
    pub reverse: bool,
    /// The largest number of results.
    #[builder(default, setter(strip_option))]
    pub limit: Option<usize>,
}

impl EntryFilter {
    /// Returns whether an entry of the kind matches, ignoring `limit`.
    #[must_use]
    pub fn passes(&self, key: &str) -> bool {
        let follows = |after: &String| if self.reverse { key < after.as_str() } else { key > after.as_str() };
        key.starts_with(&self.prefix) && self.after.as_ref().is_none_or(follows)
    }
}
