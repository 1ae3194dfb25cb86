//! Strict schemas, as OpenAI and Anthropic enforce them.
//!
//! The rules (OpenAI's guide "Structured Outputs", section "Supported schemas", read in November 2026): the root is an object
//! and not a union; every object is closed and requires all of its properties; unions are `anyOf`; a reference has no
//! siblings; the keywords of its dialect are enforced and others rejected; at most 5,000 properties, 10 levels, 1,000
//! enumerated values and 120,000 characters of names and values, and 15,000 characters in an enumeration of more than 250 values.
//!
//! A schema may come from another program. Joining the parts of `allOf` and of unions copies them, endlessly if a part refers
//! to itself, so the work is limited; a schema above the limit would not be enforced anyway.
//!
//! An optional property becomes a nullable one; `Schema::accept` of the crate's `tools` treats its `null` as absent.
//! Constraints that are not enforced move into the description.

use std::collections::HashSet;

use positronic_core::record::{OrderedJson, OrderedObject};
use serde_json::Value;

use super::SchemaRole;
use super::definitions::{DEFINITIONS, Definitions};
use super::dialect::SchemaDialect;
use super::keywords::{SILENT, STRUCTURE, binds_another_type};
use super::merge::{has_properties, joined, resolved};
use super::openai_limits;
use super::strict_error::{Result, refuse};
use super::values::{constants, kinds, nullable, values_of_kind};
use super::words::Words;

/// Makes a schema strict, in the dialect of an API.
///
/// # Errors
///
/// [`NotStrict`](super::NotStrict) if strict mode cannot express it: open maps, values of any type, a root that is not an object, unions whose
/// objects begin with the same property, or a schema that is too large. Anthropic's cannot express recursion.
pub fn strict_schema(schema: &OrderedJson, role: SchemaRole, dialect: SchemaDialect) -> Result<OrderedJson> {
    let strict = |keeps_optional| {
        let mut strict = Strict {
            root: schema,
            dialect,
            keeps_optional,
            definitions: Definitions::default(),
            depth: 0,
            work: MAX_WORK,
        };
        let sent = strict.whole(role)?;
        dialect.check(&sent, role)?;
        Ok(sent)
    };
    match strict(false) {
        // Anthropic allows more optional properties than those that may be `null`.
        Err(_) if dialect == SchemaDialect::Anthropic => strict(true),
        made => made,
    }
}

/// How deep schemas may stand within one another, references and joined parts followed: some six for each level that is enforced.
pub(super) const MAX_DEPTH: usize = 64;

/// How many JSON values all schemas that are read may hold, those within them counted each time. A tool has some hundreds; the
/// largest schema that is enforced, with 5,000 properties on one level, takes some 50,000.
pub(super) const MAX_WORK: usize = 500_000;

struct Strict<'a> {
    root: &'a OrderedJson,
    dialect: SchemaDialect,
    /// Whether optional properties stay optional, instead of accepting `null`.
    keeps_optional: bool,
    definitions: Definitions,
    /// How many schemas there are around the one that is read.
    depth: usize,
    /// How many JSON values may still be read.
    work: usize,
}

