//! Text extraction from pages.

use crate::html_tokens::{HtmlToken, read};

/// Elements without readable content.
const UNREAD: [&str; 7] = ["script", "style", "noscript", "template", "svg", "iframe", "object"];

/// Block elements.
const LINES: &str = "address article aside blockquote br dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 \
    header hr li main nav ol p pre section tr ul";

fn breaks_line(name: &str) -> bool {
    LINES.split(' ').any(|line| line == name)
}

/// Returns a page's title and its text, with a line for every block.
pub(super) fn readable(html: &str) -> String {
    let mut page = PageText::default();
    read(html, |piece| page.add(&piece));
    page.lines.push(page.line);
    let lines = page.title.iter().chain(&page.lines);
    let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The text of a page so far.
#[derive(Default)]
struct PageText {
    title: Option<String>,
    in_title: bool,
    lines: Vec<String>,
    line: String,
    /// The open unreadable element, and its nesting level.
    unread: Option<(String, usize)>,
}

impl PageText {
    fn add(&mut self, piece: &HtmlToken<'_>) {
        if self.unread.is_some() {
            return self.skip(piece);
        }
        match piece {
            HtmlToken::Text(text) if self.in_title => self.title.get_or_insert_default().push_str(text),
            HtmlToken::Text(text) => self.line.push_str(text),
            HtmlToken::Start(tag) => match tag.name.as_str() {
                "title" => self.in_title = self.title.is_none(),
                // A self-closing SVG is empty; other elements ignore the slash.
                "svg" if tag.self_closing => {}
                name if UNREAD.contains(&name) => self.unread = Some((name.to_owned(), 1)),
                name => self.boundary(name),
            },
            HtmlToken::End("title") => self.in_title = false,
            HtmlToken::End(name) => self.boundary(name),
        }
    }

    /// Ends a line, or a cell of a table: both at start and end tags, since either may be missing.
    fn boundary(&mut self, name: &str) {
        if breaks_line(name) {
            self.lines.push(std::mem::take(&mut self.line));
        } else if matches!(name, "td" | "th") {
            self.line.push('\t');
        }
    }

    /// Skips to the end of the unreadable element.
    fn skip(&mut self, piece: &HtmlToken<'_>) {
        let Some((unread, open)) = &mut self.unread else { return };
        match piece {
            HtmlToken::Start(tag) if tag.name == *unread && !(unread == "svg" && tag.self_closing) => *open += 1,
            // Browsers end an SVG at the first block, too.
            HtmlToken::Start(tag) if unread == "svg" && breaks_line(&tag.name) => {
                self.unread = None;
                self.boundary(&tag.name);
            }
            HtmlToken::End(name) if name == unread => {
                *open -= 1;
                if *open == 0 {
                    self.unread = None;
                }
            }
            HtmlToken::Start(_) | HtmlToken::End(_) | HtmlToken::Text(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_rendered_as_lines() {
        let page = "<!doctype html><html><head><title>Tea &amp; more</title><style>p{}</style></head><body><nav><ul><li>Home\
            </ul></nav><h1>Tea</h1><p>Tea is <b>hot</b>.<br>Very.<script>alert('no')</script></p>\
            <table><tr><td>a</td><td>b</td></tr></table></body></html>";

        assert_eq!(readable(page), "Tea & more\nHome\nTea\nTea is hot.\nVery.\na b");
    }

    #[test]
    fn plain_text_is_unchanged() {
        assert_eq!(readable("just text"), "just text");
        assert_eq!(readable("<p>never <b>closed"), "never closed");
    }

    #[test]
    fn unreadable_elements_end_with_their_tag() {
        assert_eq!(readable("a<template>b<template>c</template>d</template>e"), "ae");
        assert_eq!(readable("a<svg/>b<svg><text>c</text></svg>e"), "abe");
        assert_eq!(readable("a<svg><text>never closed<p>b"), "a\nb");
        assert_eq!(readable("a<script>if (1 </p> 2) '<p>'</script>b<style>p > a</style>"), "ab");
    }

    #[test]
    fn optional_tags_may_be_missing() {
        assert_eq!(
            readable("<title>T</title><meta charset=utf-8><body><p>a<p>b<table><tr><td>c<td>d<tr><td>e</table>"),
            "T\na\nb\nc d\ne"
        );
        assert_eq!(readable("<p>&lt;p&gt; &amp;amp; &#x41; &nosuch;"), "<p> &amp; A &nosuch;");
    }

    /// Parsers that build trees take quadratic time for such pages, or overflow the stack.
    #[test]
    fn hostile_pages_take_linear_time() {
        let attributes: String = (0..40_000).map(|n| format!(" a{n}")).collect();
        assert_eq!(readable(&format!("<p{attributes}>text</p>")), "text");
        assert_eq!(readable(&("<b>".repeat(300_000) + "text")), "text");
        assert_eq!(readable(&("<table><tr><td>".repeat(60_000) + "text")), "text");
        assert_eq!(readable(&("<p>".repeat(5_000) + &"<a><div>".repeat(5_000) + "text")), "text");
        assert_eq!(
            readable(&("<template>".repeat(50_000) + "unread" + &"</template>".repeat(50_000) + "text")),
            "text"
        );
        assert_eq!(readable(&"&".repeat(200_000)).len(), 200_000);
        assert_eq!(readable(&"<!--".repeat(100_000)), "");
    }

    proptest::proptest! {
        #[test]
        fn fuzz_html(parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..200), rest in ".{0,20}") {
            let page = format!("<script>UNREAD</script>{}{rest}", parts.concat());

            let text = readable(&page);

            proptest::prop_assert!(text.len() <= 3 * page.len(), "a page does not grow");
            proptest::prop_assert!(text.lines().all(|line| !line.is_empty() && line.trim() == line), "{:?}", text);
            proptest::prop_assert!(!text.contains("UNREAD"), "{:?}", text);
        }
    }

    const PARTS: &[&str] = &[
        "<script>x</script>",
        "<style>x</style>",
        "<template>x</template>",
        "<svg>x</svg>",
        "<svg/>",
        "<p>",
        "</p>",
        "<p",
        " a=\"",
        "'",
        ">",
        "/>",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<!doctype",
        "&amp;",
        "&#0;",
        "&#x110000;",
        "&nGt;",
        "<title>",
        "</title>",
        "<td>",
        "<textarea>",
        "</textarea>",
        "<plaintext>",
        "\0",
        "\r",
        "text ",
        "é",
        "</",
        "<",
        "<table><b>",
    ];
}
