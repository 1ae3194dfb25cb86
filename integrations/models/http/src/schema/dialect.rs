//! What each API enforces of JSON Schema in strict schemas.

use positronic_core::record::{OrderedJson, OrderedObject};
use serde_json::Value;

use super::SchemaRole;
use super::keywords::NUMERIC;
use super::strict_error::{NotStrict, refuse};

/// The dialect of strict schemas of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaDialect {
    /// OpenAI: its guide "Structured Outputs", section "Supported schemas", as of November 2026.
    OpenAi,
    /// Anthropic: its guide "Structured outputs", sections "JSON Schema limitations" and "Schema complexity limits", as of
    /// November 2026. It refuses bounds of numbers and lengths, `minItems` above 1, `maxItems` and recursion. It lists `pattern` with an
    /// unspecified part of the regular expressions, and its own libraries send none, so patterns are described instead.
    Anthropic,
}

/// The formats that OpenAI enforces; Anthropic enforces `uri`, too.
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

impl SchemaDialect {
    /// Returns whether the API enforces a keyword of a schema of one type.
    pub(super) fn enforces(self, kind: &str, keyword: &str, value: &OrderedJson) -> bool {
        let is_format =
            |also: &[&str]| value.as_str().is_some_and(|name| FORMATS.contains(&name) || also.contains(&name));
        match (self, kind, keyword) {
            (Self::OpenAi, "string", "format") => is_format(&[]),
            // OpenAI's patterns have no groups with options or lookaround.
            (Self::OpenAi, "string", "pattern") => !value.as_str().is_some_and(|pattern| pattern.contains("(?")),
            (Self::OpenAi, "number" | "integer", keyword) => NUMERIC.contains(&keyword),
            (Self::OpenAi, "array", keyword) => matches!(keyword, "minItems" | "maxItems"),
            (Self::Anthropic, "string", "format") => is_format(&["uri"]),
            (Self::Anthropic, "array", "minItems") => {
                matches!(value, OrderedJson::Leaf(least) if *least == 0 || *least == 1)
            }
            _ => false,
        }
    }

    /// Returns whether a schema may refer to itself.
    pub(super) const fn has_recursion(self) -> bool {
        matches!(self, Self::OpenAi)
    }

    /// Checks the limits that are not those of OpenAI.
    ///
    /// # Errors
    ///
    /// [`NotStrict`] if the schema exceeds them.
    pub(super) fn check(self, schema: &OrderedJson, role: SchemaRole) -> Result<(), NotStrict> {
        let parameters = Parameters::of(schema);
        match self {
            // Its adapter gives the fields of arguments other names.
            Self::Anthropic if role == SchemaRole::Answer && !names_fit(schema) => {
                refuse("it has a field whose name is not of 1 to 64 letters, digits, `_`, `.` and `-`")
            }
            Self::Anthropic if !parameters.fit() => refuse(format!(
                "it has {} optional fields and {} with several types, but at most {OPTIONAL} and {UNIONS} are allowed",
                parameters.optional, parameters.unions
            )),
            Self::OpenAi | Self::Anthropic => Ok(()),
        }
    }
}

/// Anthropic's limits for all strict schemas of a request together.
const OPTIONAL: usize = 24;
const UNIONS: usize = 16;

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
fn names_fit(schema: &OrderedJson) -> bool {
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
