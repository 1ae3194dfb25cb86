//! What each API enforces of JSON Schema in strict schemas.

use positronic_core::record::OrderedJson;

use super::SchemaRole;
use super::anthropic_limits::{OPTIONAL, Parameters, UNIONS, names_fit};
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
