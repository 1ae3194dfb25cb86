//! The function's parameters: arguments from the model, and optionally the context.

use quote::ToTokens;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{
    Attribute, FnArg, GenericArgument, Ident, Lifetime, Pat, PatIdent, PatType, PathArguments, Type, TypeImplTrait,
    TypeReference, parse_quote, parse_quote_spanned,
};

use super::error_collector::Mistakes;
use super::function::{Function, is_lint_level};

/// The parameters, in order.
pub(super) struct Parameters {
    pub(super) list: Vec<Parameter>,
    /// Options, state and services of the context, if there is one.
    pub(super) context: Option<[Type; 3]>,
}

/// A parameter.
pub(super) enum Parameter {
    Argument(Argument),
    Context,
}

/// A parameter from the model.
pub(super) struct Argument {
    pub(super) name: Ident,
    pub(super) ty: Box<Type>,
    /// Attributes for the field: its docs, `serde`, `schemars` and all others but lint levels.
    pub(super) field_attributes: Vec<Attribute>,
}

impl Parameters {
    /// Parses the parameters; reports mistakes and returns `None` if there are any.
    pub(super) fn read(function: &Function, mistakes: &mut Mistakes) -> Option<Self> {
        let mut list = Vec::new();
        let mut context = None;
        let mut sound = true;
        for input in &function.signature.inputs {
            let parameter = match input {
                FnArg::Receiver(receiver) => Err(syn::Error::new_spanned(
                    receiver,
                    "a tool is a free function: what it needs comes from `cx.services`, not from `self`",
                )),
                FnArg::Typed(typed) => match context_types(&typed.ty).or_else(|| aliased_types(typed)) {
                    Some(_) if context.is_some() => {
                        Err(syn::Error::new_spanned(typed, "a tool has one context, and this is a second"))
                    }
                    Some(types) => {
                        context = Some(types);
                        context_parameter(typed)
                    }
                    None => argument(typed),
                },
            };
            match parameter {
                Ok(parameter) => list.push(parameter),
                Err(error) => {
                    mistakes.add(error);
                    sound = false;
                }
            }
        }
        sound.then_some(Self { list, context })
    }

    /// Returns the parameters from the model.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.list.iter().filter_map(|parameter| match parameter {
            Parameter::Argument(argument) => Some(argument),
            Parameter::Context => None,
        })
    }
}

/// Returns the context's options, state and services if the type is a `ToolContext` or a reference to one.
fn context_types(ty: &Type) -> Option<[Type; 3]> {
    let path = match ty {
        Type::Reference(reference) => return context_types(&reference.elem),
        Type::Group(group) => return context_types(&group.elem),
        Type::Path(path) => &path.path,
        _ => return None,
    };
    let segment = path.segments.last().filter(|segment| segment.ident == "ToolContext")?;
    let mut types = match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => arguments.args.iter().collect(),
        PathArguments::None | PathArguments::Parenthesized(_) => Vec::new(),
    }
    .into_iter()
    .filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    });
    let mut next = |default: Type| types.next().unwrap_or(default);
    Some([next(parse_quote!(())), next(parse_quote!(())), next(parse_quote!(()))])
}

/// Returns the types of the context through a trait if the parameter is called as contexts are, and its type may be an alias.
fn aliased_types(typed: &PatType) -> Option<[Type; 3]> {
    let ty = match &*typed.ty {
        Type::Reference(reference) => &reference.elem,
        _ => &typed.ty,
    };
    let named = matches!(&*typed.pat, Pat::Ident(pattern) if ["cx", "_cx", "ctx", "_ctx"].iter().any(|name| pattern.ident == name));
    let last = match &**ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    };
    let typed = last.is_some_and(|segment| ["Cx", "Ctx", "Context"].iter().any(|name| segment.ident == name));
    if !named && !typed {
        return None;
    }
    let of = |name: &str| -> Type {
        let name = Ident::new(name, ty.span());
        parse_quote_spanned!(ty.span()=> <#ty as ::positronic_core::__private::AnyToolContext>::#name)
    };
    Some(["Options", "State", "Services"].map(of))
}

fn context_parameter(typed: &PatType) -> syn::Result<Parameter> {
    if let Type::Reference(reference) = &*typed.ty {
        return Err(syn::Error::new_spanned(
            reference,
            "the context is taken by value: write `ToolContext<…>` without the `&`",
        ));
    }
    Ok(Parameter::Context)
}

fn argument(typed: &PatType) -> syn::Result<Parameter> {
    let name = match &*typed.pat {
        Pat::Ident(PatIdent { by_ref: None, subpat: None, ident, .. }) => ident.clone(),
        pattern => {
            return Err(syn::Error::new_spanned(
                pattern,
                "an argument has a name, which becomes its name in the schema: take a pattern apart inside the function",
            ));
        }
    };
    if let Some(cfg) = typed.attrs.iter().find(|attribute| attribute.path().is_ident("cfg")) {
        return Err(syn::Error::new_spanned(
            cfg,
            "an argument cannot be switched off: put the `cfg` on the whole tool",
        ));
    }
    check_owned(&typed.ty)?;
    let field_attributes = typed.attrs.iter().filter(|attribute| !is_lint_level(attribute)).cloned().collect();
    Ok(Parameter::Argument(Argument { name, ty: typed.ty.clone(), field_attributes }))
}

/// Rejects types that cannot be decoded from JSON as owned values.
fn check_owned(ty: &Type) -> syn::Result<()> {
    let mut search = Borrowed(None);
    search.visit_type(ty);
    search.0.map_or(Ok(()), Err)
}

/// Finds the first borrowed or unnamed type.
struct Borrowed(Option<syn::Error>);

impl Borrowed {
    fn note(&mut self, tokens: impl ToTokens, message: &str) {
        if self.0.is_none() {
            self.0 = Some(syn::Error::new_spanned(tokens, message));
        }
    }
}

impl<'ast> Visit<'ast> for Borrowed {
    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        let owned = match &*reference.elem {
            Type::Path(path) if path.path.is_ident("str") => "use `String`",
            Type::Slice(_) => "use `Vec<…>`",
            _ => "leave the `&` out",
        };
        self.note(reference, &format!("arguments are decoded from JSON and have to be owned: {owned}"));
    }

    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if lifetime.ident != "static" {
            self.note(lifetime, "arguments are decoded from JSON and have to be owned: use a type without a lifetime");
        }
    }

    fn visit_type_impl_trait(&mut self, ty: &'ast TypeImplTrait) {
        self.note(ty, "arguments are decoded from JSON, which needs a type: name one instead of `impl …`");
    }

    fn visit_type(&mut self, ty: &'ast Type) {
        if self.0.is_none() {
            visit::visit_type(self, ty);
        }
    }
}
