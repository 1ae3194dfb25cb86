//! Anthropic's limits of strict schemas: the parameters of a request, and the names of fields.

use positronic_core::record::{OrderedJson, OrderedObject};
use serde_json::Value;

/// Anthropic's limits for all strict schemas of a request together.
pub(super) const OPTIONAL: usize = 24;
pub(super) const UNIONS: usize = 16;

/// The parameters of strict schemas whose number Anthropic limits for a request: at most 24 and 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parameters {
    /// Those that are not required.
    pub optional: usize,
    /// Those of several types.
    pub unions: usize,
}

impl Parameters {
    /// Counts the parameters of a schema.
    #[must_use]
    pub fn of(schema: &OrderedJson) -> Self {
        let mut counted = Self::default();
        counted.count(schema);
        counted
    }

    /// Returns the sum of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { optional: self.optional + other.optional, unions: self.unions + other.unions }
    }

    /// Returns whether one request may have them.
    #[must_use]
    pub const fn fit(self) -> bool {
        self.optional <= OPTIONAL && self.unions <= UNIONS
    }

    fn count(&mut self, schema: &OrderedJson) {
        match schema {
            OrderedJson::Object(fields) => {
                let is_union = fields.contains_key("anyOf") || matches!(fields.get("type"), Some(OrderedJson::List(_)));
                self.unions += usize::from(is_union);
                for (keyword, value) in fields {
                    match (keyword.as_str(), value) {
                        ("properties", OrderedJson::Object(properties)) => {
                            self.optional += properties.keys().filter(|name| !is_required(fields, name)).count();
                            properties.values().for_each(|schema| self.count(schema));
                        }
                        ("$defs", OrderedJson::Object(schemas)) => {
                            schemas.values().for_each(|schema| self.count(schema));
                        }
                        ("enum" | "required", _) => {}
                        _ => self.count(value),
                    }
                }
            }
            OrderedJson::List(items) => items.iter().for_each(|item| self.count(item)),
            OrderedJson::Leaf(_) => {}
        }
    }
}

/// Anthropic's rule for the name of a property: "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'".
#[derive(Debug)]
pub struct AnthropicName;

impl AnthropicName {
    /// The maximum length, in bytes.
    pub const MAX: usize = 64;

    /// Returns whether Anthropic accepts a name.
    #[must_use]
    pub fn is_valid(name: &str) -> bool {
        (1..=Self::MAX).contains(&name.len()) && name.chars().all(Self::is_valid_char)
    }

    /// Returns whether a name may have a character.
    #[must_use]
    pub const fn is_valid_char(char: char) -> bool {
        char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-')
    }
}

/// Returns whether Anthropic accepts the names of all fields.
pub(super) fn names_fit(schema: &OrderedJson) -> bool {
    match schema {
        OrderedJson::Object(fields) => fields.iter().all(|(keyword, value)| match (keyword.as_str(), value) {
            ("properties", OrderedJson::Object(properties)) => {
                properties.keys().all(|name| AnthropicName::is_valid(name)) && properties.values().all(names_fit)
            }
            ("enum", _) => true,
            _ => names_fit(value),
        }),
        OrderedJson::List(items) => items.iter().all(names_fit),
        OrderedJson::Leaf(_) => true,
    }
}

fn is_required(schema: &OrderedObject, name: &str) -> bool {
    let required = schema.get("required").and_then(OrderedJson::as_list).unwrap_or_default();
    required.iter().any(|one| *one == OrderedJson::Leaf(Value::from(name)))
}
