//! Lenient reading of JSON from compatible servers: a field that is absent, `null` or of another type counts as missing.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use positronic_core::record::{ModelError, ModelErrorKind};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, UnitDeserializer};
use serde::de::{Deserializer, MapAccess, Visitor};

pub use super::borrowed_json::BorrowedValue;
use super::fault::{ServerFault, shorten};
pub use super::json::Json;

/// Parses a chunk or an answer of a server.
///
/// # Errors
///
/// A [`ModelError`] of the kind that the server reports if it is an error object, and
/// [`Malformed`](ModelErrorKind::Malformed) if it is not a JSON object.
pub fn document<'a, J: Json + Deserialize<'a>>(text: &'a str) -> Result<J, ModelError> {
    let Document(document) = serde_json::from_str(text).map_err(|error| {
        let sentence = format!("the server sent an invalid answer ({error}): {}", shorten(text));
        ModelError::new(ModelErrorKind::Malformed, sentence)
    })?;
    match ServerFault::read(&document) {
        Some(fault) => Err(fault.into_error()),
        None => Ok(document),
    }
}

/// A value that is an object, or `null`, which is read as an empty one.
struct Document<J>(J);

impl<'de, J: Deserialize<'de>> Deserialize<'de> for Document<J> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DocumentVisitor(PhantomData))
    }
}

struct DocumentVisitor<J>(PhantomData<J>);

impl<'de, J: Deserialize<'de>> Visitor<'de> for DocumentVisitor<J> {
    type Value = Document<J>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        J::deserialize(UnitDeserializer::new()).map(Document)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        J::deserialize(MapAccessDeserializer::new(fields)).map(Document)
    }
}

/// Reads a non-empty string.
#[must_use]
pub fn text<'a, J: Json>(object: &'a J, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// Reads an object.
#[must_use]
pub fn object<'a, J: Json>(object: &'a J, name: &str) -> Option<&'a J> {
    object.get(name).filter(|value| value.is_object())
}

/// Reads a list.
#[must_use]
pub fn list<'a, J: Json>(object: &'a J, name: &str) -> Option<&'a [J]> {
    object.get(name)?.as_array()
}

/// Reads a list of objects.
#[must_use]
pub fn objects<'a, J: Json>(object: &'a J, name: &str) -> &'a [J] {
    list(object, name).filter(|list| list.iter().all(J::is_object)).unwrap_or_default()
}

/// Reads any value that is not `null`.
#[must_use]
pub fn any<'a, J: Json>(object: &'a J, name: &str) -> Option<&'a J> {
    object.get(name).filter(|value| !value.is_null())
}

/// Returns the JSON text of arguments, which some servers send as a value and others as its text.
#[must_use]
pub fn json_text<J: Json>(arguments: &J) -> Cow<'_, str> {
    match arguments.as_str() {
        Some(text) => text.into(),
        None => arguments.to_value().to_string().into(),
    }
}

/// Reads a count, which may be a float.
#[must_use]
pub fn count<J: Json>(object: &J, name: &str) -> Option<u64> {
    let value = object.get(name)?.as_number()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float's cast saturates, and a count of tokens is small"
    )]
    let rounded = || value.as_f64().map(|float| float as u64);
    value.as_u64().or_else(rounded)
}
