//! HTML as a flat sequence of tags and texts.
//!
//! No tree is built: time and memory are proportional to the size of a page, however deep its elements nest and however
//! many attributes a tag has. Readers that need the extent of an element count the tags of its name.

use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

/// The maximum stored bytes of an attribute.
const MAX_ATTRIBUTE: usize = 4096;

/// A piece of a page, in source order.
#[derive(Debug)]
pub(super) enum HtmlToken<'a> {
    /// The beginning of an element.
    Start(&'a StartTag),
    /// The end of an element, which may have no beginning.
    End(&'a str),
    /// Text, with character references decoded; also the source of scripts and styles.
    Text(&'a str),
}

/// The start of an element, with its relevant attributes. The first of several attributes of one name
/// counts.
#[derive(Debug, Default)]
pub(super) struct StartTag {
    /// The name in lower case.
    pub(super) name: String,
    /// The attribute `class`.
    pub(super) class: Option<String>,
    /// The attribute `href`.
    pub(super) href: Option<String>,
    /// Whether it ends in `/>`.
    pub(super) self_closing: bool,
}

impl StartTag {
    /// Returns whether the element has a class.
    pub(super) fn has_class(&self, class: &str) -> bool {
        self.class.as_deref().is_some_and(|all| all.split_ascii_whitespace().any(|one| one == class))
    }
}

/// Reads a page piece by piece. Comments, declarations and errors are skipped.
pub(super) fn read(html: &str, mut visit: impl FnMut(HtmlToken<'_>)) {
    let mut tag = StartTag::default();
    let mut attribute = Vec::new();
    let on_event = |event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                tag = StartTag { name: text(name), ..StartTag::default() };
                attribute.clear();
            }
            CallbackEvent::AttributeName { name } => {
                attribute.clear();
                attribute.extend_from_slice(name.get(..name.len().min(MAX_ATTRIBUTE)).unwrap_or_default());
            }
            CallbackEvent::AttributeValue { value } => {
                let value = || text(value.get(..value.len().min(MAX_ATTRIBUTE)).unwrap_or_default());
                match attribute.as_slice() {
                    b"class" => _ = tag.class.get_or_insert_with(value),
                    b"href" => _ = tag.href.get_or_insert_with(value),
                    _ => {}
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                tag.self_closing = self_closing;
                visit(HtmlToken::Start(&tag));
            }
            CallbackEvent::EndTag { name } => visit(HtmlToken::End(&text(name))),
            CallbackEvent::String { value } => visit(HtmlToken::Text(&String::from_utf8_lossy(value))),
            CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => {}
        }
        None
    };
    let mut emitter = CallbackEmitter::new(on_event);
    // The content of scripts and styles is not markup.
    emitter.naively_switch_states(true);
    // Every piece goes to `visit`; the iterator itself yields nothing.
    Tokenizer::new_with_emitter(html, emitter).for_each(drop);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(html: &str) -> Vec<String> {
        let mut all = Vec::new();
        read(html, |piece| {
            all.push(match piece {
                HtmlToken::Start(tag) => format!("<{} {:?} {:?}>", tag.name, tag.class, tag.href),
                HtmlToken::End(name) => format!("</{name}>"),
                HtmlToken::Text(text) => text.to_owned(),
            });
        });
        all
    }

    #[test]
    fn tags_texts_and_two_attributes_are_read() {
        assert_eq!(
            pieces("<!doctype html><!-- no --><A HREF='/a?b&amp;c' id=x class='one two' class=three>&lt;b&gt;</A>"),
            ["<a Some(\"one two\") Some(\"/a?b&c\")>", "<b>", "</a>"]
        );
    }

    #[test]
    fn markup_within_a_script_is_text() {
        assert_eq!(pieces("<script>'<b>'</script>x"), ["<script None None>", "'<b>'", "</script>", "x"]);
    }
}
