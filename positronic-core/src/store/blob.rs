//! File contents, stored beside the logs: each content once, named by its SHA-256.
//!
//! A file is stored before the event that references it, so it has no reference for a moment. The sweep therefore spares
//! unreferenced files for [`BLOB_GRACE`]. The append that records a file also records the reference, in its transaction; so
//! do a fork and an import.

use std::time::Duration;

use super::{BoxFuture, StoreError};
use crate::record::{LARGEST_BLOB, Timestamp, sha256};

/// Keeps the contents of files, each once.
#[diagnostic::on_unimplemented(note = "a store around another one gets this trait by implementing `StoreWrapper`")]
pub trait BlobStore: Send + Sync + 'static {
    /// Stores bytes that no run references yet and returns their SHA-256 as 64 lower-case hexadecimal digits. Storing
    /// the same bytes again only updates their time to `at`.
    ///
    /// # Errors
    ///
    /// [`StoreError::TooLarge`] when there are more than [`LARGEST_BLOB`].
    fn put_blob(&self, bytes: Vec<u8>, at: Timestamp) -> BoxFuture<'_, Result<String, StoreError>>;

    /// Returns the bytes with a SHA-256, or `None`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] when they no longer match the hash.
    fn blob<'a>(&'a self, sha256: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;

    /// Removes files that no run references and that were last stored before a moment, and returns their count; see
    /// [`swept_before`].
    fn sweep_blobs(&self, before: Timestamp) -> BoxFuture<'_, Result<usize, StoreError>>;
}

/// How long an unreferenced file is spared: one hour. Storing and referencing are milliseconds apart, but a store may be
/// busy, and an import is slow.
pub const BLOB_GRACE: Duration = Duration::from_hours(1);

/// Returns the cutoff for a sweep: unreferenced files that were last stored before it may be removed.
#[must_use]
pub fn swept_before(now: Timestamp) -> Timestamp {
    Timestamp(now.0.saturating_sub(i64::try_from(BLOB_GRACE.as_micros()).unwrap_or(i64::MAX)))
}

/// Returns the hash that names a file, after checking its size.
///
/// # Errors
///
/// [`StoreError::TooLarge`] when there are more than [`LARGEST_BLOB`] bytes.
pub fn content_hash(bytes: &[u8]) -> Result<String, StoreError> {
    if bytes.len() > LARGEST_BLOB {
        return Err(StoreError::TooLarge { size: bytes.len() as u64, most: LARGEST_BLOB as u64 });
    }
    Ok(sha256(bytes))
}

/// Returns the bytes if they still match their hash.
///
/// # Errors
///
/// [`StoreError::Damaged`] when they do not.
pub fn verify_content(name: &str, bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    let found = sha256(&bytes);
    if found == name { Ok(bytes) } else { Err(StoreError::Damaged { sha256: name.to_owned(), found }) }
}
