//! Errors in JSON that people write: on the command line, in a file, at a question.

use serde_json::error::Category;

use crate::render::{one_line, shorten};

/// Maximum length of the quoted part of invalid JSON.
const SHOWN: usize = 40;

/// Describes where a text is invalid JSON.
pub(crate) fn no_json(text: &str, error: &serde_json::Error) -> String {
    if text.trim().is_empty() {
        return "invalid JSON: it is empty".to_owned();
    }
    if error.classify() == Category::Eof {
        return "invalid JSON: it ends too early".to_owned();
    }
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    // The column counts bytes, and the invalid character is before it.
    let start = error.column().saturating_sub(1).min(line.len());
    let start = (0..=start).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    let rest = shorten(&one_line(line.get(start..).unwrap_or_default()), SHOWN);
    let line = if text.lines().nth(1).is_some() { format!(" in line {}", error.line()) } else { String::new() };
    format!("invalid JSON at `{rest}`{line}")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn said(text: &str) -> String {
        no_json(text, &serde_json::from_str::<Value>(text).unwrap_err())
    }

    #[test]
    fn invalid_json_is_described_without_parser_jargon() {
        assert_eq!(said("12 apples"), "invalid JSON at `apples`");
        assert_eq!(said("{\"a\": 1,\n \"b\": ü}"), "invalid JSON at `ü}` in line 2");
        assert_eq!(said("[1, 2"), "invalid JSON: it ends too early");
        assert_eq!(said(" "), "invalid JSON: it is empty");
        assert!(said(&"x".repeat(10_000)).len() < 100);
    }
}
