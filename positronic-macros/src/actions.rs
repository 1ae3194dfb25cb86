//! `#[derive(Actions)]`: generates a tool for each variant of an enum.
//!
//! It reads flags and docs like `#[tool]`, and reports all mistakes together. Generated calls have the spans of the
//! author's tokens that they come from.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::{Attribute, Data, DataEnum, DeriveInput, Fields, LitStr, Meta, Variant};

use crate::tool::error_collector::Mistakes;
use crate::tool::expansion::{builder_call, words};
use crate::tool::flags::Flags;
use crate::tool::function::description;

/// Expands `#[derive(Actions)] enum …`.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let mut mistakes = Mistakes::default();
    let used = words(item.clone());
    let item = match syn::parse2::<DeriveInput>(item) {
        Ok(item) => item,
        Err(error) => return error.into_compile_error(),
    };
    let name = &item.ident;
    let variants = match &item.data {
        Data::Enum(DataEnum { variants, .. }) => variants,
        Data::Struct(_) | Data::Union(_) => {
            mistakes.at(name, "`Actions` is derived for an enum: each of its variants is an action");
            return mistakes.into_compile_errors();
        }
    };
    if variants.is_empty() {
        mistakes.at(name, "an enum of actions has at least one variant");
    }
    if !item.generics.params.is_empty() {
        mistakes.at(&item.generics, "an enum of actions has no parameters: a model chooses among types that are known");
    }
    for attribute in item.attrs.iter().filter(|attribute| attribute.path().is_ident("action")) {
        mistakes.at(attribute, "`#[action(…)]` stands over a variant: the flags are those of one action");
    }
    let mut ids = HashMap::new();
    let actions: Vec<_> = variants.iter().filter_map(|it| Action::read(it, &used, &mut ids, &mut mistakes)).collect();
    let errors = mistakes.into_compile_errors();
    if !errors.is_empty() {
        // The implementation is always generated, so that its absence does not add errors.
        let body = quote!(::core::unreachable!());
        let implementation = item.generics.params.is_empty().then(|| implementation(name, &quote!(_), &body));
        return quote!(#errors #implementation);
    }
    let act = Ident::new("act", Span::mixed_site());
    let inputs = actions.iter().map(|action| &action.input);
    let tools = actions.iter().map(|action| action.tool(name, &act));
    implementation(name, &act.to_token_stream(), &quote!(#(#inputs)* ::std::vec![#(#tools),*]))
}

fn implementation(name: &Ident, act: &TokenStream, body: &TokenStream) -> TokenStream {
    quote! {
        #[automatically_derived]
        impl ::positronic_core::dsl::Actions for #name {
            fn tools<
                O: ::positronic_core::dsl::Options,
                S: ::positronic_core::dsl::State,
                V: ::positronic_core::dsl::Services,
                R: ::positronic_core::dsl::IntoReply<S> + 'static,
            >(
                #act: ::positronic_core::dsl::Act<Self, O, S, V, R>,
            ) -> ::std::vec::Vec<::positronic_core::dsl::Tool<O, S, V>> {
                #body
            }
        }
    }
}

/// A variant.
struct Action<'a> {
    variant: &'a Variant,
    id: LitStr,
    description: String,
    flags: Flags,
    /// The type of the input.
    ty: TokenStream,
    /// Its definition, if it is generated.
    input: TokenStream,
}

impl<'a> Action<'a> {
    fn read(
        variant: &'a Variant,
        used: &HashSet<String>,
        ids: &mut HashMap<String, &'a Ident>,
        mistakes: &mut Mistakes,
    ) -> Option<Self> {
        let name = &variant.ident;
        let flags = Flags::read(flags(variant, mistakes), mistakes);
        let description = description(&variant.attrs);
        if description.is_empty() {
            mistakes.at(name, "an action needs a doc comment: the model reads it to know what the action does");
        }
        let id = flags.id_or(&snake_case(&name.unraw().to_string()), name, mistakes);
        // Providers allow no dots, so names that differ only in a dot collide.
        if let Some(earlier) = ids.insert(id.value().replace('.', "_"), name) {
            mistakes.at(&id, format!("the action `{earlier}` has this name already: give one of them another"));
        }
        let (ty, input) = input(variant, used, mistakes)?;
        Some(Self { variant, id, description, flags, ty, input })
    }

