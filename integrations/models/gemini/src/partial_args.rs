//! Arguments of a call that stream value by value: `{"jsonPath": "$.trip.days[0]", "stringValue": "Mon", "willContinue": true}`.

use serde_json::{Map, Value};

/// The largest index of a list element, far above what models write.
const LARGEST_INDEX: usize = 4096;

/// Sets the value at a path, or appends to the string there, and returns whether it did: a path that cannot be read changes nothing.
pub(crate) fn set(arguments: &mut Map<String, Value>, piece: &Value) -> bool {
    let Some(path) = piece.get("jsonPath").and_then(Value::as_str).and_then(steps) else { return false };
    let value = if let Some(text) = piece.get("stringValue") {
        text.clone()
    } else if let Some(value) = piece.get("numberValue").or_else(|| piece.get("boolValue")) {
        value.clone()
    } else if piece.get("nullValue").is_some() {
        Value::Null
    } else {
        // The value follows, as a path of its own or in the next piece.
        return true;
    };
    let mut target = Value::Object(std::mem::take(arguments));
    let place = path.iter().try_fold(&mut target, |place, step| enter(place, step));
    let is_set = place.is_some();
    match (place, value) {
        (Some(Value::String(known)), Value::String(more)) => known.push_str(&more),
        (Some(place), value) => *place = value,
        (None, _) => {}
    }
    if let Value::Object(changed) = target {
        *arguments = changed;
    }
    is_set
}

/// A step of a path.
#[derive(Debug, PartialEq, Eq)]
enum PathStep {
    Field(String),
    Index(usize),
}

/// Reads a path such as `$.a.b[0]` or `$['a b'][1]`.
fn steps(path: &str) -> Option<Vec<PathStep>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let step;
        (step, rest) = if let Some(quoted) = rest.strip_prefix("['") {
            let (name, rest) = quoted.split_once("']")?;
            (PathStep::Field(name.to_owned()), rest)
        } else if let Some(index) = rest.strip_prefix('[') {
            let (index, rest) = index.split_once(']')?;
            (PathStep::Index(index.parse().ok().filter(|index| *index <= LARGEST_INDEX)?), rest)
        } else {
            let name = rest.strip_prefix('.')?;
            let (name, rest) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
            (PathStep::Field(name.to_owned()), rest)
        };
        steps.push(step);
    }
    (!steps.is_empty()).then_some(steps)
}

/// Returns the place of a step, which is made if it does not exist; `None` if there is a value of another kind.
fn enter<'a>(place: &'a mut Value, step: &PathStep) -> Option<&'a mut Value> {
    match step {
        PathStep::Field(name) => {
            if place.is_null() {
                *place = Value::Object(Map::new());
            }
            Some(place.as_object_mut()?.entry(name.clone()).or_insert(Value::Null))
        }
        PathStep::Index(index) => {
            if place.is_null() {
                *place = Value::Array(Vec::new());
            }
            let list = place.as_array_mut()?;
            if list.len() <= *index {
                list.resize(index + 1, Value::Null);
            }
            list.get_mut(*index)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_set_at_their_paths() {
        let mut arguments = Map::new();
        for (piece, is_set) in [
            (json!({ "jsonPath": "$.city", "stringValue": "Os" }), true),
            (json!({ "jsonPath": "$.city", "stringValue": "lo" }), true),
            (json!({ "jsonPath": "$.days[1].hour", "numberValue": 9 }), true),
            (json!({ "jsonPath": "$['is far']", "boolValue": true }), true),
            (json!({ "jsonPath": "$.none", "nullValue": null }), true),
            (json!({ "jsonPath": "$.city.name", "stringValue": "no object" }), false),
            (json!({ "jsonPath": "$.days[99999]", "stringValue": "too far" }), false),
            (json!({ "jsonPath": "city", "stringValue": "no path" }), false),
        ] {
            assert_eq!(set(&mut arguments, &piece), is_set, "{piece}");
        }

        assert_eq!(
            Value::Object(arguments),
            json!({ "city": "Oslo", "days": [null, { "hour": 9 }], "is far": true, "none": null })
        );
    }
}
