//! State updates of detached calls, as patches that detect a concurrent change of the same place.

use json_patch::jsonptr::PointerBuf;
use json_patch::{Patch, PatchOperation, TestOperation, diff, patch};
use serde_json::Value;

use crate::error::{Error, Result};

/// Returns the patch from `before` to `after`. Operations that depend on the value at a place test it first. An element
/// that is appended to a list is appended to the list as it is then.
pub(super) fn between(before: &Value, after: &Value) -> Patch {
    let mut current = before.clone();
    let mut operations = Vec::new();
    for mut operation in diff(before, after).0 {
        let tested = match &mut operation {
            PatchOperation::Add(add) => {
                let list = parent(&add.path).and_then(|(at, index)| Some((current.pointer(at.as_str())?, at, index)));
                match list {
                    Some((Value::Array(items), at, index)) if index == items.len().to_string() => {
                        add.path = at.with_trailing_token("-");
                        None
                    }
                    Some((list @ Value::Array(_), at, _)) => Some((at, list.clone())),
                    _ => None,
                }
            }
            PatchOperation::Remove(_) | PatchOperation::Replace(_) => {
                let path = operation.path().to_buf();
                current.pointer(path.as_str()).cloned().map(|value| (path, value))
            }
            PatchOperation::Move(_) | PatchOperation::Copy(_) | PatchOperation::Test(_) => None,
        };
        operations.extend(tested.map(|(path, value)| PatchOperation::Test(TestOperation { path, value })));
        // It is an operation of the difference between the two.
        _ = patch(&mut current, std::slice::from_ref(&operation));
        operations.push(operation);
    }
    Patch(operations)
}

/// Returns a state after a change.
pub(super) fn apply(state: &Value, change: &Patch) -> Result<Value> {
    let mut next = state.clone();
    for operation in &change.0 {
        let taken = match operation {
            PatchOperation::Add(add) => parent(&add.path).is_some_and(
                |(at, key)| matches!(next.pointer(at.as_str()), Some(Value::Object(map)) if map.contains_key(&key)),
            ),
            _ => false,
        };
        if taken || patch(&mut next, std::slice::from_ref(operation)).is_err() {
            return Err(Error::new(format!(
                "the tool did its work, but its update of the state conflicts with that of another call at `{}`; \
                 declare the tool `sequential` or let it run in the run's worker",
                operation.path()
            )));
        }
    }
    next.sort_all_objects();
    Ok(next)
}

/// Splits a pointer into that of the parent and the decoded last token.
fn parent(path: &PointerBuf) -> Option<(PointerBuf, String)> {
    let (parent, last) = path.split_back()?;
    Some((parent.to_buf(), last.decoded().into_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{apply, between};

    fn merged(
        before: &serde_json::Value,
        own: &serde_json::Value,
        other: &serde_json::Value,
    ) -> Option<serde_json::Value> {
        apply(other, &between(before, own)).ok()
    }

    #[test]
    fn a_change_on_the_same_state_gives_the_next_state() {
        let states = [json!({"a": [1, 2, 3], "b": {"c": 1}}), json!({"a": [3], "b": {"d": null}}), json!([]), json!(7)];
        for before in &states {
            for after in &states {
                assert_eq!(merged(before, after, before).as_ref(), Some(after));
            }
        }
    }

    #[test]
    fn both_elements_of_two_appending_calls_are_kept_in_order() {
        let next = merged(&json!({"done": ["a"]}), &json!({"done": ["a", "c"]}), &json!({"done": ["a", "b"]}));
        assert_eq!(next, Some(json!({"done": ["a", "b", "c"]})));
    }

    #[test]
    fn changes_of_different_places_are_both_kept() {
        let next = merged(&json!({"a": 1, "b": 1}), &json!({"a": 2, "b": 1, "c": 1}), &json!({"a": 1, "b": 2}));
        assert_eq!(next, Some(json!({"a": 2, "b": 2, "c": 1})));
    }

    #[test]
    fn two_changes_of_one_place_conflict() {
        assert_eq!(merged(&json!({"n": 0}), &json!({"n": 1}), &json!({"n": 1})), None, "a count would lose one");
        assert_eq!(merged(&json!({}), &json!({"key": 1}), &json!({"key": 2})), None);
        assert_eq!(merged(&json!({"list": [1, 2]}), &json!({"list": [2]}), &json!({"list": [0, 1, 2]})), None);
    }
}
