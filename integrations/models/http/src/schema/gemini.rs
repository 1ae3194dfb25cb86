//! Schemas for the Gemini API: `responseJsonSchema` and `parametersJsonSchema`.
//!
//! The rules (Google's reference of `GenerationConfig.responseJsonSchema`, as of November 2026): the keywords in [`KEPT`] are supported;
//! `enum` lists texts and numbers; nothing but keywords that begin with `$` stands beside a reference; a cyclic reference may only be used
//! within properties that are not required. A reference leads to a definition of the root ("reference to undefined schema"), so nested
//! definitions move there. Everything else is described in words, and checked on the answer against the author's schema.

use std::collections::{HashMap, HashSet};

use positronic_core::record::{OrderedJson, OrderedObject};
use serde_json::Value;

use super::SchemaRole;
use super::definitions::{DEFINITIONS, Definitions, targets};
use super::keywords::SILENT;
use super::lenient::lenient_schema;
use super::merge::{joined, resolved};
use super::strict::{MAX_DEPTH, MAX_WORK, spent};
use super::words::Words;

/// The keywords whose values go as they are.
const KEPT: [&str; 10] = [
    "type",
    "format",
    "title",
    "description",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "required",
    "propertyOrdering",
];

/// Converts a schema into the form that the Gemini API accepts.
#[must_use]
pub fn gemini_schema(schema: &OrderedJson, role: SchemaRole) -> OrderedJson {
    let root = lenient_schema(schema, role);
    let OrderedJson::Object(fields) = &root else { return root };
    let mut gemini = GeminiDialect { root: &root, definitions: Definitions::default(), depth: 0, work: MAX_WORK };
    let mut sent = gemini.object(fields);
    let mut definitions = gemini.definitions.reachable(&sent);
    without_required_cycles(&mut definitions);
    if !definitions.is_empty() {
        sent.insert("$defs".to_owned(), OrderedJson::Object(definitions));
    }
    OrderedJson::Object(sent)
}

struct GeminiDialect<'a> {
    root: &'a OrderedJson,
    definitions: Definitions,
    /// How many schemas there are around the one that is read.
    depth: usize,
    /// How many JSON values may still be read: joining the parts of `allOf` copies them, endlessly if a part refers to itself.
    work: usize,
}

impl GeminiDialect<'_> {
    /// Converts a schema; one that accepts anything becomes an empty one.
    fn schema(&mut self, schema: &OrderedJson) -> OrderedJson {
        let work = spent(self.work, schema).filter(|_| self.depth < MAX_DEPTH);
        let (Some(work), OrderedJson::Object(fields)) = (work, schema) else {
            return OrderedJson::Object(OrderedObject::new());
        };
        self.work = work;
        self.depth += 1;
        let sent = self.object(fields);
        self.depth -= 1;
        OrderedJson::Object(sent)
    }

    fn schemas(&mut self, schemas: &[OrderedJson]) -> OrderedJson {
        OrderedJson::List(schemas.iter().map(|schema| self.schema(schema)).collect())
    }

    fn object(&mut self, fields: &OrderedObject) -> OrderedObject {
        if let Some(target) = fields.get("$ref").and_then(OrderedJson::as_str) {
            return self.reference(target, fields);
        }
        if let Some(joined) = fields.get("allOf").and_then(|all| self.all_of(fields, all.as_list()?)) {
            return self.object(&joined);
        }
        let mut out = OrderedObject::with_capacity(fields.len());
        let mut words = Words::default();
        for (keyword, value) in fields {
            let sent = match (keyword.as_str(), value) {
                (kept, _) if KEPT.contains(&kept) => value.clone(),
                ("properties", OrderedJson::Object(properties)) => OrderedJson::Object(
                    properties.iter().map(|(name, schema)| (name.clone(), self.schema(schema))).collect(),
                ),
                ("items", schema) => self.schema(schema),
                ("additionalProperties", OrderedJson::Object(_)) => self.schema(value),
                ("additionalProperties", _) => value.clone(),
                ("anyOf" | "oneOf" | "prefixItems", OrderedJson::List(schemas)) => self.schemas(schemas),
                // Its values follow.
                ("enum" | "const", _) => continue,
                (silent, _) if SILENT.contains(&silent) => continue,
                (other, _) => {
                    words.add(other, value);
                    continue;
                }
            };
            out.insert(keyword.clone(), sent);
        }
        list_values(fields, &mut out, &mut words);
        words.describe(&mut out);
        out
    }

    /// Converts a reference. Its siblings move to a schema around it.
    fn reference(&mut self, target: &str, fields: &OrderedObject) -> OrderedObject {
        let mut words = Words::default();
        let mut out = OrderedObject::new();
        for (keyword, value) in fields {
            match keyword.as_str() {
                "description" | "title" => _ = out.insert(keyword.clone(), value.clone()),
                silent if SILENT.contains(&silent) || silent == "$ref" => {}
                _ => words.add(keyword, value),
            }
        }
        let alone = match self.define(target) {
            Some(name) => OrderedObject::from([("$ref".to_owned(), format!("{DEFINITIONS}{name}").into())]),
            None => {
                words.add("$ref", &target.into());
                OrderedObject::new()
            }
        };
        words.describe(&mut out);
        match (out.is_empty(), alone.is_empty()) {
            (true, _) => alone,
            (false, true) => out,
            (false, false) => {
                out.insert("anyOf".to_owned(), OrderedJson::List(vec![OrderedJson::Object(alone)]));
                out
            }
        }
    }

    /// Moves the schema of a reference to the definitions; returns its name.
    fn define(&mut self, target: &str) -> Option<String> {
        if let Some(name) = self.definitions.name(target) {
            return Some(name.to_owned());
        }
        let schema = self.root.pointer(target.strip_prefix('#')?)?;
        let name = self.definitions.reserve(if target == "#" { "#/Root" } else { target });
        self.definitions.alias(target, &name);
        let definition = match self.schema(schema) {
            OrderedJson::Object(definition) => definition,
            _ => OrderedObject::new(),
        };
        self.definitions.set(&name, definition);
        Some(name)
    }

    /// Joins the parts of `allOf`; `None` if they cannot be joined.
    fn all_of(&self, fields: &OrderedObject, all: &[OrderedJson]) -> Option<OrderedObject> {
        let mut merged = fields.clone();
        for keyword in ["allOf", "$defs", "definitions"] {
            merged.shift_remove(keyword);
        }
        if let [OrderedJson::Object(only)] = all
            && only.keys().all(|key| !merged.contains_key(key))
        {
            merged.extend(only.clone());
            return Some(merged);
        }
        for part in all {
            merged = joined(&merged, resolved(self.root, part)?.as_object()?)?;
        }
        Some(merged)
    }
}

