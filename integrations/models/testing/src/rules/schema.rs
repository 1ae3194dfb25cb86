//! The published rules of the providers for schemas.
//!
//! Sources, as of 2026-11: OpenAI's guide "Structured Outputs", section "Supported schemas"; Anthropic's guide "Structured outputs",
//! sections "JSON Schema limitations" and "Schema complexity limits"; Google's reference of `responseJsonSchema`.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::require;

const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Calls a function with each schema within a schema, itself included.
pub fn each_schema<'v>(schema: &'v Value, look: &mut impl FnMut(&'v Map<String, Value>)) {
    let Value::Object(fields) = schema else { return };
    look(fields);
    for (keyword, value) in fields {
        match keyword.as_str() {
            "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                value.as_object().into_iter().flatten().for_each(|(_, schema)| each_schema(schema, look));
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                value.as_array().into_iter().flatten().for_each(|schema| each_schema(schema, look));
            }
            "items" | "not" | "additionalProperties" | "contains" | "if" | "then" | "else" => each_schema(value, look),
            _ => {}
        }
    }
}

/// Lists the rules of OpenAI's strict mode that a schema breaks.
#[must_use]
pub fn openai_strict(root: &Value) -> Vec<String> {
    const KEYWORDS: [&str; 21] = [
        "type",
        "description",
        "title",
        "enum",
        "const",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "$ref",
        "$defs",
        "pattern",
        "format",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
    ];
    let mut wrong = Vec::new();
    each_schema(root, &mut |schema| {
        let is_root = root.as_object().is_some_and(|root| std::ptr::eq(root, schema));
        if schema.contains_key("$ref") && schema.len() > 1 && !is_root {
            wrong.push(format!("something stands beside a reference: {schema:?}"));
        }
        let unknown: Vec<_> = schema.keys().filter(|key| !KEYWORDS.contains(&key.as_str())).collect();
        if !unknown.is_empty() {
            wrong.push(format!("unknown keywords {unknown:?}"));
        }
        if schema.get("format").is_some_and(|format| !FORMATS.iter().any(|known| format == known)) {
            wrong.push(format!("the format {}", schema["format"]));
        }
        if !["type", "anyOf", "$ref", "enum"].iter().any(|key| schema.contains_key(*key)) {
            wrong.push(format!("a schema without a type: {schema:?}"));
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let names: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
            let required: BTreeSet<&str> = required(schema).collect();
            if names != required {
                wrong.push(format!("its properties are {names:?} and it requires {required:?}"));
            }
            if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
                wrong.push("an open object".to_owned());
            }
        }
        let is_array = schema.get("type").is_some_and(|kind| kind == "array");
        if is_array && !schema.get("items").is_some_and(Value::is_object) {
            wrong.push("an array without `items`".to_owned());
        }
    });
    wrong
}

fn required(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Checks the names of all fields of a schema for Anthropic.
pub(super) fn anthropic_names(schema: &Value) -> Result<(), String> {
    let mut wrong = Ok(());
    each_schema(schema, &mut |schema| {
        for name in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            let valid = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-');
            if !(1..=64).contains(&name.len()) || !name.chars().all(valid) {
                wrong =
                    Err(format!("properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$': {name}"));
            }
        }
    });
    wrong
}

/// The parameters that Anthropic limits for all strict schemas of a request.
#[derive(Debug, Default)]
pub(super) struct Complexity {
    optional: usize,
    unions: usize,
}

