//! Lenient schemas, for endpoints without enforcement and schemas that cannot be enforced: the author's schema in a form that
//! every provider accepts.

use positronic_core::record::{OrderedJson, OrderedObject};

use super::SchemaRole;
use super::merge::{has_properties, joined, resolved};
use super::words::Words;

/// Keywords whose values are not schemas.
const DATA: [&str; 4] = ["enum", "const", "default", "examples"];

/// Keywords whose values map names to schemas; the names are not keywords.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Adds `properties` to every object schema. The root of arguments becomes an object schema without `anyOf` and the like,
/// which OpenAI rejects there: their fields become optional fields of that object, and the description states the constraints.
#[must_use]
pub fn lenient_schema(schema: &OrderedJson, role: SchemaRole) -> OrderedJson {
    let mut sent = match role {
        SchemaRole::Arguments => OrderedJson::Object(object_at_the_top(schema)),
        SchemaRole::Answer => schema.clone(),
    };
    if let OrderedJson::Object(fields) = &mut sent {
        fields.shift_remove("$schema");
    }
    add_properties(&mut sent);
    sent
}

/// Adds empty `properties` to object schemas that have none.
fn add_properties(schema: &mut OrderedJson) {
    match schema {
        OrderedJson::Object(fields) => {
            if describes_object(fields) && !fields.contains_key("properties") {
                let behind = fields.get_index_of("type").map_or(0, |place| place + 1);
                fields.shift_insert(behind, "properties".to_owned(), OrderedJson::Object(OrderedObject::new()));
            }
            for (keyword, value) in fields {
                match value {
                    OrderedJson::Object(named) if NAMED.contains(&keyword.as_str()) => {
                        named.values_mut().for_each(add_properties);
                    }
                    _ if DATA.contains(&keyword.as_str()) => {}
                    value => add_properties(value),
                }
            }
        }
        OrderedJson::List(items) => items.iter_mut().for_each(add_properties),
        OrderedJson::Leaf(_) => {}
    }
}

fn describes_object(schema: &OrderedObject) -> bool {
    match schema.get("type") {
        Some(OrderedJson::Leaf(kind)) => kind == "object",
        Some(OrderedJson::List(kinds)) => kinds.iter().any(|kind| kind.as_str() == Some("object")),
        Some(OrderedJson::Object(_)) | None => false,
    }
}

fn object_at_the_top(schema: &OrderedJson) -> OrderedObject {
    let root = schema;
    let own = schema.as_object().cloned().unwrap_or_default();
    let mut out = match resolved(root, schema).and_then(OrderedJson::as_object).filter(|_| own.contains_key("$ref")) {
        Some(target) => {
            let mut out = target.clone();
            for (key, value) in own.into_iter().filter(|(key, _)| key != "$ref") {
                out.entry(key).or_insert(value);
            }
            out
        }
        None => own,
    };
    let mut words = Words::default();
    for keyword in ["allOf", "anyOf", "oneOf", "enum", "const", "not", "if", "then", "else"] {
        let Some(value) = out.shift_remove(keyword) else { continue };
        if let Some(branches) = value.as_list().filter(|_| keyword.ends_with("Of")) {
            let branches =
                branches.iter().filter_map(|branch| resolved(root, branch)).filter(|one| has_properties(one));
            for branch in branches.filter_map(OrderedJson::as_object) {
                add_fields(&mut out, branch, keyword == "allOf");
            }
        }
        match keyword {
            "anyOf" => words.say(format!("The arguments have to fit at least one of these JSON schemas: {value}.")),
            "oneOf" => words.say(format!("The arguments have to fit exactly one of these JSON schemas: {value}.")),
            other => words.add(other, &value),
        }
    }
    out.shift_remove("type");
    out.shift_insert(0, "type".to_owned(), "object".into());
    words.describe(&mut out);
    out
}

/// Adds the fields of a branch; they are optional unless every branch applies.
fn add_fields(out: &mut OrderedObject, branch: &OrderedObject, required: bool) {
    let fields = |key: &str, from: &OrderedObject| {
        from.get(key).cloned().map(|value| (key.to_owned(), value)).into_iter().collect::<OrderedObject>()
    };
    let mut own = fields("properties", out);
    own.extend(fields("required", out));
    let mut more = fields("properties", branch);
    if required {
        more.extend(fields("required", branch));
    }
    // Fields of the same name may differ between branches; the description states how.
    if let (Some(OrderedJson::Object(known)), Some(OrderedJson::Object(new))) =
        (own.get_mut("properties"), more.get("properties"))
    {
        for (name, schema) in new {
            if known.get(name).is_some_and(|other| other != schema) {
                known.insert(name.clone(), OrderedJson::Object(OrderedObject::new()));
            }
        }
    }
    out.extend(joined(&own, &more).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "callers write the schema in place")]
    fn sent(schema: serde_json::Value, role: SchemaRole) -> serde_json::Value {
        lenient_schema(&OrderedJson::of_schema(&schema), role).to_value()
    }

    #[test]
    fn every_object_schema_has_properties() {
        assert_eq!(
            sent(json!({"type": "object", "additionalProperties": false}), SchemaRole::Arguments),
            json!({"type": "object", "properties": {}, "additionalProperties": false})
        );
        assert_eq!(
            sent(
                json!({"$defs": {"A": {"type": ["object", "null"]}}, "type": "array", "items": {"type": "object", "default": {"type": "object"}}}),
                SchemaRole::Answer
            ),
            json!({
                "$defs": {"A": {"type": ["object", "null"], "properties": {}}},
                "type": "array",
                "items": {"type": "object", "properties": {}, "default": {"type": "object"}},
            })
        );
    }

    #[test]
    fn property_named_like_a_keyword_is_a_property() {
        let object = json!({"type": "object"});
        let with = json!({"type": "object", "properties": {}});

        assert_eq!(
            sent(
                json!({"type": "object", "properties": {"default": object, "enum": object, "type": object}}),
                SchemaRole::Arguments
            ),
            json!({"type": "object", "properties": {"default": with, "enum": with, "type": with}})
        );
    }

    #[test]
    fn root_of_arguments_is_an_object_described_in_words() {
        let by = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
        let schema = json!({"$schema": "x", "type": "object", "anyOf": [by("id"), {"$ref": "#/$defs/Name"}], "$defs": {"Name": by("name")}});
        let sent = sent(schema, SchemaRole::Arguments);

        assert_eq!(sent["type"], "object");
        assert_eq!(sent["properties"], json!({"id": {"type": "string"}, "name": {"type": "string"}}));
        assert_eq!((sent.get("anyOf"), sent.get("required"), sent.get("$schema")), (None, None, None));
        let description = sent["description"].as_str().unwrap();
        assert!(
            description.starts_with("The arguments have to fit at least one of these JSON schemas: ["),
            "{description}"
        );
    }
}
