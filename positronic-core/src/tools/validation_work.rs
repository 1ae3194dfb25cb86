//! Bounds on the work of validation.
//!
//! Schemas may come from another program, and values from a model. A schema of two kilobytes whose references double at every
//! step can describe an astronomic number of checks, so the work is bounded in advance. The schemas of the author's types need no
//! bound, except for recursive types ([`is_recursive`]).
//!
//! - [`Outline::of`] reads a schema once, when it is compiled, and rejects one that is too large, has external references, or
//!   applies too many subschemas to one value.
//! - [`Outline::bound`] walks a value along the schema before each check, counts the maximum number of visits, and stops
//!   at a limit. This finds what depends on the value, such as recursion along a deep value.
//!
//! Both count steps instead of seconds, so the result is the same on every machine and in every replay.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::record::check_depth;

/// The maximum number of values in a schema. The largest schemas of tools have some thousands.
const MAX_NODES: usize = 50_000;

/// The maximum bytes of text in a schema.
const MAX_TEXT: usize = 1 << 20;

/// The maximum number of subschemas that apply to one value, through references and combinators. A union of all the tools of a
/// model has some hundreds.
const MAX_APPLIED: u64 = 10_000;

/// The maximum depth of references and combinators for one value.
const MAX_APPLIED_DEPTH: usize = 64;

/// The maximum depth of a check, along schema and value together, since each level takes stack.
const MAX_DEPTH: usize = 512;

/// How often a pattern with look-around or back-references is tried on one text.
pub(super) const MAX_TRIES: usize = 10_000;

/// The maximum steps of a check, and for large values the maximum per value.
const MAX_STEPS: u64 = 1_000_000;
const MAX_STEPS_EACH: u64 = 32;

/// The largest bound, from the sizes of schema and value, up to which the steps of a check are not counted.
const MAX_UNCOUNTED: u64 = 100_000;

/// How many bytes of pattern matching count as one step.
const BYTES_PER_STEP: usize = 256;

/// Keywords with one subschema that applies to the same value.
const SAME: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords with a list of such subschemas.
const SAME_LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords with a map of such subschemas.
const SAME_MAP: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords with a reference.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords by which a schema can apply several times, or whose check takes longer for a longer text.
const REPEATED: [&str; 8] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "pattern",
    "patternProperties",
    "format",
    "unevaluatedProperties",
    "unevaluatedItems",
];
/// Keywords with one subschema that applies to every member of a value.
const EACH: [&str; 7] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
];
/// Keywords whose subschemas only apply through references.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// The information about a schema that counting needs besides its document.
#[derive(Debug)]
pub(super) struct Outline {
    /// The number of values in the schema, if each of its subschemas applies to a value at most once and in one step.
    applied_once: Option<u64>,
}

impl Outline {
    /// Reads a schema.
    ///
    /// # Errors
    ///
    /// A message with the violated bound.
    pub(super) fn of(schema: &Value) -> Result<Self, String> {
        check_depth(schema)?;
        let (mut nodes, mut text) = (0, 0);
        count(schema, &mut nodes, &mut text);
        if nodes > MAX_NODES {
            return Err(format!("it has {nodes} values, but at most {MAX_NODES} are allowed"));
        }
        if text > MAX_TEXT {
            return Err(format!("it has {text} bytes of text, but at most {MAX_TEXT} are allowed"));
        }
        if within(schema).any(has_own_base) {
            return Err("a schema within it has an `$id` and a reference of its own, which is not supported".to_owned());
        }
        Reader { root: schema, applied: HashMap::new(), depth: 0 }.visit_all(schema)?;
        let applied_once = (!has_any(schema, &REPEATED)).then(|| u64::try_from(nodes).unwrap_or(u64::MAX));
        Ok(Self { applied_once })
    }

    /// Returns an upper bound of the steps of a check: from the sizes of schema and value if that is small, counted otherwise.
    ///
    /// # Errors
    ///
    /// A message if there are too many.
    pub(super) fn bound(&self, schema: &Value, value: &Value) -> Result<u64, String> {
        let nodes = nodes(value);
        let uncounted = self.applied_once.map(|schemas| schemas.saturating_mul(nodes));
        if let Some(steps) = uncounted.filter(|steps| *steps <= MAX_UNCOUNTED) {
            return Ok(steps);
        }
        let most = MAX_STEPS.max(MAX_STEPS_EACH.saturating_mul(nodes));
        let mut counter = Counter { root: schema, steps: 0, most, depth: 0 };
        match counter.visit(schema, value) {
            Some(()) => Ok(counter.steps),
            None if counter.depth > MAX_DEPTH => {
                Err(format!("the check would exceed {MAX_DEPTH} levels of the schema and the value"))
            }
            None => {
                Err(format!("the check would take more than {most} steps: the schema applies too often to the value"))
            }
        }
    }
}

