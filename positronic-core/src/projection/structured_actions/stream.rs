//! Extracts the reasoning from streaming structured actions, so that people read words instead of JSON.

/// Parser of a streaming answer.
#[derive(Debug, Default)]
pub(crate) struct ReasoningStream {
    depth: u32,
    /// The top-level field whose value is being read.
    field: String,
    /// The current string or the last one, as it is written; of the reasoning, what was not yet returned.
    string: String,
    is_open: bool,
    /// Whether the next character of the string is escaped.
    is_escaped: bool,
}

impl ReasoningStream {
    /// Takes a piece of the answer's text and returns the new part of the reasoning.
    pub(crate) fn feed(&mut self, piece: &str) -> String {
        let mut gained = String::new();
        for letter in piece.chars() {
            match letter {
                '"' if self.is_open && !self.is_escaped => {
                    gained.push_str(&self.decoded());
                    self.is_open = false;
                }
                _ if self.is_open => {
                    self.is_escaped = letter == '\\' && !self.is_escaped;
                    self.string.push(letter);
                }
                // Text before the object is not JSON.
                '"' if self.depth > 0 => {
                    self.string.clear();
                    self.is_open = true;
                }
                '{' | '[' => self.depth += 1,
                '}' | ']' => self.depth = self.depth.saturating_sub(1),
                ':' if self.depth == 1 => self.field = std::mem::take(&mut self.string),
                ',' if self.depth == 1 => self.field.clear(),
                _ => {}
            }
        }
        gained + &self.decoded()
    }

    /// Takes the text that the string contains so far, if it is the reasoning.
    fn decoded(&mut self) -> String {
        if !self.is_open || self.depth != 1 || self.field != "reasoning" {
            return String::new();
        }
        let mut end = self.string.len();
        // At the end may be a part of an escape, or of a pair of them.
        for _ in 0..3 {
            let written = self.string.get(..end).unwrap_or_default();
            if let Ok(text) = serde_json::from_str(&format!("\"{written}\"")) {
                self.string.drain(..end);
                return text;
            }
            end = written.rfind('\\').unwrap_or_default();
        }
        String::new()
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
