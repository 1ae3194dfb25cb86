//! Changes of JSON documents, such as a state, as patches.
//!
//! Every change keeps the keys sorted, like [`encode_document`](super::document::encode_document).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::{encoded_len, nests_within};

/// The change from one document to the next: an RFC 6902 patch, or the complete document if that is smaller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The operations that turn the document before into the one after.
    Patch(json_patch::Patch),
    /// The complete new document.
    State(Value),
}

/// The reason why a change could not be applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The change belongs to another document.
    #[error("a recorded state patch does not match the state before it: {0}")]
    Misfit(#[from] json_patch::PatchError),
    /// The new document would nest too deep.
    #[error("a recorded state patch creates a state that nests deeper than {READABLE} levels")]
    TooDeep,
}

/// The maximum depth of a document read from JSON.
const READABLE: usize = 128;

/// Returns whether the values that a patch inserts stay within the readable depth.
fn stays_readable(patch: &json_patch::Patch) -> bool {
    use json_patch::PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
    let fits = |path: &json_patch::jsonptr::Pointer, value: &Value| {
        READABLE.checked_sub(path.count()).is_some_and(|levels| nests_within(value, levels))
    };
    patch.0.iter().all(|operation| match operation {
        Add(operation) => fits(&operation.path, &operation.value),
        Replace(operation) => fits(&operation.path, &operation.value),
        Remove(_) | Test(_) | Move(_) | Copy(_) => true,
    })
}

/// Returns whether a patch has moves or copies, which [`Change::between`] does not create.
fn moves(patch: &json_patch::Patch) -> bool {
    use json_patch::PatchOperation::{Copy, Move};
    patch.0.iter().any(|operation| matches!(operation, Move(_) | Copy(_)))
}

impl Change {
    /// Returns the smaller change from `before` to `after`, or `None` if they are equal. Both must be canonical.
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

    /// Applies the change to a document.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] when an operation names a location that does not exist, or would nest the document too deep;
    /// the document is then unchanged.
    pub fn apply(&self, document: &mut Value) -> Result<(), ChangeError> {
        match self {
            Self::Patch(patch) if !stays_readable(patch) => return Err(ChangeError::TooDeep),
            Self::Patch(patch) => {
                let before = moves(patch).then(|| document.clone());
                json_patch::patch(document, patch)?;
                if let Some(before) = before
                    && !nests_within(document, READABLE)
                {
                    *document = before;
                    return Err(ChangeError::TooDeep);
                }
                document.sort_all_objects();
            }
            Self::State(state) => document.clone_from(state),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_change_of_a_large_document_is_a_patch() {
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
    fn patch_beyond_the_readable_depth_is_rejected() {
        let nested = |levels| (1..levels).fold(json!([]), |inner, _| Value::Array(vec![inner]));
        let change = |operation: &Value| -> Change { serde_json::from_value(json!({ "patch": [operation] })).unwrap() };
        let place = "/0".repeat(99);
        let before = nested(100);

        for (levels, fits) in [(28, true), (29, false), (100, false)] {
            let mut document = before.clone();
            let added = change(&json!({"op": "add", "path": format!("{place}/0"), "value": nested(levels)}));
            match added.apply(&mut document) {
                Ok(()) => assert!(fits && document == nested(100 + levels), "{levels}"),
                Err(error) => assert!(!fits && matches!(error, ChangeError::TooDeep) && document == before, "{levels}"),
            }
        }
        let mut document = before.clone();
        let copied = change(&json!({"op": "copy", "from": "/0", "path": format!("{place}/0")}));
        assert!(matches!(copied.apply(&mut document), Err(ChangeError::TooDeep)));
        assert_eq!(document, before);
    }

    #[test]
    fn small_document_is_recorded_completely() {
        let change = Change::between(&Value::Null, &json!({"n": 1})).unwrap();

        assert_eq!(change, Change::State(json!({"n": 1})));
        assert_eq!(Change::between(&json!(1), &json!(1)), None);
    }
}
