//! Removal of `null`s that stand for absent properties.
//!
//! Strict mode requires every property, so an optional one is sent as nullable. A model that answers `null` for it means
//! that it is absent, and the author's schema may reject the `null`.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Removes each `null` of an optional property whose schema rejects it. Returns whether there was one.
pub(super) fn remove_absent(schema: &Value, value: &mut Value) -> bool {
    within(schema, &[schema], value)
}

/// Removes them in a value that `schemas` describe.
fn within(root: &Value, schemas: &[&Value], value: &mut Value) -> bool {
    match value {
        Value::Object(fields) => {
            let views = views(root, schemas, fields);
            let before = fields.len();
            fields.retain(|name, field| !(field.is_null() && is_absent(root, &views, name)));
            let mut removed = fields.len() < before;
            for (name, field) in fields {
                let own: Vec<_> = views
                    .iter()
                    .filter_map(|view| property(view, name).or_else(|| view.get("additionalProperties")))
                    .collect();
                removed |= !own.is_empty() && within(root, &own, field);
            }
            removed
        }
        Value::Array(items) => {
            let none = Map::new();
            let views = views(root, schemas, &none);
            let mut removed = false;
            for (index, item) in items.iter_mut().enumerate() {
                let prefix = |view: &&'_ Map<String, Value>| view.get("prefixItems").is_some();
                let own: Vec<_> = views
                    .iter()
                    .filter_map(|view| {
                        let at = view.get("prefixItems").and_then(|items| items.get(index));
                        at.or_else(|| view.get("items").filter(|_| !prefix(view)))
                    })
                    .collect();
                removed |= !own.is_empty() && within(root, &own, item);
            }
            removed
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Follows references, and lists the union branches that can describe an object with these fields.
fn views<'s>(root: &'s Value, schemas: &[&'s Value], fields: &Map<String, Value>) -> Vec<&'s Map<String, Value>> {
    let mut open: Vec<&Value> = schemas.to_vec();
    let mut seen = HashSet::new();
    let mut views = Vec::new();
    while let Some(schema) = open.pop() {
        if !seen.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        let Value::Object(keywords) = schema else { continue };
        open.extend(target(root, keywords));
        for union in ["anyOf", "oneOf", "allOf"] {
            open.extend(keywords.get(union).and_then(Value::as_array).into_iter().flatten());
        }
        let excluded = fields.iter().any(|(name, value)| {
            let constant = property(keywords, name).and_then(|schema| schema.get("const"));
            constant.is_some_and(|constant| constant != value)
        });
        if !excluded {
            views.push(keywords);
        }
    }
    views
}

fn target<'s>(root: &'s Value, schema: &Map<String, Value>) -> Option<&'s Value> {
    root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
}

fn property<'s>(schema: &'s Map<String, Value>, name: &str) -> Option<&'s Value> {
    schema.get("properties")?.get(name)
}

/// Returns whether a `null` in this property means absence, by every schema with this property.
fn is_absent(root: &Value, views: &[&Map<String, Value>], name: &str) -> bool {
    let mut known = views.iter().filter_map(|view| Some((view, property(view, name)?))).peekable();
    known.peek().is_some()
        && known.all(|(view, schema)| {
            let required = view.get("required").and_then(Value::as_array);
            let required = required.is_some_and(|names| names.iter().any(|required| required == name));
            !required && !takes_null(root, schema, &mut HashSet::new())
        })
}

fn takes_null(root: &Value, schema: &Value, seen: &mut HashSet<*const Value>) -> bool {
    let Value::Object(keywords) = schema else { return schema != &Value::Bool(false) };
    if !seen.insert(std::ptr::from_ref(schema)) {
        // Circular references accept whatever the other schemas do.
        return true;
    }
    let of_type = keywords.get("type").is_none_or(|kind| match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "null"),
        kind => kind == "null",
    });
    let listed = keywords.get("enum").and_then(Value::as_array).is_none_or(|values| values.contains(&Value::Null));
    let constant = keywords.get("const").is_none_or(Value::is_null);
    let branches =
        |union: &str| keywords.get(union).and_then(Value::as_array).map(|all| all.iter().collect::<Vec<_>>());
    let unions = [branches("anyOf"), branches("oneOf")];
    let all = branches("allOf").unwrap_or_default();
    of_type
        && listed
        && constant
        && target(root, keywords).is_none_or(|target| takes_null(root, target, seen))
        && unions.iter().flatten().all(|some| some.iter().any(|branch| takes_null(root, branch, seen)))
        && all.iter().all(|branch| takes_null(root, branch, seen))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn without(schema: &Value, mut value: Value) -> Value {
        remove_absent(schema, &mut value);
        value
    }

    #[test]
    fn null_of_an_optional_non_null_property_is_removed() {
        let schema = json!({
            "type": "object",
            "properties": {
                "must": {"type": "string"}, "may": {"type": "string"}, "nothing": {"type": ["string", "null"]}, "any": {},
                "named": {"$ref": "#/$defs/Name"},
            },
            "required": ["must"],
            "$defs": {"Name": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        });
        let nulls = json!({"must": null, "may": null, "nothing": null, "any": null, "named": null, "other": null});

        assert_eq!(without(&schema, nulls), json!({"must": null, "nothing": null, "any": null, "other": null}));
    }

    #[test]
    fn nulls_are_removed_in_lists_definitions_and_the_matching_branch() {
        let branch = |kind: &str, required: Value| {
            json!({
                "type": "object",
                "properties": {"kind": {"const": kind}, "x": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}},
                "required": required,
            })
        };
        let schema = json!({
            "type": "object",
            "properties": {"nodes": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "$defs": {"Node": {"oneOf": [branch("a", json!(["kind"])), branch("b", json!(["kind", "x"]))]}},
        });
        let nodes = json!({"nodes": [
            {"kind": "a", "x": null, "next": {"kind": "a", "x": 1, "next": null}},
            {"kind": "b", "x": null, "next": null},
        ]});

        assert_eq!(
            without(&schema, nodes),
            json!({"nodes": [{"kind": "a", "next": {"kind": "a", "x": 1}}, {"kind": "b", "x": null}]})
        );
    }

    #[test]
    fn circular_references_terminate() {
        let schema = json!({"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}, "properties": {"p": {"$ref": "#"}}});

        assert_eq!(without(&schema, json!({"p": null})), json!({"p": null}));
    }
}
