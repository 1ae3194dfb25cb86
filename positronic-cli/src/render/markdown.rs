//! Escaping of untrusted text in Markdown: texts of models, tools and people are shown literally and mark up nothing.

use std::fmt::Write as _;

use positronic_core::record::{Citation, FileRef, ProviderToolUse};

use crate::render::figures::count;
use crate::render::shown_answer::ShownAnswer;
use crate::render::words::file_kind;
use crate::render::{one_line, sanitise, shorten, width};

/// Maximum columns of inline text.
const DETAIL: usize = 200;

/// Maximum size of a block that may be truncated.
const LINES: usize = 60;
const CHARACTERS: usize = 4_000;

/// Renders a text as inline code, with any backticks.
pub(crate) fn code(text: &str) -> String {
    let text = shorten(&one_line(text), DETAIL);
    let fence = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Returns whether a text fits inline without truncation.
pub(crate) fn fits_in_line(text: &str) -> bool {
    !text.contains('\n') && width(text) <= DETAIL
}

/// Renders a text as a code block, each line after `indent`. A long text is truncated with a note.
pub(crate) fn block(out: &mut String, text: &str, indent: &str) {
    let text = sanitise(text.trim_end_matches('\n'));
    let shown = beginning(&text);
    fenced(out, shown, indent);
    if shown.len() < text.len() {
        let all = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        _ = write!(out, "\n{indent}*Truncated: the text has {} characters.*\n", count(all));
    }
}

/// Renders a text as a code block like [`block`], without truncation.
pub(crate) fn whole_block(out: &mut String, text: &str, indent: &str) {
    fenced(out, &sanitise(text.trim_end_matches('\n')), indent);
}

/// Returns the part of a text that fits into a block.
fn beginning(text: &str) -> &str {
    let lines = text.split('\n').take(LINES).map(str::len).sum::<usize>() + LINES.min(text.split('\n').count()) - 1;
    let end = text.char_indices().nth(CHARACTERS).map_or(text.len(), |(end, _)| end).min(lines);
    text.get(..end).unwrap_or_default()
}

fn fenced(out: &mut String, shown: &str, indent: &str) {
    let fence = "`".repeat(longest_run(shown).max(2) + 1);
    _ = writeln!(out, "{indent}{fence}");
    for line in shown.split('\n') {
        _ = writeln!(out, "{}", format!("{indent}{line}").trim_end());
    }
    _ = writeln!(out, "{indent}{fence}");
}

/// Renders a text as a quotation, each line after `indent`.
pub(crate) fn quoted(out: &mut String, text: &str, indent: &str) {
    for line in sanitise(text.trim()).lines() {
        _ = writeln!(out, "{}", format!("{indent}> {}", escaped(line.trim())).trim_end());
    }
}

/// Renders a text as a quotation that preserves its own Markdown.
///
/// Every line begins with `> `, and nothing in it ends the quotation: HTML could, so it is escaped, except in a
/// fenced code block that begins at the start of a line.
pub(crate) fn quoted_markdown(out: &mut String, text: &str) {
    let text = sanitise(text.trim_matches('\n'));
    let mut fence: Option<usize> = None;
    for line in text.trim_end().lines() {
        // In Markdown, a closing fence may be indented by three spaces and has no text after it.
        let indent = line.len() - line.trim_start_matches(' ').len();
        let ticks = line.chars().skip(indent).take_while(|letter| *letter == '`').count();
        let after = line.get(indent + ticks..).unwrap_or_default();
        let ends = |open: usize| indent <= 3 && ticks >= open && after.trim_matches(' ').is_empty();
        let shown = match fence {
            Some(open) => {
                fence = Some(open).filter(|open| !ends(*open));
                line.to_owned()
            }
            None if indent == 0 && ticks >= 3 && !after.contains('`') => {
                fence = Some(ticks);
                line.to_owned()
            }
            None => without_html(line),
        };
        _ = writeln!(out, "{}", format!("> {shown}").trim_end());
    }
}

/// Escapes the start of HTML in a line, and of fences that this module does not track.
fn without_html(line: &str) -> String {
    let text = line.trim_start();
    let mut safe = line.get(..line.len() - text.len()).unwrap_or_default().to_owned();
    if text.starts_with("```") || text.starts_with("~~~") {
        safe.push('\\');
    }
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '<' && letters.peek().is_some_and(|next| next.is_ascii_alphabetic() || "/!?".contains(*next)) {
            safe.push_str("&lt;");
        } else {
            safe.push(letter);
        }
    }
    safe
}

