//! Outputs of types that an application adds.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::record::CustomOutput;

/// A type whose values a tool can show beside its result, with a projection of its own.
///
/// The record keeps the value as JSON, so old records are read when the type is gone.
///
/// ```
/// use positronic_core::dsl::OutputType;
/// use positronic_core::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Citation { title: String, url: String }
///
/// impl OutputType for Citation {
///     const KIND: &'static str = "citation";
///
///     fn fallback(&self) -> String {
///         format!("see {} ({})", self.title, self.url)
///     }
///
///     fn model_text(&self) -> Option<String> {
///         Some(format!("[the user sees a link to {}]", self.title))
///     }
/// }
///
/// # let _ = brain("Librarian").r#loop("Answer", |cx| cx.system("Cite.").tool("cite", |t| {
/// t.execute(async |_: NoArgs, cx| {
///     cx.add_output(&Citation { title: "On Rust".to_owned(), url: "https://example.com".to_owned() })?;
///     Ok("cited")
/// })
/// # }));
/// ```
pub trait OutputType: Serialize {
    /// The name of the type in the record.
    const KIND: &'static str;

    /// Returns what is shown where the type is not known, such as in a terminal.
    fn fallback(&self) -> String;

    /// Returns what the model reads of it, in the tool message of its call. It is asked once and recorded; nothing is told
    /// where it is not written.
    fn model_text(&self) -> Option<String> {
        None
    }
}

impl CustomOutput {
    /// Reads the output as a value of its type; `None` when it is of another.
    ///
    /// # Errors
    ///
    /// An [`Error`] when it is of this type, but was recorded by a version of it that does not fit any more.
    pub fn read<T: OutputType + DeserializeOwned>(&self) -> Result<Option<T>> {
        if self.kind != T::KIND {
            return Ok(None);
        }
        T::deserialize(&self.data).map(Some).map_err(|error| {
            Error::new(format!("the recorded output `{}` is no `{}`: {error}", self.kind, std::any::type_name::<T>()))
        })
    }
}
