//! Templates of prompts, whose variables are the fields of a type.
//!
//! [`templates!`] embeds files and makes a struct of them. `new()` parses all of them and checks each against its type, so it belongs to
//! the start of a project; it panics with a sentence that names the template and the line.
//!
//! ```
//! use positronic_templates::{Template, TemplateError, TemplateSet};
//! use schemars::JsonSchema;
//! use serde::Serialize;
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Greeting<'a> {
//!     customer: &'a str,
//!     orders: u32,
//! }
//!
//! let set = TemplateSet::parse([("greeting.md", "Greet {{ customer }}.{% if orders > 9 %} They buy often.{% endif %}")])?;
//! let greeting: Template<Greeting<'_>> = set.template("greeting.md")?;
//! assert_eq!(greeting.render(&Greeting { customer: "Ann", orders: 12 })?, "Greet Ann. They buy often.");
//!
//! let set = TemplateSet::parse([("greeting.md", "Greet\n{{ custmer }}.")])?;
//! let error = set.template::<Greeting<'_>>("greeting.md").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "the template `greeting.md`, line 2, uses `custmer`, which `Greeting` does not have; it has `customer`, `orders`"
//! );
//! # Ok::<_, TemplateError>(())
//! ```
//!
//! | what is wrong | found |
//! |---|---|
//! | a file that does not exist | when the project is compiled |
//! | syntax; an unknown variable, field of a list's item, filter or included template | by `new()`, at the start; as an error, by [`TemplateSet::parse`] or [`TemplateSet::template`] |
//! | an index beyond a list, a field that serde leaves out, a filter that refuses a value | by [`Template::render`] |
//!
//! The syntax is Jinja's. Values are not escaped. A line that has only a block (`{% if … %}`) leaves no empty line behind, and the
//! line break at the end of the text is left out. A value that is not there is an error and never an empty text.

mod check;
mod error;
mod sample;
mod set;

pub use error::TemplateError;
pub use set::{Template, TemplateSet};

#[doc(hidden)]
pub mod __private {
    use crate::TemplateError;

    /// Panics at the author's line with the error of an embedded template.
    #[track_caller]
    #[expect(clippy::panic, reason = "an author's mistake, reported at its source before anything runs")]
    pub fn valid<T>(result: Result<T, TemplateError>) -> T {
        match result {
            Ok(value) => value,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Makes a struct of embedded templates. Paths are relative to the file with the macro; they are also the names by which the templates
/// include and extend each other.
///
/// ```
/// use positronic_templates::{Template, templates};
/// use schemars::JsonSchema;
/// use serde::Serialize;
///
/// #[derive(Serialize, JsonSchema)]
/// struct Support {
///     customer: String,
///     articles: Vec<Article>,
/// }
///
/// #[derive(Serialize, JsonSchema)]
/// struct Article {
///     title: String,
/// }
///
/// templates! {
///     /// The prompts of the shop.
///     pub struct Prompts {
///         support: Template<Support> = "../tests/it/prompts/support.md",
///         tone: Template<()> = "../tests/it/prompts/tone.md",
///     }
/// }
///
/// let prompts = Prompts::new();
/// let articles = vec![Article { title: "Refunds".to_owned() }];
/// let text = prompts.support.render(&Support { customer: "Ann".to_owned(), articles })?;
/// assert_eq!(text, "You help Ann.\nBe short and kind.\n- Refunds");
/// # Ok::<_, positronic_templates::TemplateError>(())
/// ```
#[macro_export]
macro_rules! templates {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $template:ty = $path:literal),* $(,)?
    }) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $template),*
        }

        impl $name {
            /// Parses the templates, and checks them against the types of their variables.
            ///
            /// # Panics
            ///
            /// When one cannot be parsed, or has variables that its type does not have.
            #[track_caller]
            $vis fn new() -> Self {
                let set = $crate::__private::valid($crate::TemplateSet::parse([$(($path, ::core::include_str!($path))),*]));
                Self { $($field: $crate::__private::valid(set.template($path))),* }
            }
        }
    };
}
