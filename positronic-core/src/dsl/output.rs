//! Application-defined output types.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::definition::decode;
use crate::error::Result;
use crate::record::CustomOutput;

/// A type whose values a tool can show besides its result.
///
/// The record stores the value as JSON, so old records remain readable without the type.
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

    /// Returns the text for interfaces that do not know the type, such as a terminal.
    fn fallback(&self) -> String;

    /// Returns the text for the model, in the tool message of its call. It is computed once and recorded; the default is no
    /// text.
    fn model_text(&self) -> Option<String> {
        None
    }
}

impl CustomOutput {
    /// Decodes the output; `None` if it has another type.
    ///
    /// # Errors
    ///
    /// An [`Error`](crate::error::Error) when it was recorded by an incompatible version of this type.
    pub fn read<T: OutputType + DeserializeOwned>(&self) -> Result<Option<T>> {
        if self.kind != T::KIND {
            return Ok(None);
        }
        decode(format_args!("the recorded output `{}`", self.kind), &self.data).map(Some)
    }
}
