//! Generates the struct of the tool's arguments, whose schema the model sees.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::{Attribute, ConstParam, GenericParam, Generics};

use super::expansion::words;
use super::parameters::Parameters;

/// The struct of the arguments.
pub(super) struct Arguments {
    pub(super) definition: TokenStream,
    /// Its generics: those of the function that its fields use.
    pub(super) generics: Generics,
}

impl Arguments {
    pub(super) fn new(name: &Ident, generics: &Generics, parameters: &Parameters, here: Span) -> Self {
        let generics = used_generics(generics, parameters);
        let fields = parameters.arguments().map(|argument| {
            let (attributes, name, ty) = (&argument.field_attributes, &argument.name, &argument.ty);
            quote!(#(#attributes)* #name: #ty)
        });
        // `flatten` takes the remaining fields, so serde rejects the two together.
        let flattened = parameters.arguments().any(|argument| argument.field_attributes.iter().any(is_flatten));
        let strict = (!flattened).then(|| quote!(, deny_unknown_fields));
        let (declared, ..) = generics.split_for_impl();
        let definition = quote_spanned! {here=>
            #[derive(::positronic_core::__private::serde::Deserialize, ::positronic_core::__private::schemars::JsonSchema)]
            #[serde(crate = "::positronic_core::__private::serde" #strict)]
            #[schemars(crate = "::positronic_core::__private::schemars")]
            struct #name #declared { #(#fields),* }
        };
        Self { definition, generics }
    }
}

fn is_flatten(attribute: &Attribute) -> bool {
    attribute.path().is_ident("serde") && words(attribute.to_token_stream()).contains("flatten")
}

/// Returns the generics that the arguments' types use, without bounds: the derives add theirs.
fn used_generics(generics: &Generics, parameters: &Parameters) -> Generics {
    let used: HashSet<String> =
        parameters.arguments().flat_map(|argument| words(argument.ty.to_token_stream())).collect();
    let params = generics.params.iter().filter_map(|param| match param {
        GenericParam::Type(param) => Some(GenericParam::Type(param.ident.clone().into())),
        GenericParam::Const(param) => Some(GenericParam::Const(ConstParam { default: None, ..param.clone() })),
        GenericParam::Lifetime(_) => None,
    });
    let params = params.filter(|param| named(param).is_some_and(|name| used.contains(&name.to_string())));
    Generics { params: params.collect(), ..Generics::default() }
}

/// Returns the name of a type or constant parameter.
pub(super) fn named(param: &GenericParam) -> Option<&Ident> {
    match param {
        GenericParam::Type(param) => Some(&param.ident),
        GenericParam::Const(param) => Some(&param.ident),
        GenericParam::Lifetime(_) => None,
    }
}
