//! The flags in the parentheses of `#[tool(…)]`.

use std::collections::HashSet;
use std::time::Duration;

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt as _;
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Expr, ExprLit, Lit, LitStr, Meta, Token};

use super::error_collector::Mistakes;

/// All flags, in the order of the message about an unknown one.
const KNOWN: [&str; 12] = [
    "exit",
    "read_only",
    "idempotent",
    "destructive",
    "sequential",
    "approval",
    "approval_expires",
    "not_editable",
    "name",
    "title",
    "timeout",
    "retries",
];

/// Flags that configure an approval.
const OF_APPROVALS: [&str; 2] = ["approval_expires", "not_editable"];

/// A tool's flags, in the written order.
#[derive(Default)]
pub(crate) struct Flags {
    name: Option<LitStr>,
    /// The others, each of which is a call of the builder.
    pub(crate) calls: Vec<FlagCall>,
}

/// A call of the tool's builder, with the span of its flag.
pub(crate) struct FlagCall {
    pub(super) method: &'static str,
    pub(super) span: Span,
    pub(super) value: Value,
}

/// The argument of a flag's call.
pub(crate) enum Value {
    Nothing,
    Text(LitStr),
    Duration(Duration),
    Count(u32),
}

impl Flags {
    /// Parses the flags. Invalid ones are reported and skipped.
    pub(crate) fn read(tokens: TokenStream, mistakes: &mut Mistakes) -> Self {
        let mut flags = Self::default();
        let metas = match Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens) {
            Ok(metas) => metas,
            Err(error) => {
                mistakes.add(error);
                return flags;
            }
        };
        let asks = metas.iter().any(|meta| meta.path().is_ident("approval"));
        let mut seen = HashSet::new();
        for meta in metas {
            let name = name_of(&meta);
            if KNOWN.contains(&name.as_str()) && !seen.insert(name.clone()) {
                mistakes.at(meta, format!("`{name}` is given twice"));
            } else if OF_APPROVALS.contains(&name.as_str()) && !asks {
                mistakes.at(
                    meta,
                    format!("`{name}` is about an approval, which this tool does not ask for: add `approval = \"…\"`"),
                );
            } else if let Err(error) = flags.add(&name, &meta) {
                mistakes.add(error);
            }
        }
        flags
    }

    /// Returns the tool's id: `name`, or the function's name.
    pub(crate) fn id(&self, function: &Ident, mistakes: &mut Mistakes) -> LitStr {
        self.id_or(&function.unraw().to_string(), function, mistakes)
    }

    /// Returns the tool's id: `name`, or a name derived from the author's `function`.
    pub(crate) fn id_or(&self, name: &str, function: &Ident, mistakes: &mut Mistakes) -> LitStr {
        self.name.clone().unwrap_or_else(|| {
            if let Err(error) = check_tool_name(name, function) {
                mistakes.add(error);
            }
            LitStr::new(name, function.span())
        })
    }

    fn add(&mut self, name: &str, meta: &Meta) -> syn::Result<()> {
        let (method, value) = match name {
            "exit" => ("exit", nothing(meta)?),
            "read_only" => ("read_only", nothing(meta)?),
            "idempotent" => ("idempotent", nothing(meta)?),
            "destructive" => ("destructive", nothing(meta)?),
            "sequential" => ("sequential", nothing(meta)?),
            "approval" => ("requires_approval", Value::Text(text(meta, "Refunds need a person")?)),
            "approval_expires" => ("approval_expires", Value::Duration(duration(meta)?)),
            "not_editable" => ("not_editable", nothing(meta)?),
            "title" => ("title", Value::Text(text(meta, "Search the docs")?)),
            "timeout" => ("timeout", Value::Duration(duration(meta)?)),
            "retries" => ("retries", Value::Count(count(meta)?)),
            "name" => {
                self.name = Some(tool_name(meta)?);
                return Ok(());
            }
            _ => {
                let known = KNOWN.map(|name| format!("`{name}`")).join(", ");
                return Err(error(meta.path(), format!("unknown flag: a tool knows {known}")));
            }
        };
        self.calls.push(FlagCall { method, span: meta.path().span(), value });
        Ok(())
    }
}

fn error(tokens: impl ToTokens, message: impl std::fmt::Display) -> syn::Error {
    syn::Error::new_spanned(tokens, message)
}

/// Returns the literal of `name = literal`.
fn literal(meta: &Meta) -> Option<&Lit> {
    match meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit, .. }) => Some(lit),
            _ => None,
        },
        Meta::Path(_) | Meta::List(_) => None,
    }
}

fn name_of(meta: &Meta) -> String {
    meta.path().get_ident().map(ToString::to_string).unwrap_or_default()
}

fn nothing(meta: &Meta) -> syn::Result<Value> {
    match meta {
        Meta::Path(_) => Ok(Value::Nothing),
        Meta::List(_) | Meta::NameValue(_) => {
            Err(error(meta, format!("`{}` stands alone, without a value", name_of(meta))))
        }
    }
}

fn text(meta: &Meta, example: &str) -> syn::Result<LitStr> {
    match literal(meta) {
        Some(Lit::Str(text)) if !text.value().trim().is_empty() => Ok(text.clone()),
        _ => Err(error(meta, format!("`{name}` needs a text: `{name} = \"{example}\"`", name = name_of(meta)))),
    }
}

fn tool_name(meta: &Meta) -> syn::Result<LitStr> {
    let name = text(meta, "payment.send")?;
    check_tool_name(&name.value(), &name)?;
    Ok(name)
}

/// Rejects at compile time what `positronic_core::record::ToolId` rejects.
fn check_tool_name(name: &str, written: impl ToTokens) -> syn::Result<()> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if (1..=64).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(());
    }
    Err(error(written, "a tool's name has 1 to 64 letters, digits, `_`, `-` and `.`: give it one with `name = \"…\"`"))
}

fn count(meta: &Meta) -> syn::Result<u32> {
    match literal(meta) {
        Some(Lit::Int(number)) => number.base10_parse(),
        _ => Err(error(meta, format!("`{name}` needs a number: `{name} = 2`", name = name_of(meta)))),
    }
}

fn duration(meta: &Meta) -> syn::Result<Duration> {
    let duration = match literal(meta) {
        Some(Lit::Int(seconds)) => Some(Duration::from_secs(seconds.base10_parse()?)),
        Some(Lit::Str(text)) => parse_duration(&text.value()),
        _ => None,
    };
    duration.filter(|duration| !duration.is_zero()).ok_or_else(|| {
        let name = name_of(meta);
        error(meta, format!("`{name}` needs a time above zero: seconds, as in `{name} = 30`, or text, as in \"500ms\", \"30s\", \"5m\" or \"1h\""))
    })
}

/// Parses an integer with a unit, as in `500ms`, `30s`, `5m`, `1h`.
fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit_at = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(unit_at)?;
    let number: u64 = number.parse().ok()?;
    match unit.trim_start() {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        "h" => Some(Duration::from_secs(number.checked_mul(3600)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_a_number_with_a_unit() {
        assert_eq!(parse_duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(parse_duration(" 30 s "), Some(Duration::from_secs(30)));
        assert_eq!(parse_duration("5m"), Some(Duration::from_secs(300)));
        assert_eq!(parse_duration("1h"), Some(Duration::from_secs(3600)));
        for wrong in ["", "30", "s", "1.5s", "30 days", "-1s", "99999999999999999999s"] {
            assert_eq!(parse_duration(wrong), None, "{wrong:?}");
        }
    }
}
