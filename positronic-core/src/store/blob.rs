//! The bytes of files, beside the logs: each content once, named by its SHA-256.
//!
//! The bytes are kept first, and an event refers to them after that; so there is a moment in which nobody does. What
//! nobody refers to is therefore left alone for a while, and swept away after it. The append that records a file also
//! records the reference, in its transaction, and so does that of a fork or of a run that is taken in.

use std::time::Duration;

use super::StoreError;
use crate::record::{LARGEST_BLOB, Timestamp, sha256};

/// How long bytes are left alone to which no run refers: an hour. Between keeping and referring lie milliseconds, but a
/// store may have been busy, and an import is slow.
pub const BLOB_GRACE: Duration = Duration::from_hours(1);

/// Returns the moment before which bytes must have been kept last to be swept away.
#[must_use]
pub fn swept_before(now: Timestamp) -> Timestamp {
    Timestamp(now.0.saturating_sub(i64::try_from(BLOB_GRACE.as_micros()).unwrap_or(i64::MAX)))
}

/// Names bytes that are to be kept.
pub(super) fn name(bytes: &[u8]) -> Result<String, StoreError> {
    if bytes.len() > LARGEST_BLOB {
        return Err(StoreError::TooLarge { size: bytes.len() as u64, most: LARGEST_BLOB as u64 });
    }
    Ok(sha256(bytes))
}

/// Returns bytes that are still those that were kept.
pub(super) fn sound(name: &str, bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    let found = sha256(&bytes);
    if found == name { Ok(bytes) } else { Err(StoreError::Damaged { sha256: name.to_owned(), found }) }
}
