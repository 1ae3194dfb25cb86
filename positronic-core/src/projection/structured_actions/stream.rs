//! Extracts the reasoning from streaming structured actions, so that people read words instead of JSON.

/// Parser of a streaming answer.
#[derive(Debug, Default)]
pub(crate) struct ReasoningStream {
    depth: u32,
    /// The text at the top level, unless the parser is deeper.
    text: Text,
    /// Whether the next text at the top level is a field's value.
    value: bool,
    key: String,
    /// The beginning of an escape.
    escape: Option<String>,
    /// The first half of a surrogate pair.
    high: Option<u32>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Text {
    #[default]
    None,
    Key,
    Reason,
    Other,
}

impl ReasoningStream {
    /// Takes a piece of the answer's text and returns the new part of the reasoning.
    pub(crate) fn feed(&mut self, piece: &str) -> String {
        let mut gained = String::new();
        for letter in piece.chars() {
            self.letter(letter, &mut gained);
        }
        gained
    }

    fn letter(&mut self, letter: char, gained: &mut String) {
        if self.text != Text::None {
            match self.escape.take() {
                Some(begun) => self.escaped(begun, letter, gained),
                None => match letter {
                    '\\' => self.escape = Some(String::new()),
                    '"' => self.text = Text::None,
                    _ => self.spell(letter, gained),
                },
            }
            return;
        }
        match letter {
            // Text before the object is not JSON.
            '"' if self.depth == 0 => {}
            '"' => {
                let reason = self.depth == 1 && self.value && self.key == "reasoning";
                self.text = match (self.depth, self.value) {
                    _ if reason => Text::Reason,
                    (1, false) => {
                        self.key.clear();
                        Text::Key
                    }
                    _ => Text::Other,
                };
            }
            '{' | '[' => self.depth += 1,
            '}' | ']' => self.depth = self.depth.saturating_sub(1),
            ':' if self.depth == 1 => self.value = true,
            ',' if self.depth == 1 => self.value = false,
            _ => {}
        }
    }

    fn spell(&mut self, letter: char, gained: &mut String) {
        match self.text {
            Text::Key => self.key.push(letter),
            Text::Reason => gained.push(letter),
            Text::Other | Text::None => {}
        }
    }

    fn escaped(&mut self, mut begun: String, letter: char, gained: &mut String) {
        begun.push(letter);
        let spelt = match begun.as_str() {
            "n" => '\n',
            "t" => '\t',
            "r" => '\r',
            "b" => '\u{8}',
            "f" => '\u{c}',
            hex if hex.starts_with('u') && hex.len() < 5 => {
                self.escape = Some(begun);
                return;
            }
            hex if hex.starts_with('u') => {
                let code = hex.get(1..).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default();
                match (code, self.high.take()) {
                    (0xD800..0xDC00, _) => {
                        self.high = Some(code);
                        return;
                    }
                    (0xDC00..0xE000, Some(high)) => {
                        let whole = 0x1_0000 + ((high - 0xD800) << 10) + (code - 0xDC00);
                        char::from_u32(whole).unwrap_or(char::REPLACEMENT_CHARACTER)
                    }
                    _ => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
                }
            }
            _ => letter,
        };
        self.spell(spelt, gained);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_reason_is_shown() {
        let text = "Sure, \"quoted\": ```json\n{\"action\":\"reasoning\",\"input\":{\"reasoning\":\"not this\"},\
                    \"reasoning\":\"It is \\u00fcber\\ndue \\\"now\\\" \\ud83d\\ude00\",\"more\":[\"reasoning\"]}\n```";
        let mut stream = ReasoningStream::default();
        let shown: String = text.chars().map(|letter| stream.feed(&letter.to_string())).collect();

        assert_eq!(shown, "It is über\ndue \"now\" 😀");
    }

    proptest! {
        #[test]
        fn any_reason_in_any_pieces_is_shown_as_it_is(reason: String, other: String, cut in 1..7_usize) {
            let text = json!({"a": other, "reasoning": reason, "z": [{"reasoning": other}]}).to_string();
            let letters: Vec<char> = text.chars().collect();
            let mut stream = ReasoningStream::default();
            let shown: String = letters.chunks(cut).map(|piece| stream.feed(&piece.iter().collect::<String>())).collect();
            prop_assert_eq!(shown, reason);
        }
    }
}