impl Strict<'_> {
    fn whole(&mut self, role: SchemaRole) -> Result<OrderedJson> {
        let mut root = self.top(self.root, role)?;
        if let Some(name) =
            root.get("$ref").and_then(OrderedJson::as_str).and_then(|target| target.strip_prefix(DEFINITIONS))
        {
            root = self.definitions.get(name).and_then(OrderedJson::as_object).cloned().unwrap_or_default();
        }
        if root.get("type").and_then(OrderedJson::as_str) != Some("object") {
            return refuse("its root is not an object");
        }
        let definitions = self.definitions.reachable(&root);
        if !definitions.is_empty() {
            root.insert("$defs".to_owned(), OrderedJson::Object(definitions));
        }
        let schema = OrderedJson::Object(root);
        openai_limits::check(&schema)?;
        Ok(schema)
    }

    fn top(&mut self, schema: &OrderedJson, role: SchemaRole) -> Result<OrderedObject> {
        let bare = match schema.as_object() {
            // A tool without arguments.
            Some(fields) if role == SchemaRole::Arguments && schema.is_bare_object_schema() => {
                let mut fields = fields.clone();
                fields.insert("additionalProperties".to_owned(), OrderedJson::Leaf(false.into()));
                Some(OrderedJson::Object(fields))
            }
            _ => None,
        };
        self.schema(bare.as_ref().unwrap_or(schema))
    }

    fn schema(&mut self, schema: &OrderedJson) -> Result<OrderedObject> {
        let Some(work) = spent(self.work, schema) else {
            return refuse("its parts are too many, joined with one another");
        };
        if self.depth >= MAX_DEPTH {
            return refuse(format!("it leads through more than {MAX_DEPTH} schemas"));
        }
        self.work = work;
        self.depth += 1;
        let strict = self.read(schema);
        self.depth -= 1;
        strict
    }

    fn read(&mut self, schema: &OrderedJson) -> Result<OrderedObject> {
        let Some(fields) = schema.as_object() else { return refuse("a part of it accepts any value or none") };
        if let Some(target) = fields.get("$ref").and_then(OrderedJson::as_str) {
            return self.reference(target, fields);
        }
        if let Some(all) = fields.get("allOf").and_then(OrderedJson::as_list) {
            let merged = self.all_of(fields, all)?;
            return self.schema(&OrderedJson::Object(merged));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = fields.get(keyword).and_then(OrderedJson::as_list) {
                return self.union(fields, keyword, branches);
            }
        }
        let kinds = kinds(fields)?;
        let (nulls, kinds): (Vec<_>, Vec<_>) = kinds.into_iter().partition(|kind| kind == "null");
        let mut out = match kinds.as_slice() {
            [] => return Ok(OrderedObject::from([("type".to_owned(), "null".into())])),
            [only] => self.of_kind(only, fields)?,
            several => {
                // The description stays on the union, constraints move to the branch of their type.
                let mut bare = fields.clone();
                bare.shift_remove("description");
                let branches: Result<Vec<_>> =
                    several.iter().map(|kind| self.of_kind(kind, &bare).map(OrderedJson::Object)).collect();
                let mut out = described(fields);
                out.insert("anyOf".to_owned(), OrderedJson::List(branches?));
                out
            }
        };
        if !nulls.is_empty() {
            out = nullable(out);
        }
        Ok(out)
    }

    /// Makes a schema of one type.
    fn of_kind(&mut self, kind: &str, fields: &OrderedObject) -> Result<OrderedObject> {
        let mut out = OrderedObject::from([("type".to_owned(), kind.into())]);
        out.extend(described(fields));
        let mut words = Words::default();
        match kind {
            "object" => self.object(fields, &mut out)?,
            "array" => self.array(fields, &mut out)?,
            _ => {
                let values = values_of_kind(kind, fields)?;
                if let Some(values) = values {
                    out.insert("enum".to_owned(), OrderedJson::List(values));
                }
            }
        }
        for (keyword, value) in fields {
            match keyword.as_str() {
                silent if SILENT.contains(&silent) || STRUCTURE.contains(&silent) => {}
                "title" if out.contains_key("description") => {}
                "patternProperties" if value.as_object().is_some_and(|patterns| !patterns.is_empty()) => {
                    return refuse("it has properties by pattern");
                }
                "unevaluatedProperties" | "patternProperties" => {}
                known if self.dialect.enforces(kind, known, value) => {
                    out.insert(keyword.clone(), value.clone());
                }
                other if binds_another_type(other, kind) => {}
                _ => words.add(keyword, value),
            }
        }
        words.describe(&mut out);
        Ok(out)
    }

    fn object(&mut self, fields: &OrderedObject, out: &mut OrderedObject) -> Result<()> {
        let closed = match fields.get("additionalProperties") {
            None => false,
            Some(OrderedJson::Leaf(Value::Bool(false))) => true,
            Some(_) => return refuse("it has an object with properties of arbitrary names"),
        };
        let none = OrderedObject::new();
        let properties = fields.get("properties").and_then(OrderedJson::as_object).unwrap_or(&none);
        if properties.is_empty() && !closed {
            return refuse("it has an object without listed properties");
        }
        let required = fields.get("required").and_then(OrderedJson::as_list).unwrap_or_default();
        let required: HashSet<_> = required.iter().filter_map(OrderedJson::as_str).collect();
        if let Some(unknown) = required.iter().filter(|name| !properties.contains_key(**name)).min() {
            return refuse(format!("it requires `{unknown}` without describing it"));
        }
        let mut sent = OrderedObject::with_capacity(properties.len());
        for (name, schema) in properties {
            let property = self.schema(schema)?;
            let stays = self.keeps_optional || required.contains(name.as_str());
            let property = if stays { property } else { nullable(property) };
            sent.insert(name.clone(), OrderedJson::Object(property));
        }
        let is_sent_as_required = |name: &&String| !self.keeps_optional || required.contains(name.as_str());
        let names = sent.keys().filter(is_sent_as_required).map(|name| name.as_str().into()).collect();
        out.insert("properties".to_owned(), OrderedJson::Object(sent));
        out.insert("required".to_owned(), OrderedJson::List(names));
        out.insert("additionalProperties".to_owned(), OrderedJson::Leaf(false.into()));
        Ok(())
    }

    fn array(&mut self, fields: &OrderedObject, out: &mut OrderedObject) -> Result<()> {
        let items = match (fields.get("items"), fields.get("prefixItems").and_then(OrderedJson::as_list)) {
            (Some(items @ OrderedJson::Object(_)), None) => self.schema(items)?,
            // A tuple becomes an array of any of its element types; the description states their order.
            (_, Some(prefix)) => {
                let mut branches: Vec<OrderedJson> = Vec::new();
                for item in prefix {
                    let branch = OrderedJson::Object(self.schema(item)?);
                    if !branches.contains(&branch) {
                        branches.push(branch);
                    }
                }
                match branches.as_slice() {
                    [] => return refuse("it has an empty tuple"),
                    [OrderedJson::Object(only)] => only.clone(),
                    _ => OrderedObject::from([("anyOf".to_owned(), OrderedJson::List(branches))]),
                }
            }
            _ => return refuse("it has an array without a schema for its elements"),
        };
        out.insert("items".to_owned(), OrderedJson::Object(items));
        Ok(())
    }

    fn union(&mut self, fields: &OrderedObject, keyword: &str, branches: &[OrderedJson]) -> Result<OrderedObject> {
        if let Some(mut merged) = constants(fields, branches) {
            merged.shift_remove(keyword);
            return self.schema(&OrderedJson::Object(merged));
        }
        let mut words = Words::default();
        let mut beside = fields.clone();
        for (keyword, value) in fields {
            let structure = ["type", "properties", "required", "additionalProperties"].contains(&keyword.as_str());
            if structure && has_properties(&OrderedJson::Object(fields.clone())) {
                continue;
            }
            beside.shift_remove(keyword);
            match keyword.as_str() {
                silent if SILENT.contains(&silent) || STRUCTURE.contains(&silent) => {}
                "title" if fields.contains_key("description") => {}
                _ => words.add(keyword, value),
            }
        }
        let merged: Option<Vec<OrderedJson>> = if beside.is_empty() {
            Some(branches.to_vec())
        } else {
            // Fields of all branches are siblings of the union.
            let join = |branch| joined(&beside, resolved(self.root, branch)?.as_object()?).map(OrderedJson::Object);
            branches.iter().map(join).collect()
        };
        let Some(merged) = merged else { return refuse("it has a union next to other constraints") };
        let sent: Result<Vec<_>> = merged.iter().map(|branch| self.schema(branch).map(OrderedJson::Object)).collect();
        let sent = sent?;
        let mut out = described(fields);
        words.describe(&mut out);
        match (sent.as_slice(), out.is_empty()) {
            ([], _) => return refuse("it has an empty union"),
            ([OrderedJson::Object(only)], true) => return Ok(only.clone()),
            _ => out.insert("anyOf".to_owned(), OrderedJson::List(sent)),
        };
        Ok(out)
    }

    fn all_of(&self, fields: &OrderedObject, all: &[OrderedJson]) -> Result<OrderedObject> {
        let mut beside = fields.clone();
        beside.shift_remove("allOf");
        if let [OrderedJson::Object(only)] = all
            && only.keys().all(|key| !beside.contains_key(key))
        {
            beside.extend(only.clone());
            return Ok(beside);
        }
        let mut merged = beside;
        for definitions in ["$defs", "definitions"] {
            merged.shift_remove(definitions);
        }
        for branch in all {
            let branch = resolved(self.root, branch).and_then(OrderedJson::as_object);
            merged = match branch.and_then(|branch| joined(&merged, branch)) {
                Some(merged) => merged,
                None => return refuse("it has an `allOf` whose parts cannot be merged"),
            };
        }
        Ok(merged)
    }

    /// Makes a reference to a definition. Its siblings move to a schema around it.
    fn reference(&mut self, target: &str, fields: &OrderedObject) -> Result<OrderedObject> {
        let name = self.define(target)?;
        let to = if name.is_empty() { "#".to_owned() } else { format!("{DEFINITIONS}{name}") };
        let alone = OrderedObject::from([("$ref".to_owned(), to.into())]);
        let mut out = described(fields);
        let mut words = Words::default();
        for (keyword, value) in fields {
            match keyword.as_str() {
                silent if SILENT.contains(&silent) || silent == "$ref" => {}
                "title" if out.contains_key("description") => {}
                _ => words.add(keyword, value),
            }
        }
        words.describe(&mut out);
        if out.is_empty() {
            return Ok(alone);
        }
        out.insert("anyOf".to_owned(), OrderedJson::List(vec![OrderedJson::Object(alone)]));
        Ok(out)
    }

    /// Adds the definition for a reference; returns its name, which is empty for the root.
    fn define(&mut self, target: &str) -> Result<String> {
        if let Some(name) = self.definitions.name(target) {
            if self.definitions.is_open(name) && !self.dialect.has_recursion() {
                return refuse("it is recursive");
            }
            return Ok(name.to_owned());
        }
        let found = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let Some(schema) = found else { return refuse(format!("its reference `{target}` does not exist")) };
        if target == "#" {
            if !self.dialect.has_recursion() {
                return refuse("it is recursive");
            }
            self.definitions.alias(target, "");
            return Ok(String::new());
        }
        let name = self.definitions.reserve(target);
        let definition = self.schema(schema)?;
        self.definitions.set(&name, definition);
        Ok(name)
    }
}

/// Subtracts the number of values in a document; none where there are more.
pub(super) fn spent(left: usize, document: &OrderedJson) -> Option<usize> {
    let left = left.checked_sub(1)?;
    match document {
        OrderedJson::Object(fields) => fields.values().try_fold(left, spent),
        OrderedJson::List(items) => items.iter().try_fold(left, spent),
        OrderedJson::Leaf(_) => Some(left),
    }
}

fn described(fields: &OrderedObject) -> OrderedObject {
    let description = fields.get("description").filter(|text| text.as_str().is_some_and(|text| !text.is_empty()));
    description.map(|text| ("description".to_owned(), text.clone())).into_iter().collect()
}
