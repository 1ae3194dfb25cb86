// Without `cfg(doctest)`: the code of these documents needs the core, so `tests/src/lib.rs` tests it.
#![cfg_attr(not(doctest), doc = include_str!("lib.md"))]

mod actions;
mod brain;
mod tool;

use proc_macro::TokenStream;

#[cfg_attr(not(doctest), doc = include_str!("brain.md"))]
#[proc_macro]
pub fn brain(input: TokenStream) -> TokenStream {
    brain::expand(input.into()).into()
}

#[cfg_attr(not(doctest), doc = include_str!("tool.md"))]
#[proc_macro_attribute]
pub fn tool(flags: TokenStream, function: TokenStream) -> TokenStream {
    tool::expand(flags.into(), function.into()).into()
}

#[cfg_attr(not(doctest), doc = include_str!("actions.md"))]
#[proc_macro_derive(Actions, attributes(action, serde, schemars))]
pub fn actions(item: TokenStream) -> TokenStream {
    actions::expand(item.into()).into()
}
