//! Hashes of contents.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The first 128 bits of a content's SHA-256, as 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentHash(Arc<str>);

impl ContentHash {
    /// Returns the hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn of(bytes: &[u8]) -> Self {
        Self(format!("{:.32x}", Sha256::digest(bytes)).into())
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Returns the full SHA-256 of bytes, as 64 hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// Hashes a text.
#[must_use]
pub fn hash_text(text: &str) -> ContentHash {
    ContentHash::of(text.as_bytes())
}

/// Hashes a JSON document in its canonical form.
#[must_use]
pub fn hash_json(document: &Value) -> ContentHash {
    let mut document = document.clone();
    document.sort_all_objects();
    ContentHash::of(document.to_string().as_bytes())
}