impl Complexity {
    /// Checks a schema that Anthropic enforces, and counts its parameters.
    pub(super) fn add(&mut self, root: &Value) -> Result<(), String> {
        const KEYWORDS: [&str; 17] = [
            "type",
            "description",
            "title",
            "enum",
            "const",
            "default",
            "properties",
            "required",
            "additionalProperties",
            "items",
            "minItems",
            "format",
            "anyOf",
            "allOf",
            "$ref",
            "$defs",
            "definitions",
        ];
        let mut wrong = Ok(());
        each_schema(root, &mut |schema| {
            let mut check = |holds: bool, rule: String| {
                if !holds && wrong.is_ok() {
                    wrong = Err(rule);
                }
            };
            let kind = &schema.get("type").cloned().unwrap_or_default();
            let unknown = schema.keys().find(|key| !KEYWORDS.contains(&key.as_str()));
            check(unknown.is_none(), format!("For {kind} type, property {unknown:?} is not supported"));
            if kind == "object" || schema.contains_key("properties") {
                let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
                check(closed, "For 'object' type, 'additionalProperties' must be explicitly set to false".to_owned());
            }
            let least = schema.get("minItems");
            let is_small = least.is_none_or(|least| *least == 0 || *least == 1);
            check(is_small, "For 'array' type, 'minItems' values other than 0 or 1 are not supported".to_owned());
            let format = schema.get("format").and_then(Value::as_str);
            let is_known = format.is_none_or(|format| FORMATS.contains(&format) || format == "uri");
            check(is_known, format!("For 'string' type, the format {format:?} is not supported"));
            let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
            let is_plain = values.clone().all(|value| !value.is_object() && !value.is_array());
            check(is_plain, "Complex types within enums are not supported".to_owned());
            check(
                !schema.contains_key("$ref") || schema.len() == 1 || schema.contains_key("$defs"),
                "something stands beside a reference".to_owned(),
            );
            let is_listed = |name: &&String| required(schema).any(|one| one == name.as_str());
            let properties = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
            self.optional += properties.filter(|name| !is_listed(name)).count();
            self.unions += usize::from(schema.contains_key("anyOf") || kind.is_array());
        });
        wrong?;
        references(root, root, &mut Vec::new(), false)
    }

    /// Checks the sums.
    pub(super) fn check(&self) -> Result<(), String> {
        require(self.optional <= 24, "Schema is too complex: more than 24 optional parameters")?;
        require(self.unions <= 16, "Schema is too complex: more than 16 parameters with union types")
    }
}

/// Follows the references of a schema, and refuses those that lead nowhere or back to where they come from; `may_return` allows the latter
/// within properties that are not required.
fn references<'v>(
    root: &'v Value,
    schema: &'v Value,
    within: &mut Vec<&'v str>,
    may_return: bool,
) -> Result<(), String> {
    match schema {
        Value::Array(items) => items.iter().try_for_each(|item| references(root, item, within, may_return)),
        Value::Object(fields) => {
            if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                let found = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
                let found = found.ok_or_else(|| format!("reference to undefined schema: {target}"))?;
                if within.contains(&target) {
                    return Err(format!("recursive schemas are not supported: {target}"));
                }
                within.push(target);
                references(root, found, within, may_return)?;
                within.pop();
            }
            for (keyword, value) in fields {
                match (keyword.as_str(), value) {
                    ("$defs" | "definitions" | "enum" | "const" | "default", _) => {}
                    ("properties", Value::Object(properties)) => {
                        for (name, property) in properties {
                            let optional = may_return && !required(fields).any(|one| one == name);
                            if !optional {
                                references(root, property, within, may_return)?;
                            }
                        }
                    }
                    _ => references(root, value, within, may_return)?,
                }
            }
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// Checks a schema for the Gemini API.
pub(super) fn gemini(root: &Value) -> Result<(), String> {
    const KEYWORDS: [&str; 17] = [
        "$ref",
        "$defs",
        "type",
        "format",
        "title",
        "description",
        "enum",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "anyOf",
        "oneOf",
        "properties",
        "additionalProperties",
    ];
    let mut wrong = Ok(());
    let definitions: HashSet<String> =
        root["$defs"].as_object().into_iter().flat_map(Map::keys).map(|name| format!("#/$defs/{name}")).collect();
    each_schema(root, &mut |schema| {
        let mut check = |holds: bool, rule: String| {
            if !holds && wrong.is_ok() {
                wrong = Err(rule);
            }
        };
        let unknown = schema.keys().find(|key| !KEYWORDS.contains(&key.as_str()) && *key != "required");
        check(unknown.is_none(), format!("the keyword {unknown:?} is not supported"));
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let alone = schema.keys().all(|key| key.starts_with('$'));
            check(alone, "schema can only contain properties starting with '$' when $ref is present".to_owned());
            check(definitions.contains(target), format!("reference to undefined schema: {target}"));
        }
        let is_root = root.as_object().is_some_and(|root| std::ptr::eq(root, schema));
        check(is_root || !schema.contains_key("$defs"), "$defs below the root".to_owned());
        let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        let listed = values.clone().all(|value| value.is_string() || value.is_number());
        check(listed, "enum lists texts and numbers".to_owned());
    });
    wrong?;
    references(root, root, &mut Vec::new(), true)
}