    fn tool(&self, actions: &Ident, act: &Ident) -> TokenStream {
        let Self { variant, id, description, flags, ty, .. } = self;
        let here = Span::call_site().located_at(variant.ident.span());
        let local = |name: &str| Ident::new(name, Span::mixed_site().located_at(variant.ident.span()));
        let (arguments, cx, t) = (local("arguments"), local("cx"), local("t"));
        let name = &variant.ident;
        let made = match &variant.fields {
            Fields::Named(fields) => {
                let fields = fields.named.iter().filter_map(|field| field.ident.as_ref());
                quote!(#actions::#name { #(#fields: #arguments.#fields),* })
            }
            Fields::Unnamed(_) => quote!(#actions::#name(#arguments)),
            Fields::Unit => quote!(#actions::#name),
        };
        let pattern = if variant.fields.is_empty() { quote!(_) } else { arguments.to_token_stream() };
        let calls = flags.calls.iter().map(builder_call);
        quote_spanned! {here=> {
            let #act = ::std::sync::Arc::clone(&#act);
            ::positronic_core::dsl::Tool::new(#id, |#t| {
                #t.description(#description) #(#calls)* .execute(move |#pattern: #ty, #cx| #act(#made, #cx))
            })
        }}
    }
}

/// Returns the type of a variant's input, with its definition.
fn input(variant: &Variant, used: &HashSet<String>, mistakes: &mut Mistakes) -> Option<(TokenStream, TokenStream)> {
    let fields = match &variant.fields {
        Fields::Named(fields) => Some(&fields.named),
        Fields::Unit => None,
        Fields::Unnamed(fields) => {
            let mut all = fields.unnamed.iter();
            let (Some(field), None) = (all.next(), all.next()) else {
                mistakes.at(
                    fields,
                    "an action's input has names: write fields with names, or one type that is the whole input",
                );
                return None;
            };
            for attribute in field.attrs.iter().filter(|attribute| is_of_schema(attribute)) {
                mistakes.at(attribute, "this type is the whole input: put the attribute on its own fields");
            }
            return Some((field.ty.to_token_stream(), TokenStream::new()));
        }
    };
    let numbered = (1..).map(|number| format!("{}Input{number}", variant.ident.unraw()));
    let mut names = std::iter::once(format!("{}Input", variant.ident.unraw())).chain(numbered);
    let free = names.find(|name| !used.contains(name))?;
    let name = format_ident!("{free}", span = variant.ident.span());
    let written = fields.into_iter().flatten().map(|field| {
        let attributes = field.attrs.iter().filter(|attribute| is_of_schema(attribute));
        let (name, ty) = (&field.ident, &field.ty);
        quote!(#(#attributes)* #name: #ty)
    });
    let flattens = |attribute: &Attribute| {
        attribute.path().is_ident("serde") && words(attribute.to_token_stream()).contains("flatten")
    };
    // `flatten` takes the remaining fields, so serde rejects the two together.
    let flattened = fields.into_iter().flatten().any(|field| field.attrs.iter().any(flattens));
    let strict = (!flattened).then(|| quote!(, deny_unknown_fields));
    let definition = quote! {
        #[derive(::positronic_core::__private::serde::Deserialize, ::positronic_core::__private::schemars::JsonSchema)]
        #[serde(crate = "::positronic_core::__private::serde" #strict)]
        #[schemars(crate = "::positronic_core::__private::schemars")]
        struct #name { #(#written),* }
    };
    Some((name.to_token_stream(), definition))
}

/// Returns whether an attribute belongs to the field of the input.
fn is_of_schema(attribute: &Attribute) -> bool {
    ["doc", "serde", "schemars"].iter().any(|name| attribute.path().is_ident(name))
}

/// Returns the content of the parentheses of `#[action(…)]`.
fn flags(variant: &Variant, mistakes: &mut Mistakes) -> TokenStream {
    let mut found = variant.attrs.iter().filter(|attribute| attribute.path().is_ident("action"));
    let first = found.next();
    for second in found {
        mistakes.at(second, "an action's flags stand in one `#[action(…)]`");
    }
    match first.map(|attribute| &attribute.meta) {
        None => TokenStream::new(),
        Some(Meta::List(list)) => list.tokens.clone(),
        Some(other) => {
            mistakes.at(other, "the flags stand in parentheses: `#[action(exit)]`");
            TokenStream::new()
        }
    }
}

/// Converts `LookAround` to `look_around`, and `HTTPGet` to `http_get`.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::with_capacity(name.len() + 4);
    for (index, letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| letters.get(before));
        let after = letters.get(index + 1);
        let begins_word = letter.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_numeric()
                    || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
            });
        if begins_word {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snake_case_separates_words() {
        for (name, snake) in [
            ("Move", "move"),
            ("LookAround", "look_around"),
            ("HTTPGet", "http_get"),
            ("RunV2Now", "run_v2_now"),
            ("A", "a"),
            ("already_snake", "already_snake"),
        ] {
            assert_eq!(snake_case(name), snake);
        }
    }
}