/// Adds the values that a schema lists. Only texts and numbers can be listed; `null` among them becomes a type of its own.
fn list_values(fields: &OrderedObject, out: &mut OrderedObject, words: &mut Words) {
    let values = match (fields.get("enum"), fields.get("const")) {
        (Some(OrderedJson::List(values)), _) => values.as_slice(),
        (_, Some(constant)) => std::slice::from_ref(constant),
        _ => return,
    };
    let is_null = |value: &OrderedJson| *value == OrderedJson::Leaf(Value::Null);
    let listed: Vec<_> = values.iter().filter(|value| !is_null(value)).cloned().collect();
    let can_be_listed = |value: &OrderedJson| matches!(value, OrderedJson::Leaf(Value::String(_) | Value::Number(_)));
    if !listed.iter().all(can_be_listed) {
        words.say(match listed.as_slice() {
            [only] if values.len() == 1 => format!("Always {only}."),
            _ => format!("One of {}.", values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        });
        return;
    }
    if listed.is_empty() {
        out.insert("type".to_owned(), "null".into());
        return;
    }
    if listed.len() == values.len() {
        out.insert("enum".to_owned(), OrderedJson::List(listed));
        return;
    }
    let kinds = match out.shift_remove("type") {
        Some(OrderedJson::List(kinds)) => kinds.into_iter().filter(|kind| kind.as_str() != Some("null")).collect(),
        Some(kind) => vec![kind],
        None => Vec::new(),
    };
    let kind = match kinds.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        _ => Some(OrderedJson::List(kinds)),
    };
    let kind = kind.into_iter().map(|kind| ("type".to_owned(), kind));
    let list = kind.chain([("enum".to_owned(), OrderedJson::List(listed))]).collect();
    let null = OrderedObject::from([("type".to_owned(), "null".into())]);
    out.insert("anyOf".to_owned(), OrderedJson::List(vec![OrderedJson::Object(list), OrderedJson::Object(null)]));
}

/// The number of definitions up to which cycles are searched; an API accepts fewer.
const MAX_DEFINITIONS: usize = 1_000;

/// Makes the properties optional that a definition cannot have without another value of itself, and says that they are required.
fn without_required_cycles(definitions: &mut OrderedObject) {
    if definitions.len() > MAX_DEFINITIONS {
        return;
    }
    let edges: HashMap<String, Vec<String>> = definitions
        .iter()
        .map(|(name, definition)| {
            let mut into = Vec::new();
            targets(definition, &mut into);
            (name.clone(), into.into_iter().map(str::to_owned).collect())
        })
        .collect();
    for (name, definition) in definitions.iter_mut() {
        let returns = edges.keys().filter(|from| leads_to(&edges, from, name)).map(String::as_str).collect();
        relax(definition, &returns);
    }
}

/// Returns whether a definition is another one, or references it, directly or through others.
fn leads_to(edges: &HashMap<String, Vec<String>>, from: &str, to: &str) -> bool {
    let (mut wanted, mut seen) = (vec![from], HashSet::new());
    while let Some(name) = wanted.pop() {
        if name == to {
            return true;
        }
        if seen.insert(name) {
            wanted.extend(edges.get(name).into_iter().flatten().map(String::as_str));
        }
    }
    false
}

fn relax(schema: &mut OrderedJson, returns: &HashSet<&str>) {
    match schema {
        OrderedJson::List(items) => items.iter_mut().for_each(|item| relax(item, returns)),
        OrderedJson::Leaf(_) => {}
        OrderedJson::Object(fields) => {
            fields.values_mut().for_each(|value| relax(value, returns));
            let Some(properties) = fields.get("properties").and_then(OrderedJson::as_object) else { return };
            let is_cyclic = |name: &OrderedJson| {
                let mut into = Vec::new();
                if let Some(property) = name.as_str().and_then(|name| properties.get(name)) {
                    targets(property, &mut into);
                }
                into.into_iter().any(|name| returns.contains(name))
            };
            let required = fields.get("required").and_then(OrderedJson::as_list).unwrap_or_default();
            let (cyclic, kept): (Vec<_>, Vec<_>) = required.iter().cloned().partition(is_cyclic);
            if cyclic.is_empty() {
                return;
            }
            let names: Vec<_> = cyclic.iter().filter_map(OrderedJson::as_str).map(|name| format!("`{name}`")).collect();
            fields.insert("required".to_owned(), OrderedJson::List(kept));
            let mut words = Words::default();
            words.say(format!("Required: {}.", names.join(", ")));
            words.describe(fields);
        }
    }
}
