//! Escaping and fitting of text: every string of a model, a tool or a person passes through here before it is shown.
//!
//! [`sanitise`] escapes terminal controls and hidden characters, [`wrap`] and [`shorten`] fit text into columns. Widths are
//! those of grapheme clusters, so that wide characters and emoji count as they look.

use std::fmt::Write as _;

use positronic_core::record::is_invisible;
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Counts the columns of a text without control characters.
pub(crate) fn width(text: &str) -> usize {
    text.graphemes(true).map(grapheme_width).sum()
}

fn grapheme_width(grapheme: &str) -> usize {
    grapheme.width()
}

/// Escapes a text: line breaks stay, a tab becomes spaces, every other control character becomes a visible sign. Characters
/// that are invisible or reorder text are named, such as `<U+200B>`, so that a person sees what they approve. Only joiners
/// within an emoji stay.
pub(crate) fn sanitise(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut before = None;
    while let Some(character) = characters.next() {
        let next = characters.peek().copied();
        match character {
            '\n' => safe.push('\n'),
            '\r' if next == Some('\n') => {}
            '\t' => safe.push_str("    "),
            character if character.is_control() => safe.push(control_picture(character)),
            character if is_invisible(character) && !makes_emoji(before, character, next) => {
                _ = write!(safe, "<U+{:04X}>", u32::from(character));
            }
            character => safe.push(character),
        }
        before = safe.chars().next_back();
    }
    safe
}

/// Escapes a text and joins its lines.
pub(crate) fn one_line(text: &str) -> String {
    let safe = sanitise(text);
    if safe.contains('\n') {
        safe.trim().lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ⏎ ")
    } else {
        safe
    }
}

fn control_picture(character: char) -> char {
    let code = u32::from(character);
    match code {
        0..0x20 => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '␡',
        _ => '\u{fffd}',
    }
}

/// Replaces the signs of this command on a terminal without Unicode, each by one ASCII character.
pub(crate) fn printable(text: String, unicode: bool) -> String {
    let ascii = |letter: char| match letter {
        '○' | '⋯' => '.',
        '⠋' | '⠼' | '⠇' => '|',
        '⠙' | '⠴' | '⠏' => '/',
        '⠹' | '⠦' => '-',
        '⠸' | '⠧' => '\\',
        '⏸' | '\u{2400}'..='\u{2421}' | '\u{fffd}' => '?',
        '✓' => '+',
        '✗' => 'x',
        '⊘' => '-',
        '■' => '#',
        '◌' => '!',
        '▸' | '→' | '›' => '>',
        '↻' | '…' => '~',
        '▪' => '*',
        '·' | '⏎' => '|',
        '–' => '-',
        '↑' => '^',
        '↓' => 'v',
        letter => letter,
    };
    if unicode { text } else { text.chars().map(ascii).collect() }
}

/// Returns whether an invisible character joins an emoji or selects its colour.
fn makes_emoji(before: Option<char>, character: char, next: Option<char>) -> bool {
    match (before, character) {
        (Some('0'..='9' | '#' | '*'), '\u{fe0f}') => next == Some('\u{20e3}'),
        (Some(before), '\u{fe0f}') => is_pictograph(before),
        (Some(before), '\u{200d}') => {
            (is_pictograph(before) || before == '\u{fe0f}') && next.is_some_and(is_pictograph)
        }
        _ => false,
    }
}

fn is_pictograph(character: char) -> bool {
    matches!(character,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2934}'..='\u{2935}'
        | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Truncates a line to `columns`, with an ellipsis.
pub(crate) fn shorten(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let room = columns.saturating_sub(1);
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
    if columns > 0 {
        short.push('…');
    }
    short
}

/// Wraps a text into lines of at most `columns`, between words if possible. A longer word is split; only the first part of
/// a line has its indentation.
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

/// Renders a call's arguments as `name=value` pairs on one line, anything else as compact JSON.
pub(crate) fn arguments(value: &Value) -> String {
    let text = match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    };
    one_line(&text)
}

/// Renders a value on one line: a text as it is, anything else as compact JSON.
pub(crate) fn value_line(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text),
        other => one_line(&other.to_string()),
    }
}

