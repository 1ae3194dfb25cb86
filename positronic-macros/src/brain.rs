//! `brain!`: a title, then method calls, of which `.loop(…)` becomes `.r#loop(…)`.
//!
//! It works on tokens and never parses an expression, so unfinished code (`cx.` while its author is typing) passes
//! through and an editor can complete it. A group is rebuilt only if something inside changed, because rebuilding
//! loses the spans of its delimiters.

use proc_macro2::{Delimiter, Group, Ident, Punct, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};

/// Expands the body of `brain!` to a call of `::positronic_core::prelude::brain` and the author's method calls.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let here = input.clone().into_iter().next().map_or_else(Span::call_site, |token| token.span());
    let (title, calls) = split_title(input);
    let calls = rewrite(calls);
    if title.is_empty() {
        let message = "`brain!` begins with the brain's title, as in `brain! { \"Support Agent\" .step(…) }`";
        let error = quote_spanned!(here=> ::core::compile_error!(#message));
        // The calls remain, so that an editor still knows the types inside them.
        return quote!({ #error; ::positronic_core::prelude::brain("") #calls });
    }
    let title = as_arguments(title);
    quote!(::positronic_core::prelude::brain #title #calls)
}

/// Puts the title in parentheses, unless it has them, which would cause a warning about unused ones.
fn as_arguments(title: TokenStream) -> TokenStream {
    let mut tokens = title.clone().into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::Parenthesis => title,
        _ => quote!((#title)),
    }
}

/// Splits the tokens before the first method dot.
fn split_title(input: TokenStream) -> (TokenStream, TokenStream) {
    let tokens: Vec<TokenTree> = input.into_iter().collect();
    let end = (0..tokens.len()).find(|&at| is_method_dot(&tokens, at)).unwrap_or(tokens.len());
    let mut tokens = tokens.into_iter();
    (tokens.by_ref().take(end).collect(), tokens.collect())
}

/// Renames every method call `.loop(…)` or `.loop::<T>(…)` to `.r#loop`, at any depth, and nothing else.
pub(crate) fn rewrite(input: TokenStream) -> TokenStream {
    rewrite_changed(input.clone()).unwrap_or(input)
}

/// Returns the rewritten tokens, or `None` if there was nothing to rename.
fn rewrite_changed(input: TokenStream) -> Option<TokenStream> {
    let mut tokens: Vec<TokenTree> = input.into_iter().collect();
    let mut changed = false;
    for at in 0..tokens.len() {
        let renamed = match tokens.get(at) {
            Some(TokenTree::Ident(name)) if *name == "loop" && is_method_call(&tokens, at) => {
                Some(TokenTree::Ident(Ident::new_raw("loop", name.span())))
            }
            Some(TokenTree::Group(group)) => rewrite_changed(group.stream()).map(|stream| {
                let mut rebuilt = Group::new(group.delimiter(), stream);
                rebuilt.set_span(group.span());
                TokenTree::Group(rebuilt)
            }),
            _ => None,
        };
        if let (Some(renamed), Some(token)) = (renamed, tokens.get_mut(at)) {
            *token = renamed;
            changed = true;
        }
    }
    changed.then(|| tokens.into_iter().collect())
}

/// Returns whether the word at `at` is between a method dot and its arguments.
fn is_method_call(tokens: &[TokenTree], at: usize) -> bool {
    let after_dot = at.checked_sub(1).is_some_and(|dot| is_method_dot(tokens, dot));
    let arguments = match tokens.get(at + 1) {
        Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Parenthesis,
        // `.loop::<T>(…)`
        _ => is_punct(tokens, at + 1, ':') && is_punct(tokens, at + 2, ':') && is_punct(tokens, at + 3, '<'),
    };
    after_dot && arguments
}

/// Returns whether there is a single dot at `at`: one next to another dot is half of a range.
fn is_method_dot(tokens: &[TokenTree], at: usize) -> bool {
    let before = at.checked_sub(1).is_some_and(|before| is_punct(tokens, before, '.'));
    is_punct(tokens, at, '.') && !before && !is_punct(tokens, at + 1, '.')
}

fn is_punct(tokens: &[TokenTree], at: usize, wanted: char) -> bool {
    tokens.get(at).is_some_and(|token| matches!(token, TokenTree::Punct(punct) if Punct::as_char(punct) == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(source: &str) -> String {
        rewrite(source.parse().unwrap()).to_string()
    }

    fn same(source: &str) -> String {
        source.parse::<TokenStream>().unwrap().to_string()
    }

    #[track_caller]
    fn stays(source: &str) {
        assert_eq!(rewritten(source), same(source));
    }

    #[test]
    fn renames_a_method_call() {
        assert_eq!(rewritten("brain(\"x\").loop(\"Chat\", |cx| cx)"), same("brain(\"x\").r#loop(\"Chat\", |cx| cx)"));
    }

    #[test]
    fn renames_with_a_turbofish() {
        assert_eq!(rewritten("x.loop::<Vec<Ticket>>(y)"), same("x.r#loop::<Vec<Ticket>>(y)"));
    }

    #[test]
    fn renames_inside_arguments_closures_and_blocks() {
        assert_eq!(
            rewritten("x.brain(\"b\", { let b = inner.loop(a); [b] }, |o| o.loop())"),
            same("x.brain(\"b\", { let b = inner.r#loop(a); [b] }, |o| o.r#loop())"),
        );
    }

    #[test]
    fn leaves_loop_expressions() {
        stays("x.step(\"a\", async |cx| { loop { break cx.next() } })");
        stays("let five = loop { break (5) };");
        stays("'outer: loop { continue 'outer }");
    }

    #[test]
    fn leaves_ranges() {
        stays("0..loop { break 5 }");
        stays("x..loop (a)");
        stays("x..=loop { break 5 }");
        stays("..loop (a)");
    }

    #[test]
    fn renames_the_call_at_the_end_of_a_range() {
        assert_eq!(rewritten("a..b.loop(c)"), same("a..b.r#loop(c)"));
        assert_eq!(rewritten("a.loop(c)..b"), same("a.r#loop(c)..b"));
    }

    #[test]
    fn leaves_the_raw_name_and_unfinished_calls() {
        stays("x.r#loop(a)");
        stays("x.loop");
        stays("x.loop { a }");
        stays("x.loop[a]");
        stays("x.step(\"a\", async |cx| { cx. })");
    }

    #[test]
    fn splits_the_title_from_the_calls() {
        let expanded = |source: &str| expand(source.parse().unwrap()).to_string();
        assert_eq!(
            expanded("\"Support\" .step(\"a\", f) .loop(\"b\", g)"),
            same("::positronic_core::prelude::brain(\"Support\").step(\"a\", f).r#loop(\"b\", g)"),
        );
        assert_eq!(expanded("(names.0) .x()"), same("::positronic_core::prelude::brain(names.0).x()"));
        assert_eq!(expanded("format!(\"{a}\")"), same("::positronic_core::prelude::brain(format!(\"{a}\"))"));
        assert_eq!(expanded("NAMES[..2] .x()"), same("::positronic_core::prelude::brain(NAMES[..2]).x()"));
    }

    #[test]
    fn missing_title_is_reported_and_the_calls_remain() {
        let expanded = expand(".loop(\"b\", g)".parse().unwrap()).to_string();
        assert!(expanded.contains("begins with the brain's title"), "{expanded}");
        assert!(expanded.contains(&same("::positronic_core::prelude::brain(\"\").r#loop(\"b\", g)")), "{expanded}");
    }
}
