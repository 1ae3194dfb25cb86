//! Names of the definitions to which the references of a schema lead.

use indexmap::IndexMap;
use positronic_core::record::{OrderedJson, OrderedObject};
use serde_json::Value;

/// The place of all definitions of a sent schema.
pub(super) const DEFINITIONS: &str = "#/$defs/";

/// The definitions of a schema that is converted, in the order of their first use.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    /// Their names, by reference.
    names: IndexMap<String, String>,
    schemas: OrderedObject,
}

impl Definitions {
    /// Returns the name of a reference's definition.
    pub(super) fn name(&self, target: &str) -> Option<&str> {
        self.names.get(target).map(String::as_str)
    }

    /// Gives a reference a name: the last part of its pointer. Its place is kept until the definition is made.
    pub(super) fn reserve(&mut self, target: &str) -> String {
        let last = target.rsplit('/').next().unwrap_or_default();
        let sanitize = |char: char| if char.is_ascii_alphanumeric() || char == '_' { char } else { '_' };
        let base: String = last.chars().map(sanitize).collect();
        let taken = |name: &String| self.names.values().any(|known| known == name);
        let name = (1_u32..)
            .map(|number| if number == 1 { base.clone() } else { format!("{base}_{number}") })
            .find(|name| !name.is_empty() && !taken(name))
            .unwrap_or(base);
        self.names.insert(target.to_owned(), name.clone());
        self.schemas.insert(name.clone(), OrderedJson::Leaf(Value::Null));
        name
    }

    /// Names a reference without a definition of its own.
    pub(super) fn alias(&mut self, target: &str, name: &str) {
        self.names.insert(target.to_owned(), name.to_owned());
    }

    /// Sets a definition whose place was reserved.
    pub(super) fn set(&mut self, name: &str, schema: OrderedObject) {
        self.schemas.insert(name.to_owned(), OrderedJson::Object(schema));
    }

    /// Returns whether a definition is reserved and not made, so that a reference to it is recursive.
    pub(super) fn is_open(&self, name: &str) -> bool {
        self.schemas.get(name).is_none_or(|schema| schema.as_object().is_none())
    }

    /// Returns a definition.
    pub(super) fn get(&self, name: &str) -> Option<&OrderedJson> {
        self.schemas.get(name)
    }

    /// Returns the definitions that a schema references, directly or through others.
    pub(super) fn reachable(&self, root: &OrderedObject) -> OrderedObject {
        let mut wanted = Vec::new();
        root.values().for_each(|value| targets(value, &mut wanted));
        let mut kept = indexmap::IndexSet::new();
        while let Some(name) = wanted.pop() {
            if kept.insert(name)
                && let Some(definition) = self.schemas.get(name)
            {
                targets(definition, &mut wanted);
            }
        }
        let own = self.schemas.iter().filter(|(name, _)| kept.contains(name.as_str()));
        own.map(|(name, schema)| (name.clone(), schema.clone())).collect()
    }
}

/// Collects the names of the definitions that a sent schema references.
pub(super) fn targets<'t>(schema: &'t OrderedJson, into: &mut Vec<&'t str>) {
    match schema {
        OrderedJson::Object(fields) => {
            for (key, value) in fields {
                match value.as_str() {
                    Some(target) if key == "$ref" => into.extend(target.strip_prefix(DEFINITIONS)),
                    _ => targets(value, into),
                }
            }
        }
        OrderedJson::List(items) => items.iter().for_each(|item| targets(item, into)),
        OrderedJson::Leaf(_) => {}
    }
}
