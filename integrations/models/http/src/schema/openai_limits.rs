//! OpenAI's size limits of strict schemas, and its rule for unions of objects.

use std::collections::HashMap;

use positronic_core::record::{OrderedJson, OrderedObject};

use super::definitions::DEFINITIONS;
use super::strict_error::{NotStrict, refuse};
use super::values::listed;

/// From OpenAI's guide "Structured Outputs", section "Supported schemas".
const PROPERTIES: usize = 5_000;
const LEVELS: usize = 10;
pub(super) const VALUES: usize = 1_000;
const CHARACTERS: usize = 120_000;
const MANY_VALUES: usize = 250;
const CHARACTERS_OF_MANY: usize = 15_000;

#[derive(Debug, Default)]
struct Sizes {
    properties: usize,
    values: usize,
    characters: usize,
}

/// Checks that OpenAI accepts a strict schema.
///
/// # Errors
///
/// [`NotStrict`] if it exceeds OpenAI's limits, or if objects of a union begin with the same property: the API
/// rejects such a union with status 400, unless that property has a different constant in each.
pub(super) fn check(root: &OrderedJson) -> Result<(), NotStrict> {
    let mut sizes = Sizes::default();
    sizes.add(root)?;
    if sizes.properties > PROPERTIES {
        return refuse(format!("it has {} properties, but at most {PROPERTIES} are allowed", sizes.properties));
    }
    if sizes.values > VALUES {
        return refuse(format!("it lists {} values, but at most {VALUES} are allowed", sizes.values));
    }
    if sizes.characters > CHARACTERS {
        return refuse(format!(
            "its names and values have {} characters, but at most {CHARACTERS} are allowed",
            sizes.characters
        ));
    }
    let levels = Levels { root, known: HashMap::new() }.below(root);
    if levels > LEVELS {
        return refuse(format!("it nests {levels} levels deep, but at most {LEVELS} are allowed"));
    }
    unions_begin_apart(root, root)
}

impl Sizes {
    fn add(&mut self, schema: &OrderedJson) -> Result<(), NotStrict> {
        let fields = match schema {
            OrderedJson::Object(fields) => fields,
            OrderedJson::List(items) => return items.iter().try_for_each(|item| self.add(item)),
            OrderedJson::Leaf(_) => return Ok(()),
        };
        if let Some(values) = fields.get("enum").and_then(OrderedJson::as_list) {
            let texts = values.iter().filter_map(OrderedJson::as_str).map(str::len).sum::<usize>();
            if values.len() > MANY_VALUES && texts > CHARACTERS_OF_MANY {
                return refuse(format!(
                    "a list of {} values has {texts} characters, but at most {CHARACTERS_OF_MANY} are allowed",
                    values.len()
                ));
            }
            self.values += values.len();
            self.characters += texts;
        }
        for (keyword, value) in fields {
            match (keyword.as_str(), value) {
                ("properties", OrderedJson::Object(properties)) => {
                    self.properties += properties.len();
                    self.named(properties)?;
                }
                ("$defs", OrderedJson::Object(definitions)) => self.named(definitions)?,
                ("enum" | "required", _) => {}
                _ => self.add(value)?,
            }
        }
        Ok(())
    }

    fn named(&mut self, schemas: &OrderedObject) -> Result<(), NotStrict> {
        self.characters += schemas.keys().map(String::len).sum::<usize>();
        schemas.values().try_for_each(|schema| self.add(schema))
    }
}

/// Counts nested objects and arrays. A recursive schema counts once, whatever the depth of its values.
struct Levels<'a> {
    root: &'a OrderedJson,
    known: HashMap<&'a str, usize>,
}

impl<'a> Levels<'a> {
    fn below(&mut self, schema: &'a OrderedJson) -> usize {
        let OrderedJson::Object(fields) = schema else { return 0 };
        if let Some(target) = fields.get("$ref").and_then(OrderedJson::as_str) {
            if let Some(known) = self.known.get(target) {
                return *known;
            }
            self.known.insert(target, 0);
            let levels = definition(self.root, target).map_or(0, |definition| self.below(definition));
            self.known.insert(target, levels);
            return levels;
        }
        let properties =
            fields.get("properties").and_then(OrderedJson::as_object).into_iter().flat_map(OrderedObject::values);
        let branches = fields.get("anyOf").and_then(OrderedJson::as_list).into_iter().flatten();
        let parts: Vec<_> = properties.chain(fields.get("items")).collect();
        let own = usize::from(fields.contains_key("properties") || fields.contains_key("items"));
        let within = parts.into_iter().map(|part| self.below(part)).max().unwrap_or_default() + own;
        branches.map(|branch| self.below(branch)).max().unwrap_or_default().max(within)
    }
}

fn definition<'a>(root: &'a OrderedJson, target: &str) -> Option<&'a OrderedJson> {
    root.get("$defs")?.get(target.strip_prefix(DEFINITIONS)?)
}

fn unions_begin_apart(root: &OrderedJson, schema: &OrderedJson) -> Result<(), NotStrict> {
    match schema {
        OrderedJson::Object(fields) => {
            if let Some(branches) = fields.get("anyOf").and_then(OrderedJson::as_list) {
                let firsts: Vec<_> = branches.iter().filter_map(|branch| first_property(root, branch)).collect();
                for (index, (name, schema)) in firsts.iter().enumerate() {
                    let same =
                        firsts.iter().take(index).find(|(other, known)| other == name && !are_apart(known, schema));
                    if same.is_some() {
                        return refuse(format!("it has a union whose objects begin with the same property, `{name}`"));
                    }
                }
            }
            fields.values().try_for_each(|value| unions_begin_apart(root, value))
        }
        OrderedJson::List(items) => items.iter().try_for_each(|item| unions_begin_apart(root, item)),
        OrderedJson::Leaf(_) => Ok(()),
    }
}

fn first_property<'a>(root: &'a OrderedJson, branch: &'a OrderedJson) -> Option<(&'a str, &'a OrderedJson)> {
    let branch = match branch.get("$ref").and_then(OrderedJson::as_str) {
        Some(target) => definition(root, target)?,
        None => branch,
    };
    branch.get("properties")?.as_object()?.first().map(|(name, schema)| (name.as_str(), schema))
}

/// Returns whether two schemas list values and have none in common.
fn are_apart(one: &OrderedJson, other: &OrderedJson) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return false };
    let mut values = listed(one).peekable();
    values.peek().is_some()
        && listed(other).next().is_some()
        && !values.any(|value| listed(other).any(|own| own == value))
}