/// Escapes the characters that JSON allows but a terminal would obey or hide: the other control characters, and invisible
/// ones.
pub(crate) fn escaped_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if matches!(letter, '\u{7f}'..='\u{9f}') || is_invisible(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(letter);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_escapes_terminal_controls() {
        let text = escaped_json("\"a\u{9b}31m\u{202e}b\u{e0041}\"");

        assert_eq!(text, r#""a\u009b31m\u202eb\udb40\udc41""#);
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), "a\u{9b}31m\u{202e}b\u{e0041}");
    }

    #[test]
    fn escape_sequences_of_a_model_never_reach_the_terminal() {
        let evil = "\u{1b}]0;owned\u{7}\u{1b}[2Jhi\u{9b}31m\rthere\r\nline\tend\u{7f}";

        let safe = sanitise(evil);

        assert_eq!(safe, "␛]0;owned␇␛[2Jhi\u{fffd}31m␍there\nline    end␡");
        assert_eq!(printable(safe, false), "?]0;owned??[2Jhi?31m?there\nline    end?");
    }

    #[test]
    fn characters_that_reorder_or_hide_text_are_made_visible() {
        assert_eq!(sanitise("pay \u{202e}001\u{202c} now\u{200b}"), "pay <U+202E>001<U+202C> now<U+200B>");
        for letter in
            "\u{ad}\u{34f}\u{115f}\u{1160}\u{180e}\u{200c}\u{200d}\u{2800}\u{3164}\u{fe0f}\u{ffa0}\u{e0100}".chars()
        {
            let marked = format!("a<U+{:04X}>b", u32::from(letter));
            assert_eq!(sanitise(&format!("a{letter}b")), marked);
        }
    }

    #[test]
    fn emoji_of_several_characters_stay_whole() {
        for emoji in ["👩‍👩‍👧", "❤\u{fe0f}", "1\u{fe0f}\u{20e3}", "👩🏽‍💻", "🏳\u{fe0f}‍🌈"]
        {
            assert_eq!(sanitise(emoji), emoji);
        }
        assert_eq!(sanitise("1\u{fe0f}a👩\u{200d}rm"), "1<U+FE0F>a👩<U+200D>rm");
        assert_eq!(sanitise("❤\u{fe0f}\u{fe0f}"), "❤\u{fe0f}<U+FE0F>");
    }

    #[test]
    fn wrap_keeps_words_that_fit() {
        assert_eq!(wrap("The quick brown fox jumps.", 10), ["The quick", "brown fox", "jumps."]);
        assert_eq!(wrap("a\n\n  b c", 10), ["a", "", "  b c"]);
        assert_eq!(wrap("", 10), [""]);
    }

    #[test]
    fn too_long_word_is_broken() {
        assert_eq!(wrap("see aaaaaaaaaaaaaaaa", 6), ["see aa", "aaaaaa", "aaaaaa", "aa"]);
    }

    #[test]
    fn wide_characters_count_two_columns() {
        assert_eq!(width("你好"), 4);
        assert_eq!(width("👩‍👩‍👧"), 2);
        assert_eq!(wrap("你好世界", 5), ["你好", "世界"]);
        assert_eq!(shorten("你好世界", 5), "你好…");
        assert_eq!(printable(shorten("hello world", 7), false), "hello~");
    }

    #[test]
    fn no_line_is_wider_than_asked_for() {
        let text = "A 文字 mixture of 👩‍👩‍👧 and verylongwordsthatneverend and-some-dashes, ok? ".repeat(5);
        for columns in 2..60 {
            assert!(wrap(&text, columns).iter().all(|line| width(line) <= columns), "{columns}");
            assert!(width(&shorten(&text, columns)) <= columns, "{columns}");
        }
    }

    #[test]
    fn arguments_read_as_pairs() {
        let arguments = arguments(&serde_json::json!({"limit": 3, "query": "re\nfunds"}));

        assert_eq!(arguments, r#"limit=3 query="re\nfunds""#);
    }

    proptest::proptest! {
        #[test]
        fn fuzz_terminal_text(parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..60), rest in ".{0,20}") {
            let text = parts.concat() + &rest;

            let safe = sanitise(&text);
            let letters: Vec<char> = safe.chars().collect();
            for (at, letter) in letters.iter().enumerate() {
                let before = at.checked_sub(1).map(|at| letters[at]);
                let hidden = is_invisible(*letter) && !makes_emoji(before, *letter, letters.get(at + 1).copied());
                proptest::prop_assert!((!letter.is_control() || *letter == '\n') && !hidden, "{:?}", safe);
            }
            proptest::prop_assert_eq!(sanitise(&safe), safe.as_str(), "what is harmless stays as it is");
            proptest::prop_assert!(!one_line(&text).contains('\n'));
            for columns in [8, 80] {
                proptest::prop_assert!(wrap(&safe, columns).iter().all(|line| width(line) <= columns), "{:?}", safe);
                proptest::prop_assert!(width(&shorten(&one_line(&text), columns)) <= columns);
            }
            let json = serde_json::to_string(&text).unwrap();
            let harmless = escaped_json(&json);
            proptest::prop_assert!(!harmless.chars().any(|letter| letter.is_control() || is_invisible(letter)));
            proptest::prop_assert_eq!(serde_json::from_str::<String>(&harmless).unwrap(), text);
        }
    }

    const PARTS: &[&str] = &[
        "\u{1b}[2J",
        "\u{1b}]0;x\u{7}",
        "\u{9b}",
        "\r",
        "\r\n",
        "\n",
        "\t",
        "\u{7f}",
        "\u{202e}",
        "\u{2066}",
        "\u{200d}",
        "\u{fe0f}",
        "\u{20e3}",
        "1",
        "👩",
        "💻",
        "❤",
        "\u{301}",
        "\u{e0041}",
        "\u{3164}",
        "word ",
        " ",
        "世",
        "a",
        "\u{2028}",
        "\u{85}",
        "\\",
        "\"",
    ];
}
