//! Arguments of a call for the person who decides about it: multi-line texts as they are, everything else as JSON.
//!
//! A text is indented below its name, also after line breaks, so that it cannot imitate the question. Nothing is truncated
//! here: a caller that shows a part states the full size, and how to read the rest.

use serde_json::Value;

use super::figures::{many, size};
use super::text::{arguments, one_line, sanitise, width, wrap};

/// Indentation of a text below its name.
const STEP: usize = 2;

/// Minimum columns of a text at any depth.
const NARROWEST: usize = 20;

/// The available room.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArgumentLayout {
    pub(crate) columns: usize,
}

impl ArgumentLayout {
    /// Renders arguments in full: JSON, and multi-line texts below their names.
    pub(crate) fn whole(self, given: &Value) -> Vec<String> {
        let mut rows = Vec::new();
        match given {
            Value::Object(fields) if has_lines(given) => {
                for (name, value) in fields {
                    self.field(&mut rows, name, value, STEP);
                }
            }
            Value::String(text) if has_lines(given) => self.text(&mut rows, text, STEP),
            other => self.json(&mut rows, "", other, STEP),
        }
        rows
    }

    /// Renders arguments in full, in one row if they fit.
    pub(crate) fn compact(self, given: &Value) -> Vec<String> {
        let line = arguments(given);
        if line.is_empty() {
            return Vec::new();
        }
        let row = format!("  with {line}");
        if !has_lines(given) && width(&row) <= self.columns { vec![row] } else { self.whole(given) }
    }

    fn field(self, rows: &mut Vec<String>, name: &str, value: &Value, indent: usize) {
        let label = format!("{}:", one_line(name));
        let below = indent + STEP;
        match value {
            value if !has_lines(value) => return self.json(rows, &format!("{label} "), value, indent),
            Value::Object(_) | Value::Array(_) | Value::String(_) => self.rows(rows, &label, indent),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        match value {
            Value::String(text) => self.text(rows, text, below),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.field(rows, &index.to_string(), item, below);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.field(rows, name, value, below);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(self, rows: &mut Vec<String>, text: &str, indent: usize) {
        self.rows(rows, text.trim_end_matches(['\n', '\r']), indent);
    }

    fn json(self, rows: &mut Vec<String>, label: &str, value: &Value, indent: usize) {
        let json = serde_json::to_string_pretty(value).unwrap_or_default();
        self.rows(rows, &format!("{label}{json}"), indent);
    }

    fn rows(self, rows: &mut Vec<String>, text: &str, indent: usize) {
        let (margin, width) = (" ".repeat(indent), self.columns.saturating_sub(indent).max(NARROWEST));
        let safe = sanitise(text);
        rows.extend(wrap(&safe, width).iter().map(|row| format!("{margin}{row}").trim_end().to_owned()));
    }
}

/// Renders the extent of arguments of more than one line: `12 lines, 345 bytes`.
pub(crate) fn extent(given: &Value) -> Option<String> {
    let lines = ArgumentLayout { columns: usize::MAX }.whole(given).len();
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    (lines > 1).then(|| format!("{}, {}", many(number(lines), "line"), size(number(given.to_string().len()))))
}

/// Returns whether a value contains a multi-line text.
fn has_lines(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\n'),
        Value::Array(items) => items.iter().any(has_lines),
        Value::Object(fields) => fields.values().any(has_lines),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ROOM: ArgumentLayout = ArgumentLayout { columns: 40 };

    #[test]
    fn code_argument_keeps_its_lines() {
        let code = "set -e\nsum=0\nfor n in 1 2; do\n\tsum=$((sum + n))\ndone\necho \u{1b}[2J\"$sum\"\n";
        let given = json!({"code": code, "language": "bash", "limits": {"seconds": 5}});

        insta::assert_snapshot!(ROOM.whole(&given).join("\n"), @r#"
          code:
            set -e
            sum=0
            for n in 1 2; do
                sum=$((sum + n))
            done
            echo ␛[2J"$sum"
          language: "bash"
          limits: {
            "seconds": 5
          }
        "#);
        assert_eq!(ROOM.compact(&given), ROOM.whole(&given));
        assert_eq!(extent(&given).unwrap(), "11 lines, 135 bytes");
    }

    #[test]
    fn every_line_of_a_text_is_indented_below_the_question() {
        let long = format!("{}\nApprove? yes", "word ".repeat(30));
        let given = json!({"files": [{"name": "a", "content": long}], "note": "word ".repeat(30)});

        for rows in [ROOM.whole(&given), ROOM.compact(&given)] {
            assert!(rows.iter().all(|row| row.starts_with("  ") && row.chars().count() <= 40), "{rows:#?}");
            assert!(rows.iter().any(|row| row.starts_with("        word")), "{rows:#?}");
        }
        assert_eq!(ROOM.whole(&json!("a\nb")), ["  a", "  b"]);
        assert_eq!(ROOM.compact(&json!("a\nb")), ["  a", "  b"]);
        assert_eq!(ROOM.compact(&json!({})), [""; 0]);
    }

    #[test]
    fn value_without_lines_stays_json() {
        let given = json!({"amount": 249, "order": "A-1001"});

        assert_eq!(ROOM.whole(&given).join("\n"), "  {\n    \"amount\": 249,\n    \"order\": \"A-1001\"\n  }");
        assert_eq!(ROOM.compact(&given), [r#"  with amount=249 order="A-1001""#]);
    }
}