/// Returns the number of values in a value.
pub(super) fn nodes(value: &Value) -> u64 {
    let (mut nodes, mut text) = (0, 0);
    count(value, &mut nodes, &mut text);
    u64::try_from(nodes).unwrap_or(u64::MAX)
}

/// Returns whether a definition of a schema refers to itself, also through others.
pub(super) fn is_recursive(schema: &Value) -> bool {
    fn leads_back<'a>(root: &'a Value, at: &'a Value, open: &mut Vec<&'a str>, seen: &mut HashSet<&'a str>) -> bool {
        let is_back = at.get("$ref").and_then(Value::as_str).is_some_and(|reference| {
            let is_open = open.contains(&reference);
            if is_open || !seen.insert(reference) {
                return is_open;
            }
            open.push(reference);
            let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            let is_back = target.is_none_or(|target| leads_back(root, target, open, seen));
            open.pop();
            is_back
        });
        is_back || within(at).any(|inner| leads_back(root, inner, open, seen))
    }
    leads_back(schema, schema, &mut vec!["#"], &mut HashSet::new())
}

/// Lists the values directly within a list or an object.
fn within(value: &Value) -> impl Iterator<Item = &Value> {
    let (items, fields) = (value.as_array(), value.as_object());
    items.into_iter().flatten().chain(fields.into_iter().flat_map(Map::values))
}

fn count(value: &Value, nodes: &mut usize, text: &mut usize) {
    *nodes += 1;
    *text += value.as_str().map_or(0, str::len);
    *text += value.as_object().map_or(0, |fields| fields.keys().map(String::len).sum::<usize>());
    within(value).for_each(|inner| count(inner, nodes, text));
}

/// Returns whether a subschema is a document of its own, so that the references in it have another base.
fn has_own_base(schema: &Value) -> bool {
    let has_id = schema.get("$id").is_some_and(Value::is_string);
    (has_id && has_any(schema, &REFERENCES)) || within(schema).any(has_own_base)
}

/// Returns whether there is a field with one of these names.
fn has_any(value: &Value, names: &[&str]) -> bool {
    names.iter().any(|name| value.get(name).is_some()) || within(value).any(|inner| has_any(inner, names))
}

/// Decodes percent-encoding; `None` if the result is not UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let code = digit(rest.next())? * 16 + digit(rest.next())?;
        bytes.push(u8::try_from(code).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// Resolves a reference by a JSON pointer.
fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(&percent_decoded(reference.strip_prefix('#')?)?)
}

/// Lists the subschemas that apply to the same value, with resolved references.
fn same<'a>(root: &'a Value, schema: &'a Map<String, Value>) -> Result<Vec<&'a Value>, String> {
    let mut all = Vec::new();
    all.extend(SAME.iter().filter_map(|name| schema.get(*name)));
    let lists = SAME_LIST.iter().filter_map(|name| schema.get(*name).and_then(Value::as_array));
    all.extend(lists.flatten());
    let maps = SAME_MAP.iter().filter_map(|name| schema.get(*name).and_then(Value::as_object));
    all.extend(maps.flat_map(Map::values).filter(|inner| !inner.is_array()));
    for reference in REFERENCES.iter().filter_map(|name| schema.get(*name).and_then(Value::as_str)) {
        all.push(target(root, reference).ok_or_else(|| {
            format!("its reference `{reference}` is not the JSON pointer of a schema in it, such as `#/$defs/name`")
        })?);
    }
    Ok(all)
}

