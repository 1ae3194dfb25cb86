//! Removal of `null`s that stand for absent properties.
//!
//! Strict mode requires every property, so an optional one is sent as nullable. A model that answers `null` for it means
//! that it is absent, and the author's schema may reject the `null`.

use std::collections::HashSet;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

/// Removes each `null` that the schema of its property rejects, except for required properties.
pub(super) fn remove_absent(validator: &Validator, value: &mut Value) {
    let errors = validator.iter_errors(value);
    let nulls: Vec<_> = errors.filter_map(|error| rejected_nulls(&error)).flatten().collect();
    if nulls.is_empty() {
        return;
    }
    for null in &nulls {
        property(value, null).and_then(|(object, name)| object.remove(&name));
    }
    let mut missing = HashSet::new();
    validator.iter_errors(value).for_each(|error| add_missing(&error, &mut missing));
    for null in nulls.iter().filter(|null| missing.contains(*null)) {
        property(value, null).map(|(object, name)| object.insert(name, Value::Null));
    }
}

/// Lists the locations of the `null`s that cause an error; `None` if it has another cause. Of a union, it takes the first branch
/// that the value fits without such `null`s.
fn rejected_nulls(error: &ValidationError<'_>) -> Option<Vec<String>> {
    if error.instance().is_null() {
        return is_of_property(error).then(|| vec![error.instance_path().as_str().to_owned()]);
    }
    let nulls = |branch: &Vec<_>| branch.iter().map(rejected_nulls).collect::<Option<Vec<_>>>();
    branches(error).iter().find_map(nulls).map(|nulls| nulls.concat())
}

/// Returns whether the schema of a property causes an error, instead of the schema of all items or of further properties.
fn is_of_property(error: &ValidationError<'_>) -> bool {
    let name = error.instance_path().as_str().rsplit_once('/').map(|(_, name)| format!("/properties/{name}"));
    let schema = name.and_then(|name| error.evaluation_path().as_str().rsplit_once(&name).map(|(_, schema)| schema));
    schema.is_some_and(|schema| !schema.contains("Properties"))
}

/// Adds the locations of required properties that are absent.
fn add_missing(error: &ValidationError<'_>, missing: &mut HashSet<String>) {
    if let ValidationErrorKind::Required { property: Value::String(name) } = error.kind() {
        missing.insert(error.instance_path().join(name).as_str().to_owned());
    }
    branches(error).iter().flatten().for_each(|error| add_missing(error, missing));
}

/// Lists the errors of each branch of a union that a value does not fit.
fn branches<'e>(error: &'e ValidationError<'_>) -> &'e [Vec<ValidationError<'static>>] {
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => context,
        _ => &[],
    }
}

/// Returns the object at a location's parent, and the name of the property in it.
fn property<'v>(value: &'v mut Value, at: &str) -> Option<(&'v mut Map<String, Value>, String)> {
    let (object, name) = at.rsplit_once('/')?;
    Some((value.pointer_mut(object)?.as_object_mut()?, name.replace("~1", "/").replace("~0", "~")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn without(schema: &Value, mut value: Value) -> Value {
        remove_absent(&jsonschema::validator_for(schema).unwrap(), &mut value);
        value
    }

    #[test]
    fn null_of_an_optional_non_null_property_is_removed() {
        let schema = json!({
            "type": "object",
            "properties": {
                "must": {"type": "string"}, "may": {"type": "string"}, "nothing": {"type": ["string", "null"]}, "any": {},
                "named": {"$ref": "#/$defs/Name"}, "list": {"items": {"type": "string"}}, "a/b~c": {"enum": ["x"]},
                "map": {"additionalProperties": {"type": "string"}},
            },
            "required": ["must"],
            "$defs": {"Name": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        });
        let kept = json!({
            "must": null, "nothing": null, "any": null, "other": null, "list": [null], "map": {"map": null, "x": null},
        });
        let mut nulls = kept.clone();
        for name in ["may", "named", "a/b~c"] {
            nulls[name] = Value::Null;
        }

        assert_eq!(without(&schema, nulls), kept);
    }

    #[test]
    fn nulls_are_removed_in_lists_definitions_and_the_matching_branch() {
        let branch = |kind: &str, required: Value, y: Value| {
            json!({
                "type": "object",
                "properties": {
                    "kind": {"const": kind}, "x": {"type": "integer"}, "y": {"type": y}, "next": {"$ref": "#/$defs/Node"},
                },
                "required": required,
            })
        };
        let branches = [
            branch("b", json!(["kind", "x"]), json!("integer")),
            branch("a", json!(["kind"]), json!(["integer", "null"])),
        ];
        let schema = json!({
            "type": "object",
            "properties": {"nodes": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "$defs": {"Node": {"oneOf": branches}},
        });
        let nodes = json!({"nodes": [
            {"kind": "a", "x": null, "y": null, "next": {"kind": "a", "x": 1, "next": null}},
            {"kind": "b", "x": null, "y": null, "next": null},
        ]});

        assert_eq!(
            without(&schema, nodes),
            json!({"nodes": [{"kind": "a", "y": null, "next": {"kind": "a", "x": 1}}, {"kind": "b", "x": null}]})
        );
    }
}
