//! A document: JSON that is the truth, and the typed value that code sees.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::record::canonical;

/// A JSON document with the value that was decoded from it. Cloning is cheap; the value is decoded once.
#[derive(Clone)]
pub struct Document(Arc<Inner>);

struct Inner {
    json: Arc<Value>,
    typed: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Document {
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
    /// An [`Error`] when the document cannot be decoded or the changed value cannot be encoded.
    pub fn updated<T: DeserializeOwned + Serialize>(&self, update: impl FnOnce(&mut T)) -> Result<Value> {
        let mut value = self.owned::<T>()?;
        update(&mut value);
        encode(&value)
    }
}

/// Encodes a value as a canonical document.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Value> {
    canonical(value)
        .map_err(|error| Error::new(format!("`{}` cannot be written as JSON: {error}", std::any::type_name::<T>())))
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.json.fmt(f)
    }
}
