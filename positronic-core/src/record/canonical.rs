//! Canonical JSON, the changes between two documents, and the hashes of contents.
//!
//! A document's keys are sorted after every encode and every patch, whatever features other crates switch on in
//! `serde_json`, so that the live document and the replayed one are the same bytes.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Encodes `value` as a canonical JSON document.
///
/// # Errors
///
/// What the type's own `Serialize` answers, for instance for a map whose keys are no strings.
pub fn canonical<T: Serialize + ?Sized>(value: &T) -> Result<Value, serde_json::Error> {
    let mut document = serde_json::to_value(value)?;
    document.sort_all_objects();
    Ok(document)
}

/// How many lists and objects may stand within one another in a value that a log holds. Readers of JSON stop at 128, and a
/// line of the log has some of its own around the value.
const DEEPEST: usize = 64;

/// Says whether a log can hold a value: one that nests deeper could be written, and never read back.
///
/// # Errors
///
/// A clause that says so, where it cannot.
pub fn check_depth(value: &Value) -> Result<(), String> {
    fn fits(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => left > 0 && items.iter().all(|item| fits(item, left - 1)),
            Value::Object(fields) => left > 0 && fields.values().all(|field| fits(field, left - 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }
    if fits(value, DEEPEST) {
        return Ok(());
    }
    Err(format!("it nests deeper than {DEEPEST} levels, and no log holds that"))
}

/// Reads an optional document: `null` is a document, and only a field that is left out is none.
pub(super) fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The step from one document to the next: an RFC 6902 patch, or the whole document where that is smaller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The operations that turn the document before into the one after.
    Patch(json_patch::Patch),
    /// The whole document after.
    State(Value),
}

/// Says why a change could not be applied: the log and the document it is applied to do not belong together.
#[derive(Debug, thiserror::Error)]
#[error("a recorded state patch does not fit the state before it: {0}")]
pub struct ChangeError(#[from] json_patch::PatchError);

impl Change {
    /// Finds the smaller way from `before` to `after`, `None` if they are equal. Both must be canonical.
    #[must_use]
    pub fn between(before: &Value, after: &Value) -> Option<Self> {
        if before == after {
            return None;
        }
        let patch = json_patch::diff(before, after);
        if encoded_len(&patch) < encoded_len(after) {
            Some(Self::Patch(patch))
        } else {
            Some(Self::State(after.clone()))
        }
    }

    /// Turns the document before into the one after.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] when an operation names a place that the document does not have; the document is then
    /// unchanged.
    pub fn apply(&self, document: &mut Value) -> Result<(), ChangeError> {
        match self {
            Self::Patch(patch) => {
                json_patch::patch(document, patch)?;
                document.sort_all_objects();
            }
            Self::State(state) => document.clone_from(state),
        }
        Ok(())
    }
}

fn encoded_len<T: Serialize>(value: &T) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

/// Names a content by the first 128 bits of its SHA-256, as 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentHash(std::sync::Arc<str>);

impl ContentHash {
    /// Returns the hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn of(bytes: &[u8]) -> Self {
        use fmt::Write as _;
        let mut text = String::with_capacity(32);
        for byte in Sha256::digest(bytes).iter().take(16) {
            _ = write!(text, "{byte:02x}");
        }
        Self(text.into())
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

/// Names bytes by their whole SHA-256, as 64 hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    use fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        _ = write!(text, "{byte:02x}");
    }
    text
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_small_step_in_a_large_document_is_a_patch() {
        let before = json!({"notes": ["a long note that is not repeated"], "count": 1});
        let after = json!({"notes": ["a long note that is not repeated"], "count": 2});

        let change = Change::between(&before, &after).unwrap();

        assert_eq!(
            serde_json::to_value(&change).unwrap(),
            json!({"patch": [{"op": "replace", "path": "/count", "value": 2}]})
        );
        let mut document = before;
        change.apply(&mut document).unwrap();
        assert_eq!(document, after);
    }

    #[test]
    fn a_small_document_is_recorded_whole() {
        let change = Change::between(&Value::Null, &json!({"n": 1})).unwrap();

        assert_eq!(change, Change::State(json!({"n": 1})));
        assert_eq!(Change::between(&json!(1), &json!(1)), None);
    }
}
