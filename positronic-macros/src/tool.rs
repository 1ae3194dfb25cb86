//! `#[tool]`: generates a function that returns the tool from an async function.
//!
//! The stages are the files in reading order: [`function`] parses all but the body, [`flags`] and [`parameters`] parse
//! the rest, [`arguments`] generates the struct whose schema the model sees, and [`expansion`] the function around it.
//! None of them stops at the first mistake; [`error_collector`] collects them. A function is generated even with errors, so that
//! the body is still checked and an editor completes inside it.

mod arguments;
pub(crate) mod error_collector;
pub(crate) mod expansion;
pub(crate) mod flags;
pub(crate) mod function;
mod parameters;

use proc_macro2::TokenStream;

use error_collector::Mistakes;
use flags::Flags;
use function::Function;
use parameters::Parameters;

/// Expands `#[tool(flags)] function`.
pub(crate) fn expand(flags: TokenStream, function: TokenStream) -> TokenStream {
    let mut mistakes = Mistakes::default();
    let flags = Flags::read(flags, &mut mistakes);
    let function = match syn::parse2::<Function>(function) {
        Ok(function) => function,
        Err(error) => {
            mistakes.add(error);
            return mistakes.into_compile_errors();
        }
    };
    let description = function.check(&mut mistakes);
    let id = flags.id(&function.signature.ident, &mut mistakes);
    let expanded = match Parameters::read(&function, &mut mistakes) {
        Some(parameters) if function.has_result() => expansion::tool(&function, &parameters, &id, &flags, &description),
        _ => expansion::placeholder(&function),
    };
    let mut tokens = mistakes.into_compile_errors();
    tokens.extend(expanded);
    tokens
}

#[cfg(test)]
mod tests;
