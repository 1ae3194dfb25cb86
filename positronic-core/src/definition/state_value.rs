//! State values: JSON with its decoded, typed form.
//!
//! The closures of a [`BrainDefinition`](super::BrainDefinition) encode what an author returns. They get the size limit of the
//! calling runner from the state value that they are called with.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::record::{check_document, encode_document, unify_numbers};

/// A JSON value with its decoded form, and the size limit of what is made of it. Cloning is cheap; the value is decoded once.
#[derive(Clone)]
pub struct StateValue(Arc<Inner>);

struct Inner {
    json: Arc<Value>,
    max_bytes: usize,
    typed: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl StateValue {
    /// Creates a state value from canonical JSON. Documents that an author's code makes of it have at most `max_bytes` bytes,
    /// the limit of the runner.
    #[must_use]
    pub fn new(json: Arc<Value>, max_bytes: usize) -> Self {
        Self(Arc::new(Inner { json, max_bytes, typed: OnceLock::new() }))
    }

    /// Creates the value that follows this one, with the same limit.
    #[must_use]
    pub fn with_json(&self, json: Arc<Value>) -> Self {
        Self::new(json, self.max_bytes())
    }

    /// Returns the JSON.
    #[must_use]
    pub fn json(&self) -> &Arc<Value> {
        &self.0.json
    }

    /// Returns the size limit of documents in bytes.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        self.0.max_bytes
    }

    /// Returns the typed value, which is decoded once and shared.
    ///
    /// # Errors
    ///
    /// An [`Error`] that names the type, when the value cannot be decoded as it.
    pub fn shared<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<Arc<T>> {
        if let Some(known) = self.0.typed.get()
            && let Ok(typed) = Arc::clone(known).downcast::<T>()
        {
            return Ok(typed);
        }
        let typed = Arc::new(self.owned::<T>()?);
        _ = self.0.typed.set(Arc::clone(&typed) as Arc<dyn Any + Send + Sync>);
        Ok(typed)
    }

    /// Decodes a new typed value.
    ///
    /// # Errors
    ///
    /// An [`Error`] that names the type, when the value cannot be decoded as it.
    pub fn owned<T: DeserializeOwned>(&self) -> Result<T> {
        decode("the stored value", &self.0.json)
    }

    /// Decodes, updates and encodes; returns the next value.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the value cannot be decoded, or the new one cannot be recorded.
    pub fn updated<T: DeserializeOwned + Serialize>(&self, update: impl FnOnce(&mut T)) -> Result<Value> {
        let mut value = self.owned::<T>()?;
        update(&mut value);
        encode_state(&value, self.max_bytes())
    }
}

/// Decodes a value; the error contains its name and the type.
pub(crate) fn decode<T: DeserializeOwned>(name: impl fmt::Display, value: &Value) -> Result<T> {
    read_value(value)
        .map_err(|error| Error::new(format!("cannot decode {name} as `{}`: {error}", std::any::type_name::<T>())))
}

/// Decodes a value. For a JSON schema, `5.0` is an integer: a type that does not read it as one reads `5`.
pub(crate) fn read_value<T: DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    T::deserialize(value).or_else(|error| {
        let mut unified = value.clone();
        unify_numbers(&mut unified);
        T::deserialize(&unified).map_err(|_| error)
    })
}

/// Encodes a value that is decoded again later, and checks that it can be.
pub(crate) fn encode_state<T: Serialize + DeserializeOwned>(value: &T, max_bytes: usize) -> Result<Value> {
    decodes::<T>(encode(value, max_bytes)?)
}

/// Encodes a value as canonical JSON of at most `max_bytes` bytes.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T, max_bytes: usize) -> Result<Value> {
    encode_document(value, max_bytes)
        .map_err(|error| Error::new(format!("cannot encode `{}` as JSON: {error}", std::any::type_name::<T>())))
}

/// Checks JSON that was not made by [`encode`] against the same limits.
pub(crate) fn recordable(what: &str, value: &Value, max_bytes: usize) -> Result<()> {
    check_document(value, max_bytes).map_err(|error| Error::new(format!("cannot record {what}: {error}")))
}

/// Rejects a value that cannot be decoded as its own type: it would fail where it is read, which may be much later and far
/// from the code that made it.
fn decodes<T: Serialize + DeserializeOwned>(document: Value) -> Result<Value> {
    let name = std::any::type_name::<T>();
    // Equality cannot be checked: types need not be comparable, and a `HashSet` encodes in any order.
    match T::deserialize(&document) {
        Ok(_) => Ok(document),
        Err(error) => Err(Error::new(format!("cannot decode `{name}` from its own JSON: {error}"))),
    }
}

impl fmt::Debug for StateValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.json.fmt(f)
    }
}
