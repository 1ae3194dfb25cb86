//! JSON schemas in the forms that providers accept.
//!
//! An author's schema may use all of JSON Schema; providers accept less, each another part. [`strict_schema`] converts it to one
//! that OpenAI or Anthropic enforces ([`SchemaDialect`]), [`gemini_schema`] to one that Google accepts, and [`lenient_schema`] to one
//! for endpoints that enforce none, and for schemas that cannot be strict. [`WireSchema::new`] chooses for OpenAI. All keep the
//! author's order of fields, and give every object schema the `properties` that OpenAI requires. Constraints that the provider does
//! not enforce move into the descriptions, and are checked on the answer, against the author's schema.

mod anthropic_limits;
mod cache;
mod definitions;
mod dialect;
mod gemini;
mod keywords;
mod lenient;
mod merge;
mod openai_limits;
mod strict;
mod strict_error;
#[cfg(test)]
mod tests;
mod values;
mod words;

pub use anthropic_limits::{AnthropicName, Parameters};
pub use cache::FormatCache;
pub use dialect::SchemaDialect;
pub use gemini::gemini_schema;
pub use lenient::lenient_schema;
pub use strict::strict_schema;
pub use strict_error::NotStrict;

use positronic_core::record::OrderedJson;

/// The subject of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaRole {
    /// The arguments of a tool: an object, whose schema may not be a union or an enumeration at the root.
    Arguments,
    /// A model's answer.
    Answer,
}

/// A schema as sent.
#[derive(Debug, Clone, PartialEq)]
pub struct WireSchema {
    /// The schema.
    pub json: OrderedJson,
    /// Whether the endpoint is asked to enforce it.
    pub strict: bool,
}

impl WireSchema {
    /// Converts a schema for sending. `enforced` states whether the endpoint is known to enforce strict schemas. If not, an
    /// answer's schema that is already strict is still marked as strict, since some servers know the flag.
    #[must_use]
    pub fn new(schema: &OrderedJson, role: SchemaRole, enforced: bool) -> Self {
        let lenient = || lenient_schema(schema, role);
        match strict_schema(schema, role, SchemaDialect::OpenAi) {
            Ok(json) if enforced => Self { json, strict: true },
            Ok(json) => {
                let lenient = lenient();
                Self { strict: role == SchemaRole::Answer && json == lenient, json: lenient }
            }
            Err(_) => Self { json: lenient(), strict: false },
        }
    }
}
