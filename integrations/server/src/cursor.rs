//! Pages of lists and their cursors: opaque texts that continue a list after its last item.
//!
//! A cursor has the place of that item and a hash of the filter, so that it cannot continue another list.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use positronic_core::record::hash_json;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::problem::{Problem, ProblemType};

/// Which page of a list to read.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PageQuery {
    /// Continues a list.
    pub(crate) cursor: Option<String>,
    /// The number of items: 1 to 500, 50 by default.
    pub(crate) limit: Option<usize>,
}

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    /// The cursor of the next page; `null` at the end of the list.
    pub(crate) next: Option<String>,
}

impl<T> List<T> {
    /// Creates a list that fits on one page.
    pub(crate) const fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

#[derive(Serialize, Deserialize)]
struct CursorContent<K> {
    key: K,
    filter: String,
}

/// Encodes the cursor after the item with this place, for the list with this filter.
pub(crate) fn encode<K: Serialize>(key: &K, filter: &impl Serialize) -> String {
    let content = CursorContent { key, filter: hashed(filter) };
    // Places can be encoded.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&content).unwrap_or_default())
}

/// Decodes a cursor of the list with this filter.
pub(crate) fn decode<K: DeserializeOwned>(cursor: &str, filter: &impl Serialize) -> Result<K, Problem> {
    let bad = |detail: &str| Problem::new(ProblemType::BadCursor).detail(detail);
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| bad("the cursor cannot be decoded"))?;
    let content: CursorContent<K> = serde_json::from_slice(&bytes).map_err(|_| bad("the cursor cannot be decoded"))?;
    if content.filter == hashed(filter) {
        Ok(content.key)
    } else {
        Err(bad("the cursor belongs to a list with another filter"))
    }
}

fn hashed(filter: &impl Serialize) -> String {
    let filter = serde_json::to_value(filter).unwrap_or(Value::Null);
    hash_json(&filter).to_string().chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_continues_only_the_list_that_returned_it() {
        let cursor = encode(&("2026", 7), &("runs", "failed"));

        assert_eq!(decode::<(String, u32)>(&cursor, &("runs", "failed")).unwrap(), ("2026".to_owned(), 7));
        let other = decode::<(String, u32)>(&cursor, &("runs", "completed")).unwrap_err();
        assert_eq!(other.kind(), ProblemType::BadCursor);
        assert!(cursor.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter)));
        for broken in ["", "%", "e30", &cursor[1..]] {
            assert_eq!(decode::<(String, u32)>(broken, &"").unwrap_err().kind(), ProblemType::BadCursor, "{broken}");
        }
    }
}
