//! JSON schemas as providers take them.
//!
//! An author's schema may say anything that JSON Schema knows; providers take less. [`WireSchema::new`] makes of it what is
//! sent: a strict schema where the endpoint enforces those and the schema can be one ([`strict_schema`]), and otherwise a
//! lenient one ([`lenient_schema`]). Both keep the author's order of fields, and give every object schema `properties`, which
//! OpenAI demands. What the provider does not enforce is still checked when the answer is there, against the author's schema.

mod keywords;
mod lenient;
mod limits;
mod merge;
mod strict;
#[cfg(test)]
mod tests;
mod values;
mod words;

pub use lenient::lenient_schema;
pub use strict::{NotStrict, strict_schema};

use crate::record::OrderedJson;

/// What a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaRole {
    /// The arguments of a tool: an object, whose schema may not be a union or an enumeration at the top.
    Arguments,
    /// A model's answer.
    Answer,
}

/// A schema as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct WireSchema {
    /// The schema.
    pub json: OrderedJson,
    /// Whether the endpoint is asked to enforce it.
    pub strict: bool,
}

impl WireSchema {
    /// Makes a schema as it is sent. `enforced` says whether the endpoint is known to enforce strict schemas. Where it is not, an
    /// answer's schema that is strict as it stands is still sent as one: servers that know the flag enforce it then.
    #[must_use]
    pub fn new(schema: &OrderedJson, role: SchemaRole, enforced: bool) -> Self {
        let lenient = || lenient_schema(schema, role);
        match strict_schema(schema, role) {
            Ok(json) if enforced => Self { json, strict: true },
            Ok(json) => {
                let lenient = lenient();
                Self { strict: role == SchemaRole::Answer && json == lenient, json: lenient }
            }
            Err(_) => Self { json: lenient(), strict: false },
        }
    }
}
