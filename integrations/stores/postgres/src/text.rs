//! Text columns for ids and names, which may contain U+0000.
//!
//! PostgreSQL cannot store that character. The escape keeps the order by bytes and beginnings, and leaves usual texts as
//! they are, so that people can query the tables. Documents need no escape: JSON has its own.

use std::borrow::Cow;

/// Begins an escaped character.
const ESCAPE: char = '\u{1}';

/// Encodes a text for a column.
pub(crate) fn column(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', ESCAPE]) {
        text.replace(ESCAPE, "\u{1}\u{2}").replace('\0', "\u{1}\u{1}").into()
    } else {
        text.into()
    }
}

/// Decodes a text from a column.
pub(crate) fn value(column: String) -> String {
    if !column.contains(ESCAPE) {
        return column;
    }
    let mut text = String::with_capacity(column.len());
    let mut chars = column.chars();
    while let Some(char) = chars.next() {
        text.push(match char {
            ESCAPE if chars.next() == Some('\u{1}') => '\0',
            char => char,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 13] = [
        "",
        "\0",
        "\0\0",
        "\0\u{1}",
        "\0a",
        "\u{1}",
        "\u{1}\0",
        "\u{1}\u{1}",
        "\u{1}\u{2}",
        "\u{2}",
        "a",
        "a\0b",
        "\u{1F600}",
    ];

    #[test]
    fn columns_have_no_nul_and_decode_to_their_text() {
        for text in TEXTS {
            assert!(!column(text).contains('\0'));
            assert_eq!(value(column(text).into_owned()), text);
        }
    }

    #[test]
    fn columns_keep_the_order_and_the_beginnings_of_texts() {
        for one in TEXTS {
            for other in TEXTS {
                assert_eq!(column(one).cmp(&column(other)), one.cmp(other), "{one:?} and {other:?}");
                assert_eq!(column(one).starts_with(&*column(other)), one.starts_with(other), "{one:?} and {other:?}");
            }
        }
    }
}
