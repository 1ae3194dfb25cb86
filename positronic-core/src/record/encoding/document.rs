//! Encoder for JSON documents with limits, which converts an author's values for the log.
//!
//! A document is read as long as its run is stored, so the encoder rejects values that could not be read again: those that
//! nest deeper than JSON parsers allow, are larger than the runner's limit, or cannot be expressed in JSON. It checks
//! while it serialises and stops at the first violation, so that a value of any size or depth costs no more than the limits.

mod encoder;

use std::fmt;

use serde::{Deserialize as _, Deserializer, Serialize};
use serde_json::{Number, Value};

use crate::record::prompt::file::FileRef;
use encoder::Encoder;

/// The maximum nesting of lists and objects in a document. JSON parsers stop at 128, and a line of the log
/// adds some levels around the document.
pub const MAX_DOCUMENT_DEPTH: usize = 64;

/// The default maximum size of a document in bytes: 8 MiB. That is more text than any model reads at once, and logs load
/// quickly; larger data belongs into a file.
pub const MAX_DOCUMENT_BYTES: usize = 8 << 20;

/// The reason why a value cannot be a document of a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// It nests too deep.
    #[error("it nests deeper than {MAX_DOCUMENT_DEPTH} levels, the maximum of the log")]
    TooDeep,
    /// It is too large.
    #[error(
        "it is larger than {max_bytes} bytes; record large data as a file, or raise the limit with \
         `Runner::max_document_bytes`"
    )]
    TooLarge {
        /// The limit.
        max_bytes: usize,
    },
    /// JSON cannot express it.
    #[error("{}{reason}", place(at))]
    NotJson {
        /// The location, as a JSON pointer.
        at: String,
        /// The reason.
        reason: String,
    },
}

fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("at `{at}`: ") }
}

impl DocumentError {
    fn not_json(reason: impl Into<String>) -> Self {
        Self::NotJson { at: String::new(), reason: reason.into() }
    }

    /// Prepends a key to the location.
    fn within(mut self, key: impl fmt::Display) -> Self {
        if let Self::NotJson { at, .. } = &mut self {
            let key = key.to_string().replace('~', "~0").replace('/', "~1");
            at.insert_str(0, &format!("/{key}"));
        }
        self
    }
}

impl serde::ser::Error for DocumentError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::not_json(message.to_string())
    }
}

/// Encodes `value` as a canonical JSON document of at most `max_bytes` bytes: its keys are sorted, whatever features other
/// crates enable in `serde_json`, so that live and replayed documents have the same bytes.
///
/// The size is that of the JSON without escapes and white space.
///
/// # Errors
///
/// [`DocumentError`] when the value nests too deep, is too large, contains a float that is not finite, a number beyond 64 bits,
/// a map with a non-string key or duplicate keys, or when its own `Serialize` fails.
pub(crate) fn encode_document<T: Serialize + ?Sized>(value: &T, max_bytes: usize) -> Result<Value, DocumentError> {
    let mut budget = SizeBudget { left: max_bytes, max: max_bytes };
    value.serialize(Encoder { budget: &mut budget, levels: MAX_DOCUMENT_DEPTH })
}

/// Checks a text outside of a document against the size limit of documents.
pub(crate) const fn check_text(text: &str, max_bytes: usize) -> Result<(), DocumentError> {
    if text.len() > max_bytes { Err(DocumentError::TooLarge { max_bytes }) } else { Ok(()) }
}

/// Checks the texts of a message and the descriptions of its files.
pub(crate) fn check_message(text: &str, files: &[FileRef], max_bytes: usize) -> Result<(), DocumentError> {
    let described =
        |file: &FileRef| [&file.name, &file.media_type, &file.sha256, &file.uri].map(String::len).iter().sum();
    let size = files.iter().map(described).fold(text.len(), usize::saturating_add);
    if size > max_bytes { Err(DocumentError::TooLarge { max_bytes }) } else { Ok(()) }
}

/// Checks existing JSON against the limits of [`encode_document`].
///
/// # Errors
///
/// [`DocumentError::TooDeep`] or [`DocumentError::TooLarge`].
pub(crate) fn check_document(value: &Value, max_bytes: usize) -> Result<(), DocumentError> {
    fn walk(value: &Value, levels: usize, budget: &mut SizeBudget) -> Result<(), DocumentError> {
        match value {
            Value::Null | Value::Bool(_) => budget.spend(4),
            Value::Number(number) => budget.spend(size_of_number(number)),
            Value::String(text) => budget.spend(text.len() + 2),
            Value::Array(items) => {
                let levels = deeper(levels)?;
                budget.spend(2)?;
                items.iter().try_for_each(|item| {
                    budget.spend(1)?;
                    walk(item, levels, budget)
                })
            }
            Value::Object(fields) => {
                let levels = deeper(levels)?;
                budget.spend(2)?;
                fields.iter().try_for_each(|(key, field)| {
                    budget.spend(key.len() + 4)?;
                    walk(field, levels, budget)
                })
            }
        }
    }
    walk(value, MAX_DOCUMENT_DEPTH, &mut SizeBudget { left: max_bytes, max: max_bytes })
}

/// Checks that JSON does not nest deeper than a log allows.
///
/// # Errors
///
/// A message if it does.
pub fn check_depth(value: &Value) -> Result<(), String> {
    check_document(value, usize::MAX).map_err(|error| error.to_string())
}

/// Returns whether a value has at most this many levels.
pub(super) fn nests_within(value: &Value, levels: usize) -> bool {
    let inner = |value| levels.checked_sub(1).is_some_and(|levels| nests_within(value, levels));
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Array(items) => levels > 0 && items.iter().all(inner),
        Value::Object(fields) => levels > 0 && fields.values().all(inner),
    }
}

/// Reads an optional document: `null` is a document, and only an absent field is `None`.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Counts the bytes of a value's JSON without allocating it.
pub(crate) fn encoded_len<T: Serialize>(value: &T) -> usize {
    struct ByteCounter(usize);
    impl std::io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = ByteCounter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

fn deeper(levels: usize) -> Result<usize, DocumentError> {
    levels.checked_sub(1).ok_or(DocumentError::TooDeep)
}

fn size_of_number(number: &Number) -> usize {
    match (number.as_u64(), number.as_i64()) {
        (Some(number), _) => digits(number),
        (None, Some(number)) => digits(number.unsigned_abs()) + 1,
        (None, None) => FLOAT,
    }
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// The assumed size of a float, whose exact length is only known after writing.
const FLOAT: usize = 8;

struct SizeBudget {
    left: usize,
    max: usize,
}

impl SizeBudget {
    fn spend(&mut self, bytes: usize) -> Result<(), DocumentError> {
        self.left = self.left.checked_sub(bytes).ok_or(DocumentError::TooLarge { max_bytes: self.max })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
