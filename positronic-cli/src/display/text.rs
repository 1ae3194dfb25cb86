//! Text that is safe and fits: every string of a model, a tool or a person goes through here before it is shown.
//!
//! [`sanitise`] takes away what could steer a terminal or hide text, [`wrap`] and [`shorten`] fit the rest into a
//! number of columns. Widths are those of grapheme clusters, so that wide characters and emoji count as they look.

use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Counts the columns that a text without control characters takes.
pub(crate) fn width(text: &str) -> usize {
    text.graphemes(true).map(grapheme_width).sum()
}

fn grapheme_width(grapheme: &str) -> usize {
    grapheme.width()
}

/// Makes a text harmless: line breaks stay, a tab becomes spaces, every other control character becomes a visible
/// sign. Characters that reorder or hide text become a replacement character, so that what a person approves is
/// what they see.
pub(crate) fn sanitise(text: &str, unicode: bool) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' => safe.push('\n'),
            '\r' if characters.peek() == Some(&'\n') => {}
            '\t' => safe.push_str("    "),
            character if character.is_control() => safe.push(control_picture(character, unicode)),
            character if is_deceptive(character) => safe.push(if unicode { '\u{fffd}' } else { '?' }),
            character => safe.push(character),
        }
    }
    safe
}

/// Makes a text harmless and puts it on one line.
pub(crate) fn one_line(text: &str, unicode: bool) -> String {
    let safe = sanitise(text, unicode);
    if safe.contains('\n') {
        let mark = if unicode { " ⏎ " } else { " | " };
        safe.trim().lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(mark)
    } else {
        safe
    }
}

fn control_picture(character: char, unicode: bool) -> char {
    let code = u32::from(character);
    match code {
        _ if !unicode => '?',
        0..0x20 => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '␡',
        _ => '\u{fffd}',
    }
}

fn is_deceptive(character: char) -> bool {
    matches!(character,
        '\u{061c}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Cuts a line to `columns`, with an ellipsis where something was cut.
pub(crate) fn shorten(line: &str, columns: usize, unicode: bool) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let ellipsis = if unicode { "…" } else { "..." };
    let room = columns.saturating_sub(ellipsis.width());
    let mut short = String::new();
    let mut used = 0;
    for grapheme in line.graphemes(true) {
        used += grapheme_width(grapheme);
        if used > room {
            break;
        }
        short.push_str(grapheme);
    }
    short.truncate(short.trim_end().len());
    if ellipsis.width() <= columns {
        short.push_str(ellipsis);
    }
    short
}

/// Breaks a text into lines of at most `columns`, between words where there is a choice. A word that is longer is
/// broken inside; a line's own indentation is kept for its first part.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        wrap_paragraph(paragraph.trim_end(), columns, &mut lines);
    }
    lines
}

fn wrap_paragraph(paragraph: &str, columns: usize, lines: &mut Vec<String>) {
    let mut line = String::new();
    let mut used = 0;
    for word in words(paragraph) {
        let size = width(word);
        if used + size <= columns {
            line.push_str(word);
            used += size;
            continue;
        }
        if word.trim().is_empty() {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
            used = 0;
            continue;
        }
        if used > 0 && !line.trim().is_empty() && size <= columns {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
            used = 0;
        }
        for grapheme in word.graphemes(true) {
            let size = grapheme_width(grapheme);
            if used + size > columns && used > 0 {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
                used = 0;
            }
            line.push_str(grapheme);
            used += size;
        }
    }
    lines.push(line.trim_end().to_owned());
}

/// Splits a line into runs of blanks and runs of other characters.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let blank = rest.chars().next()?.is_whitespace();
        let end = rest.find(|character: char| character.is_whitespace() != blank).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

/// Writes a call's arguments as `name=value` pairs on one line, anything else as compact JSON.
pub(crate) fn arguments(value: &Value, unicode: bool) -> String {
    let text = match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    };
    one_line(&text, unicode)
}

/// Writes a value for one line: a text as it is, anything else as compact JSON.
pub(crate) fn value_line(value: &Value, unicode: bool) -> String {
    match value {
        Value::String(text) => one_line(text, unicode),
        other => one_line(&other.to_string(), unicode),
    }
}

/// Writes as escapes what JSON allows as it is and a terminal would obey: the rest of the control characters, and the
/// marks that turn the direction of text.
pub(crate) fn harmless_json(json: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_cannot_speak_to_the_terminal() {
        let text = harmless_json("\"a\u{9b}31m\u{202e}b\"");

        assert_eq!(text, r#""a\u009b31m\u202eb""#);
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), "a\u{9b}31m\u{202e}b");
    }

    #[test]
    fn a_models_escape_sequences_never_reach_the_terminal() {
        let evil = "\u{1b}]0;owned\u{7}\u{1b}[2Jhi\u{9b}31m\rthere\r\nline\tend\u{7f}";

        let safe = sanitise(evil, true);

        assert_eq!(safe, "␛]0;owned␇␛[2Jhi\u{fffd}31m␍there\nline    end␡");
        assert!(sanitise(evil, false).chars().all(|character| character == '\n' || !character.is_control()));
    }

    #[test]
    fn characters_that_reorder_or_hide_text_are_made_visible() {
        assert_eq!(sanitise("pay \u{202e}001\u{202c} now\u{200b}", true), "pay \u{fffd}001\u{fffd} now\u{fffd}");
    }

    #[test]
    fn words_are_kept_whole_where_they_fit() {
        assert_eq!(wrap("The quick brown fox jumps.", 10), ["The quick", "brown fox", "jumps."]);
        assert_eq!(wrap("a\n\n  b c", 10), ["a", "", "  b c"]);
        assert_eq!(wrap("", 10), [""]);
    }

    #[test]
    fn a_word_that_is_too_long_is_broken() {
        assert_eq!(wrap("see aaaaaaaaaaaaaaaa", 6), ["see aa", "aaaaaa", "aaaaaa", "aa"]);
    }

    #[test]
    fn wide_characters_count_two_columns() {
        assert_eq!(width("你好"), 4);
        assert_eq!(width("👩‍👩‍👧"), 2);
        assert_eq!(wrap("你好世界", 5), ["你好", "世界"]);
        assert_eq!(shorten("你好世界", 5, true), "你好…");
        assert_eq!(shorten("hello world", 7, false), "hell...");
    }

    #[test]
    fn no_line_is_wider_than_asked_for() {
        let text = "A 文字 mixture of 👩‍👩‍👧 and verylongwordsthatneverend and-some-dashes, ok? ".repeat(5);
        for columns in 2..60 {
            assert!(wrap(&text, columns).iter().all(|line| width(line) <= columns), "{columns}");
            assert!(width(&shorten(&text, columns, true)) <= columns, "{columns}");
        }
    }

    #[test]
    fn arguments_read_as_pairs() {
        let arguments = arguments(&serde_json::json!({"limit": 3, "query": "re\nfunds"}), true);

        assert_eq!(arguments, r#"limit=3 query="re\nfunds""#);
    }
}