/// The maximum length of a link's address.
const LINK: usize = 2_000;

/// Renders a link. An address that a browser does not load, or that is too long, is inline code behind the text.
pub(crate) fn link(text: &str, url: &str) -> String {
    let is_safe = |byte: u8| byte.is_ascii_graphic() && !b"<>()[]\\`\"".contains(&byte);
    let text = shorten(&one_line(text), DETAIL);
    if !(url.starts_with("https://") || url.starts_with("http://")) || url.len() > LINK {
        return format!("{} {}", escaped(&text), code(url));
    }
    let mut address = String::with_capacity(url.len());
    for byte in url.bytes() {
        if is_safe(byte) {
            address.push(char::from(byte));
        } else {
            _ = write!(address, "%{byte:02X}");
        }
    }
    format!("[{}](<{address}>)", escaped(&text))
}

/// Renders a file: its name, media type, size, and where it is.
pub(crate) fn file(file: &FileRef) -> String {
    format!("file {} ({}), {}", code(&file.name), escaped(&file_kind(file)), code(&file.uri))
}

/// Lists what the provider's tools did for an answer, its files and its sources, as items of a list.
pub(crate) fn evidence(shown: &ShownAnswer<'_>) -> Vec<String> {
    let mut items: Vec<String> = shown.tools().map(provider_tool).chain(shown.files().map(file)).collect();
    if !shown.sources.is_empty() {
        let mut text = "sources:\n".to_owned();
        sources(&mut text, &shown.sources);
        items.push(text.trim_end().to_owned());
    }
    items
}

/// Renders sources as a numbered list with links, in an item of a list.
fn sources(out: &mut String, sources: &[&Citation]) {
    for (number, source) in (1..).zip(sources) {
        let title = source.title.as_deref().filter(|title| !title.trim().is_empty());
        let shown = match (source.url.as_deref(), title) {
            (Some(url), title) => link(title.unwrap_or(url), url),
            (None, _) => escaped(&shorten(&one_line(&source.line()), DETAIL)),
        };
        _ = writeln!(out, "  {number}. {shown}");
    }
}

/// Renders what a tool of the provider did, with its sources.
fn provider_tool(used: &ProviderToolUse) -> String {
    let input = used.input.as_deref().filter(|input| !input.trim().is_empty()).map(|input| format!(" {}", code(input)));
    let outcome = match (&used.error, &used.output) {
        (Some(error), _) => format!(" → **error**: {}", code(error)),
        (None, Some(output)) if !output.trim().is_empty() => format!(" → {}", code(output)),
        (None, _) => String::new(),
    };
    let mut text = format!("{}{}{outcome}\n", code(&used.tool), input.unwrap_or_default());
    sources(&mut text, &used.sources.iter().collect::<Vec<_>>());
    text.trim_end().to_owned()
}

/// Renders inline text with the special characters of Markdown and HTML escaped.
pub(crate) fn escaped(text: &str) -> String {
    let text = one_line(text);
    let mut safe = String::with_capacity(text.len());
    let letters: Vec<char> = text.chars().collect();
    let is_word =
        |place: Option<usize>| place.and_then(|place| letters.get(place)).is_some_and(|l| l.is_alphanumeric());
    let number = letters.iter().take_while(|letter| letter.is_ascii_digit()).count();
    for (place, letter) in letters.iter().enumerate() {
        let marks = match letter {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '&' | '|' | '~' => true,
            // Inside a word it has no meaning.
            '_' => !(is_word(place.checked_sub(1)) && is_word(Some(place + 1))),
            // These begin headings and lists.
            '#' | '-' | '+' | '=' => place == 0,
            '.' | ')' => place > 0 && place == number && letters.get(place + 1).is_none_or(|next| *next == ' '),
            _ => false,
        };
        if marks {
            safe.push('\\');
        }
        safe.push(*letter);
    }
    safe
}

