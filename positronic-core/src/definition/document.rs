//! A document: JSON that is the truth, and the typed value that code sees.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::limit::max_document_bytes;
use crate::error::{Error, Result};
use crate::record::{check_document, encode_document};

/// A JSON document with the value that was decoded from it. Cloning is cheap; the value is decoded once.
#[derive(Clone)]
pub struct StateValue(Arc<Inner>);

struct Inner {
    json: Arc<Value>,
    typed: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl StateValue {
    /// Makes a document from canonical JSON.
    #[must_use]
    pub fn new(json: Arc<Value>) -> Self {
        Self(Arc::new(Inner { json, typed: OnceLock::new() }))
    }

    /// Returns the JSON.
    #[must_use]
    pub fn json(&self) -> &Arc<Value> {
        &self.0.json
    }

    /// Returns the typed value, shared by all who ask.
    ///
    /// # Errors
    ///
    /// An [`Error`] that names the type, when the document is not one of it.
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

    /// Decodes a typed value of its own.
    ///
    /// # Errors
    ///
    /// An [`Error`] that names the type, when the document is not one of it.
    pub fn owned<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(&*self.0.json)
            .map_err(|error| Error::new(format!("the stored document is no `{}`: {error}", std::any::type_name::<T>())))
    }

    /// Decodes, changes and encodes: the next document.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the document cannot be decoded, or when the new state cannot be recorded.
    pub fn updated<T: DeserializeOwned + Serialize>(&self, update: impl FnOnce(&mut T)) -> Result<Value> {
        let mut value = self.owned::<T>()?;
        update(&mut value);
        encode_state(&value)
    }
}

/// Encodes a value as a canonical document, within the limits of the runner that runs the code around.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Value> {
    encode_within(value, max_document_bytes())
}

/// Encodes a value that code decodes again later, and checks that it can.
pub(crate) fn encode_state<T: Serialize + DeserializeOwned>(value: &T) -> Result<Value> {
    decodes::<T>(encode(value)?)
}

/// As [`encode_state`], for a value that is a part of the program and may have any size.
pub(crate) fn encode_constant_state<T: Serialize + DeserializeOwned>(value: &T) -> Result<Value> {
    decodes::<T>(encode_within(value, usize::MAX)?)
}

fn encode_within<T: Serialize + ?Sized>(value: &T, max_bytes: usize) -> Result<Value> {
    encode_document(value, max_bytes)
        .map_err(|error| Error::new(format!("cannot encode `{}` as JSON: {error}", std::any::type_name::<T>())))
}

/// Checks JSON that code has made without [`encode`] against the same limits.
pub(crate) fn recordable(what: &str, value: &Value) -> Result<()> {
    check_document(value, max_document_bytes())
        .map_err(|error| Error::new(format!("{what} cannot be recorded: {error}")))
}

/// Refuses a document that does not decode as the type that it was encoded from: it would fail where it is read, which may
/// be long after, and far from the code that made it.
fn decodes<T: Serialize + DeserializeOwned>(document: Value) -> Result<Value> {
    let name = std::any::type_name::<T>();
    // Whether it decodes as the same value cannot be told: types need not be comparable, and a `HashSet` encodes in any order.
    match T::deserialize(&document) {
        Ok(_) => Ok(document),
        Err(error) => Err(Error::new(format!("`{name}` does not decode from its own JSON: {error}"))),
    }
}

impl fmt::Debug for StateValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.json.fmt(f)
    }
}
