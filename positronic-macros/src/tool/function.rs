//! The author's function: everything but the body is parsed, the body stays tokens.
//!
//! So an unfinished body is accepted, and its tokens reach the compiler unchanged.

use proc_macro2::{Group, TokenTree};
use quote::ToTokens as _;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Expr, ExprLit, Lit, Meta, ReturnType, Signature, Visibility};

use super::error_collector::Mistakes;

/// An async function that becomes a tool.
pub(super) struct Function {
    pub(super) attributes: Vec<Attribute>,
    pub(super) visibility: Visibility,
    pub(super) signature: Signature,
    pub(super) body: Group,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        let signature = input.parse()?;
        match input.parse()? {
            TokenTree::Group(body) if input.is_empty() => Ok(Self { attributes, visibility, signature, body }),
            other => Err(syn::Error::new_spanned(other, "a tool is a function with a body")),
        }
    }
}

impl Function {
    /// Checks everything but the parameters and returns the description, which is the doc comment.
    pub(super) fn check(&self, mistakes: &mut Mistakes) -> String {
        let Signature { constness, asyncness, unsafety, abi, fn_token, ident, .. } = &self.signature;
        if asyncness.is_none() {
            mistakes.at(fn_token, "a tool is an async function: write `async fn`");
        }
        let qualifiers = [
            constness.map(|word| word.to_token_stream()),
            unsafety.map(|word| word.to_token_stream()),
            abi.as_ref().map(|abi| abi.to_token_stream()),
        ];
        for qualifier in qualifiers.into_iter().flatten() {
            mistakes.at(qualifier, "a tool is a plain async function: neither const, unsafe nor extern");
        }
        if !self.has_result() {
            mistakes.at(ident, "a tool returns a result that the model reads: add `-> Result<…>`");
        }
        let description = description(&self.attributes);
        if description.is_empty() {
            mistakes.at(ident, "a tool needs a doc comment: the model reads it to know what the tool does");
        }
        description
    }

    pub(super) fn has_result(&self) -> bool {
        matches!(self.signature.output, ReturnType::Type(..))
    }
}

/// Joins the lines of a doc comment, without the space that follows `///` and without blank lines around the text.
pub(crate) fn description(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes.iter().filter_map(doc_text).collect();
    let text = lines.join("\n");
    let lines: Vec<&str> = text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect();
    lines.join("\n").trim().to_owned()
}

fn doc_text(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether an attribute sets the level of a lint.
pub(super) fn is_lint_level(attribute: &Attribute) -> bool {
    ["allow", "expect", "warn", "deny", "forbid"].iter().any(|level| attribute.path().is_ident(level))
}
