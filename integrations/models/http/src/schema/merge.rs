//! Merging of schemas that describe one object together: those of `allOf`, and a union next to fields of its own.

use positronic_core::record::{OrderedJson, OrderedObject};

/// The allowed keywords of an object schema that is merged with another.
const JOINED: [&str; 9] = [
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "propertyOrdering",
    "default",
    "$comment",
];

/// Follows references, as long as a schema is only a reference with annotations. Returns `None` for circular references.
pub(super) fn resolved<'a>(root: &'a OrderedJson, schema: &'a OrderedJson) -> Option<&'a OrderedJson> {
    let mut at = schema;
    for _ in 0..32 {
        match at.get("$ref").and_then(OrderedJson::as_str) {
            Some(target) => at = root.pointer(target.strip_prefix('#')?)?,
            None => return Some(at),
        }
    }
    None
}

/// Returns whether a schema describes an object with listed fields.
pub(super) fn has_properties(schema: &OrderedJson) -> bool {
    schema.get("properties").is_some_and(|properties| properties.as_object().is_some())
}

/// Merges two object schemas; the required fields of both are required. Returns `None` if one has other keywords.
pub(super) fn joined(one: &OrderedObject, other: &OrderedObject) -> Option<OrderedObject> {
    if one.keys().chain(other.keys()).any(|key| !JOINED.contains(&key.as_str())) {
        return None;
    }
    let mut out = one.clone();
    for (key, value) in other {
        match (key.as_str(), out.get_mut(key), value) {
            ("properties", Some(OrderedJson::Object(known)), OrderedJson::Object(more)) => {
                for (name, schema) in more {
                    known.entry(name.clone()).or_insert_with(|| schema.clone());
                }
            }
            ("required", Some(OrderedJson::List(known)), OrderedJson::List(more)) => {
                let new: Vec<_> = more.iter().filter(|name| !known.contains(name)).cloned().collect();
                known.extend(new);
            }
            (_, Some(_), _) => {}
            (_, None, value) => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    Some(out)
}
