//! The text of a page, without what only browsers read.

use ego_tree::iter::Edge;
use scraper::{Html, Node};

/// Elements whose content nobody reads.
const UNREAD: [&str; 8] = ["script", "style", "noscript", "template", "svg", "head", "iframe", "object"];

/// Elements that stand in lines of their own.
const LINES: [&str; 30] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "tr",
    "ul",
];

/// Returns a page's title and its text, a line for every block.
pub(super) fn readable(html: &str) -> String {
    let page = Html::parse_document(html);
    let mut lines = Vec::new();
    let mut line = String::new();
    if let Some(title) = page.tree.nodes().find(|node| named(node.value()) == Some("title")) {
        lines.extend(title.children().filter_map(|node| node.value().as_text().map(|text| text.to_string())));
    }
    // The end of a block ends a line, too, so both ways through an element are walked.
    let mut unread = 0_usize;
    for edge in page.tree.root().traverse() {
        let (node, opens) = match edge {
            Edge::Open(node) => (node, true),
            Edge::Close(node) => (node, false),
        };
        match node.value() {
            Node::Element(element) if UNREAD.contains(&element.name()) => {
                unread = if opens { unread + 1 } else { unread.saturating_sub(1) };
            }
            Node::Element(element) if LINES.contains(&element.name()) => lines.push(std::mem::take(&mut line)),
            Node::Element(element) if matches!(element.name(), "td" | "th") && !opens => line.push('\t'),
            Node::Text(text) if opens && unread == 0 => line.push_str(text),
            _ => {}
        }
    }
    lines.push(line);
    let lines = lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn named(node: &Node) -> Option<&str> {
    node.as_element().map(|element| element.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_as_its_lines() {
        let page = "<!doctype html><html><head><title>Tea &amp; more</title><style>p{}</style></head><body><nav><ul><li>Home\
            </ul></nav><h1>Tea</h1><p>Tea is <b>hot</b>.<br>Very.<script>alert('no')</script></p>\
            <table><tr><td>a</td><td>b</td></tr></table></body></html>";

        assert_eq!(readable(page), "Tea & more\nHome\nTea\nTea is hot.\nVery.\na b");
    }

    #[test]
    fn what_is_no_page_is_its_text() {
        assert_eq!(readable("just text"), "just text");
        assert_eq!(readable("<p>never <b>closed"), "never closed");
    }
}