fn longest_run(text: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for letter in text.chars() {
        run = if letter == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_span_contains_any_backticks() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a `b` ``c``"), "``` a `b` ``c`` ```");
        assert_eq!(code(""), "`  `");
    }

    #[test]
    fn code_block_contains_any_fences_and_reports_truncation() {
        let mut out = String::new();
        block(&mut out, "```\n<b>\u{1b}[2J\n````", "  ");
        assert_eq!(out, "  `````\n  ```\n  <b>␛[2J\n  ````\n  `````\n");

        out.clear();
        block(&mut out, &"é".repeat(5_000), "");
        assert_eq!(out, format!("```\n{}\n```\n\n*Truncated: the text has 5,000 characters.*\n", "é".repeat(4_000)));

        out.clear();
        block(&mut out, &"a\n".repeat(61), "");
        assert!(out.starts_with("```\na\n") && out.lines().filter(|line| *line == "a").count() == 60, "{out}");
        assert!(out.ends_with("*Truncated: the text has 121 characters.*\n"), "{out}");
    }

    #[test]
    fn quotation_keeps_its_markdown_and_cannot_be_escaped() {
        let mut out = String::new();
        quoted_markdown(
            &mut out,
            "# A\n\n- *approved by ann*\n</blockquote>\n1 < 2 <br>\n```rust\n  Vec<u8>\n```\n<b>\n   ```\n<i>\n```\n    ```\n<s>\n   ```\n<u>",
        );

        assert_eq!(
            out,
            "> # A\n>\n> - *approved by ann*\n> &lt;/blockquote>\n> 1 < 2 &lt;br>\n> ```rust\n>   Vec<u8>\n> ```\n\
             > &lt;b>\n>    \\```\n> &lt;i>\n> ```\n>     ```\n> <s>\n>    ```\n> &lt;u>\n"
        );
    }

    #[test]
    fn link_contains_any_address() {
        assert_eq!(link("A [b]", "https://x.org/a_(b)?c=1&d"), r"[A \[b\]](<https://x.org/a_%28b%29?c=1&d>)");
        assert_eq!(link("a", "https://x.org/é \u{1b}>\n"), "[a](<https://x.org/%C3%A9%20%1B%3E%0A>)");
        assert_eq!(link("a", "javascript:alert(1)"), "a `javascript:alert(1)`");
        let long = format!("https://x.org/{}", "a".repeat(LINK));
        assert!(link("a", &long).starts_with("a `https://x.org/aaa") && link("a", &long).len() < 300);
    }

    #[test]
    fn text_escapes_all_markup() {
        assert_eq!(
            escaped("# no *heading* <script> [a](b) `c` &amp; x|y"),
            r"\# no \*heading\* \<script\> \[a\](b) \`c\` \&amp; x\|y"
        );
        assert_eq!(escaped("1. run_code and _b_, 2. c"), r"1\. run_code and \_b\_, 2. c");
        assert_eq!(escaped("1.2 EUR"), "1.2 EUR");
        assert_eq!(escaped("- a\n- b"), r"\- a ⏎ - b");

        let mut out = String::new();
        quoted(&mut out, " a\n\n> b\n    c\n", "");
        assert_eq!(out, "> a\n>\n> \\> b\n> c\n");
    }

    proptest::proptest! {
        #[test]
        fn fuzz_markdown(parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..60)) {
            let text = parts.concat();

            let (mut own, mut plain, mut fenced) = (String::new(), String::new(), String::new());
            quoted_markdown(&mut own, &text);
            quoted(&mut plain, &text, "");
            whole_block(&mut fenced, &text, "");

            proptest::prop_assert!(own.lines().chain(plain.lines()).all(|line| line.starts_with('>')), "{}", own);
            proptest::prop_assert!(!escaped(&text).contains('\n') && !code(&text).contains('\n'));
            let linked = link(&text, &format!("https://{text}"));
            let address = linked.rsplit_once("](<").unwrap().1.strip_suffix(">)").unwrap();
            proptest::prop_assert!(address.bytes().all(|byte| byte.is_ascii_graphic()) && !address.contains(['<', '>']));
            let fence = fenced.lines().next().unwrap_or_default();
            let ends = fenced.lines().skip(1).filter(|line| line.trim_end() == fence).count();
            proptest::prop_assert_eq!(ends, 1, "nothing in a block ends it: {}", fenced);
        }
    }

    const PARTS: &[&str] = &[
        "`",
        "``",
        "```",
        "````\n",
        "~~~\n",
        "\n",
        "\n\n",
        "    ",
        "> ",
        "- ",
        "# ",
        "*approved by ann*",
        "<b>",
        "</blockquote>",
        "<!--",
        "\r",
        "\u{2028}",
        "text",
        "|",
        "[a](b)",
        "1. ",
        "\t",
        "\\",
    ];
}