/// Counts the subschemas that apply to one value.
struct Reader<'a> {
    root: &'a Value,
    /// Counts by memory address; `None` while being counted.
    applied: HashMap<*const Value, Option<u64>>,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// Visits a subschema and all schemas within it.
    fn visit_all(&mut self, schema: &'a Value) -> Result<(), String> {
        let applied = self.applied(schema)?;
        if applied > MAX_APPLIED {
            return Err(format!(
                "its references and combinators apply {applied} schemas to one value, but at most {MAX_APPLIED} are allowed"
            ));
        }
        let Some(fields) = schema.as_object() else { return Ok(()) };
        for (name, inner) in fields {
            let name = name.as_str();
            match inner {
                Value::Object(_) if SAME.contains(&name) || EACH.contains(&name) => self.visit_all(inner)?,
                Value::Array(items) if SAME_LIST.contains(&name) || matches!(name, "prefixItems" | "items") => {
                    items.iter().try_for_each(|item| self.visit_all(item))?;
                }
                Value::Object(inner)
                    if SAME_MAP.contains(&name)
                        || DEFINITIONS.contains(&name)
                        || matches!(name, "properties" | "patternProperties") =>
                {
                    inner.values().try_for_each(|inner| self.visit_all(inner))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn applied(&mut self, schema: &'a Value) -> Result<u64, String> {
        let Some(fields) = schema.as_object() else { return Ok(1) };
        let address = std::ptr::from_ref(schema);
        match self.applied.get(&address) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Err("a schema in it refers to itself for the same value".to_owned()),
            None => {}
        }
        self.applied.insert(address, None);
        self.depth += 1;
        if self.depth > MAX_APPLIED_DEPTH {
            return Err(format!("its references and combinators lead through more than {MAX_APPLIED_DEPTH} schemas"));
        }
        let mut sum = 1_u64;
        for inner in same(self.root, fields)? {
            sum = sum.saturating_add(self.applied(inner)?);
        }
        // Finding unevaluated members repeats all of the evaluation.
        if fields.contains_key("unevaluatedProperties") || fields.contains_key("unevaluatedItems") {
            sum = sum.saturating_mul(2);
        }
        self.depth -= 1;
        self.applied.insert(address, Some(sum));
        Ok(sum)
    }
}

/// Counts the visits of a check.
struct Counter<'a> {
    root: &'a Value,
    steps: u64,
    most: u64,
    depth: usize,
}

impl<'a> Counter<'a> {
    /// Adds steps; returns `None` above the limit.
    fn add(&mut self, steps: usize) -> Option<()> {
        self.steps = self.steps.saturating_add(u64::try_from(steps).unwrap_or(u64::MAX));
        (self.steps <= self.most).then_some(())
    }

    fn visit(&mut self, schema: &'a Value, value: &Value) -> Option<()> {
        self.add(1)?;
        let Some(fields) = schema.as_object() else { return Some(()) };
        self.depth += 1;
        // The depth is not reset, so that the caller can tell the two reasons apart.
        if self.depth > MAX_DEPTH {
            return None;
        }
        self.visit_fields(fields, value)?;
        self.depth -= 1;
        Some(())
    }

    fn visit_fields(&mut self, fields: &'a Map<String, Value>, value: &Value) -> Option<()> {
        self.add(fields.get("enum").and_then(Value::as_array).map_or(0, Vec::len))?;
        let iterations = 1
            + usize::from(fields.contains_key("unevaluatedProperties"))
            + usize::from(fields.contains_key("unevaluatedItems"));
        // A reference that cannot be followed cannot be counted: the schema may still have one where only references lead.
        let around = same(self.root, fields).ok()?;
        for _ in 0..iterations {
            for inner in &around {
                self.visit(inner, value)?;
            }
        }
        match value {
            Value::String(text) if fields.contains_key("pattern") || fields.contains_key("format") => {
                self.add(matching(fields, text))
            }
            Value::Object(members) => self.members(fields, members),
            Value::Array(items) => self.items(fields, items),
            _ => Some(()),
        }
    }

    fn members(&mut self, schema: &'a Map<String, Value>, members: &Map<String, Value>) -> Option<()> {
        let named = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let each = ["additionalProperties", "unevaluatedProperties"].iter().filter_map(|name| schema.get(*name));
        let each: Vec<_> = each.collect();
        for (name, member) in members {
            self.add(1)?;
            if let Some(inner) = named.and_then(|named| named.get(name)) {
                self.visit(inner, member)?;
            }
            for inner in patterns.into_iter().flat_map(Map::values) {
                self.add(name.len() / BYTES_PER_STEP)?;
                self.visit(inner, member)?;
            }
            for inner in &each {
                self.visit(inner, member)?;
            }
            if let Some(inner) = schema.get("propertyNames") {
                self.visit(inner, &Value::String(name.clone()))?;
            }
        }
        Some(())
    }

    fn items(&mut self, schema: &'a Map<String, Value>, items: &[Value]) -> Option<()> {
        let listed = |name| schema.get(name).and_then(Value::as_array);
        let places: Vec<&Vec<Value>> = ["prefixItems", "items"].into_iter().filter_map(listed).collect();
        let each =
            ["items", "additionalItems", "unevaluatedItems", "contains"].iter().filter_map(|name| schema.get(*name));
        let each: Vec<_> = each.filter(|inner| !inner.is_array()).collect();
        for (index, item) in items.iter().enumerate() {
            self.add(1)?;
            for inner in places.iter().filter_map(|places| places.get(index)).chain(each.iter().copied()) {
                self.visit(inner, item)?;
            }
        }
        Some(())
    }
}

/// Counts the steps of matching a text. A pattern with look-around or back-references is tried a limited number of times, each of
/// which may read the full text; any other pattern reads it once.
fn matching(schema: &Map<String, Value>, text: &str) -> usize {
    let pattern = schema.get("pattern").and_then(Value::as_str).unwrap_or_default();
    let looks = ["(?=", "(?!", "(?<=", "(?<!", "(?>", "\\k"].iter().any(|sign| pattern.contains(sign));
    let refers = pattern.as_bytes().windows(2).any(|pair| matches!(pair, [b'\\', b'1'..=b'9']));
    let times = if looks || refers { text.len().min(MAX_TRIES) } else { 1 };
    1 + (text.len() / BYTES_PER_STEP).saturating_mul(times)
}

#[cfg(test)]
mod tests;
