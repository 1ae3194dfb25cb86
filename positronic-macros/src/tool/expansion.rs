//! Generates the function that returns the tool.
//!
//! Paths are absolute, local names are hygienic, and generated type names avoid the author's. Generated calls have the
//! spans of the author's tokens that they come from: of a flag, of the result type for `execute`, else of the
//! function's name.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Attribute, FnArg, Generics, LitStr, ReturnType, Type, parse_quote};

use super::arguments::{Arguments, named};
use super::flags::{FlagCall, Flags, Value};
use super::function::{Function, is_lint_level};
use super::parameters::{Parameter, Parameters};

/// Style lints that do not apply, since the macro dictates the signature.
const IMPOSED: [&str; 2] = ["unused_async", "needless_pass_by_value"];

/// Generates the tool.
pub(super) fn tool(
    function: &Function,
    parameters: &Parameters,
    id: &LitStr,
    flags: &Flags,
    description: &str,
) -> TokenStream {
    let name = &function.signature.ident;
    let here = Span::call_site().located_at(name.span());
    let local = Span::mixed_site().located_at(name.span());
    let (arguments, context, builder) =
        (Ident::new("arguments", local), Ident::new("cx", local), Ident::new("t", local));

    let header = Header::new(function, parameters.context.as_ref());
    let work = work(function);
    let arguments_type = header.names.free("Arguments", here);
    let Arguments { definition, generics } =
        Arguments::new(&arguments_type, &function.signature.generics, parameters, here);
    let (_, arguments_of, _) = generics.split_for_impl();

    let turbofish = turbofish(&function.signature.generics);
    let values = parameters.list.iter().map(|parameter| match parameter {
        Parameter::Argument(argument) => {
            let name = &argument.name;
            quote_spanned!(here=> #arguments.#name)
        }
        Parameter::Context => context.to_token_stream(),
    });
    let arguments_pattern = if parameters.arguments().next().is_some() { quote!(#arguments) } else { quote!(_) };
    let context_pattern = if parameters.context.is_some() { quote!(#context) } else { quote!(_) };

    let description = (!description.is_empty()).then(|| quote_spanned!(here=> .description(#description)));
    let calls = flags.calls.iter().map(builder_call);
    let execute = Ident::new("execute", Span::call_site().located_at(result_span(function)));

    header.write(&quote_spanned! {here=>
        #definition

        #work

        ::positronic_core::dsl::Tool::new(#id, |#builder| {
            #builder #description #(#calls)* .#execute(|#arguments_pattern: #arguments_type #arguments_of, #context_pattern| async move {
                #name #turbofish (#(#values),*).await
            })
        })
    })
}

/// Generates a function of the right type that is never called, for an invalid signature: it avoids further errors about a
/// missing function. The author's function remains in it, unless it has a `self`.
pub(super) fn placeholder(function: &Function) -> TokenStream {
    let work = function.signature.receiver().is_none().then(|| {
        let work = work(function);
        quote!(#[allow(dead_code, reason = "it is never called")] #work)
    });
    Header::new(function, None).write(&quote!(#work ::core::unreachable!()))
}

/// The head of the generated function.
struct Header<'a> {
    function: &'a Function,
    names: Names,
    types: [Type; 3],
    generics: Generics,
}

impl<'a> Header<'a> {
    /// Takes the types from the context; a function without one gets three type parameters.
    fn new(function: &'a Function, context: Option<&[Type; 3]>) -> Self {
        let names = Names::of(function);
        let mut generics = function.signature.generics.clone();
        let types = context.cloned().unwrap_or_else(|| {
            [("O", "Options"), ("S", "State"), ("V", "Services")].map(|(letter, bound)| {
                let (parameter, bound) = (names.free(letter, Span::call_site()), format_ident!("{bound}"));
                generics.params.push(parse_quote!(#parameter));
                generics.make_where_clause().predicates.push(parse_quote!(#parameter: ::positronic_core::dsl::#bound));
                parse_quote!(#parameter)
            })
        });
        Self { function, names, types, generics }
    }

    fn write(&self, body: &TokenStream) -> TokenStream {
        let Function { attributes, visibility, signature, .. } = self.function;
        let attributes = attributes.iter().filter(|attribute| is_outer(attribute));
        let (fn_token, name, [options, state, services]) = (&signature.fn_token, &signature.ident, &self.types);
        let (parameters, _, bounds) = self.generics.split_for_impl();
        quote! {
            #(#attributes)*
            #visibility #fn_token #name #parameters() -> ::positronic_core::dsl::Tool<#options, #state, #services> #bounds {
                #body
            }
        }
    }
}

/// Returns the author's function, for nesting in the generated one.
fn work(function: &Function) -> TokenStream {
    let mut signature = function.signature.clone();
    for input in &mut signature.inputs {
        if let FnArg::Typed(parameter) = input {
            parameter.attrs.retain(is_lint_level);
        }
    }
    // Already reported mistakes are corrected here, to avoid further errors.
    signature.asyncness.get_or_insert_default();
    (signature.constness, signature.unsafety, signature.abi) = (None, None, None);
    let (outer, inner): (Vec<&Attribute>, Vec<&Attribute>) = function.attributes.iter().partition(|it| is_outer(it));
    let said: HashSet<String> =
        outer.iter().filter(|it| is_lint_level(it)).flat_map(|it| words(it.to_token_stream())).collect();
    let imposed = IMPOSED.iter().filter(|lint| !said.contains(**lint)).map(|lint| {
        let lint = format_ident!("{lint}");
        quote!(#[allow(clippy::#lint, reason = "a tool is async and owns its arguments")])
    });
    let body = &function.body;
    quote!(#(#imposed)* #(#inner)* #signature #body)
}

/// Returns whether an attribute belongs to the generated outer function, and not to the author's.
fn is_outer(attribute: &Attribute) -> bool {
    let others = ["cfg", "cfg_attr", "doc", "deprecated", "must_use"];
    is_lint_level(attribute) || others.iter().any(|name| attribute.path().is_ident(name))
}

pub(crate) fn builder_call(call: &FlagCall) -> TokenStream {
    let method = Ident::new(call.method, call.span);
    let value = match &call.value {
        Value::Nothing => TokenStream::new(),
        Value::Text(text) => text.to_token_stream(),
        Value::Count(count) => count.to_token_stream(),
        Value::Duration(duration) => match (duration.as_secs(), duration.subsec_millis()) {
            (seconds, 0) => quote!(::core::time::Duration::from_secs(#seconds)),
            (seconds, millis) => {
                let millis = seconds.saturating_mul(1000).saturating_add(millis.into());
                quote!(::core::time::Duration::from_millis(#millis))
            }
        },
    };
    quote_spanned!(call.span=> .#method(#value))
}

fn result_span(function: &Function) -> Span {
    match &function.signature.output {
        ReturnType::Type(_, ty) => ty.span(),
        ReturnType::Default => function.signature.ident.span(),
    }
}

/// Passes the function's own type parameters to the author's function.
fn turbofish(generics: &Generics) -> TokenStream {
    let names: Vec<&Ident> = generics.params.iter().filter_map(named).collect();
    if names.is_empty() { TokenStream::new() } else { quote!(::<#(#names),*>) }
}

/// The identifiers that the author's function uses.
struct Names(HashSet<String>);

impl Names {
    fn of(function: &Function) -> Self {
        let mut used = words(function.signature.to_token_stream());
        used.extend(words(function.body.to_token_stream()));
        Self(used)
    }

    /// Returns an identifier that the author's code does not use: the wanted one, or the first with a number.
    fn free(&self, wanted: &str, span: Span) -> Ident {
        let numbered = (1..).map(|number| format!("{wanted}{number}"));
        let mut candidates = std::iter::once(wanted.to_owned()).chain(numbered);
        let free = candidates.find(|name| !self.0.contains(name));
        Ident::new(free.as_deref().unwrap_or(wanted), span)
    }
}

/// Collects every identifier at any depth.
pub(crate) fn words(tokens: TokenStream) -> HashSet<String> {
    let mut found = HashSet::new();
    for token in tokens {
        match token {
            TokenTree::Ident(word) => {
                found.insert(word.to_string());
            }
            TokenTree::Group(group) => found.extend(words(group.stream())),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    found
}
