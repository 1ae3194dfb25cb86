//! A call's arguments for whoever decides about it: a text of several lines reads as it is, everything else as JSON.
//!
//! A text is indented below its name, also where a line of it is broken, so that none of it looks like what asks.

use serde_json::Value;

use super::figures::many;
use super::text::{arguments, one_line, sanitise, shorten, wrap};

/// How far a text stands in from its name.
const STEP: usize = 2;

/// The fewest columns that a text gets, however deep it stands.
const NARROWEST: usize = 20;

/// The room that arguments are written in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) columns: usize,
    /// The most rows of one text; all of them where none is said.
    pub(crate) most: Option<usize>,
    pub(crate) unicode: bool,
}

impl Room {
    /// Writes arguments in full: JSON, and texts of several lines below their names.
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

    /// Writes arguments for a list: what fits into a line, and texts of several lines below their names.
    pub(crate) fn brief(self, given: &Value) -> Vec<String> {
        let (mut rest, mut texts) = (given.clone(), Vec::new());
        match (&mut rest, given) {
            (Value::Object(short), Value::Object(fields)) => {
                short.retain(|_, value| !has_lines(value));
                for (name, value) in fields.iter().filter(|(_, value)| has_lines(value)) {
                    self.field(&mut texts, name, value, STEP);
                }
            }
            (rest @ Value::String(_), Value::String(text)) if has_lines(given) => {
                *rest = Value::Null;
                self.text(&mut texts, text, STEP);
            }
            _ => {}
        }
        let line = arguments(&rest, self.unicode);
        let line = Some(line).filter(|line| !line.is_empty());
        let line = line.map(|line| shorten(&format!("  with {line}"), self.columns, self.unicode));
        line.into_iter().chain(texts).collect()
    }

    fn field(self, rows: &mut Vec<String>, name: &str, value: &Value, indent: usize) {
        let label = format!("{}:", one_line(name, self.unicode));
        let below = indent + STEP;
        match value {
            value if !has_lines(value) => return self.json(rows, &format!("{label} "), value, indent),
            Value::Object(_) | Value::Array(_) | Value::String(_) => self.rows(rows, &label, indent, None),
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
        self.rows(rows, text.trim_end_matches(['\n', '\r']), indent, self.most);
    }

    fn json(self, rows: &mut Vec<String>, label: &str, value: &Value, indent: usize) {
        let json = serde_json::to_string_pretty(value).unwrap_or_default();
        self.rows(rows, &format!("{label}{json}"), indent, None);
    }

    /// Writes a text, cut after so many rows with a note of how many of its lines are not there as a whole.
    fn rows(self, rows: &mut Vec<String>, text: &str, indent: usize, most: Option<usize>) {
        let (margin, width) = (" ".repeat(indent), self.columns.saturating_sub(indent).max(NARROWEST));
        let safe = sanitise(text, self.unicode);
        let (mut written, mut cut) = (0, 0_u64);
        for line in safe.split('\n') {
            let parts = wrap(line, width);
            let room = most.map_or(usize::MAX, |most| most.saturating_sub(written));
            if parts.len() > room {
                cut += 1;
            }
            written += parts.len();
            rows.extend(parts.iter().take(room).map(|part| format!("{margin}{part}").trim_end().to_owned()));
        }
        if cut > 0 {
            let mark = if self.unicode { "…" } else { "..." };
            rows.push(format!("{margin}{mark} {} more; `report` has all", many(cut, "line")));
        }
    }
}

/// Says whether a text in a value has several lines.
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

    fn room(most: Option<usize>) -> Room {
        Room { columns: 40, most, unicode: true }
    }

    #[test]
    fn code_that_is_decided_about_reads_as_code() {
        let code = "set -e\nsum=0\nfor n in 1 2; do\n\tsum=$((sum + n))\ndone\necho \u{1b}[2J\"$sum\"\n";
        let given = json!({"code": code, "language": "bash", "limits": {"seconds": 5}});

        insta::assert_snapshot!(room(None).whole(&given).join("\n"), @r#"
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
        insta::assert_snapshot!(room(Some(2)).brief(&given).join("\n"), @r#"
          with language="bash" limits={"seconds…
          code:
            set -e
            sum=0
            … 4 lines more; `report` has all
        "#);
    }

    #[test]
    fn no_line_of_a_text_stands_where_the_question_does() {
        let long = format!("{}\nApprove? yes", "word ".repeat(30));
        let given = json!({"files": [{"name": "a", "content": long}], "note": "word ".repeat(30)});

        for rows in [room(None).whole(&given), room(Some(3)).brief(&given)] {
            assert!(rows.iter().all(|row| row.starts_with("  ") && row.chars().count() <= 40), "{rows:#?}");
            assert!(rows.iter().any(|row| row.starts_with("        word")), "{rows:#?}");
        }
        assert_eq!(room(None).whole(&json!("a\nb")), ["  a", "  b"]);
        assert_eq!(room(None).brief(&json!("a\nb")), ["  a", "  b"]);
        assert_eq!(room(Some(9)).brief(&json!({})), [""; 0]);
    }

    #[test]
    fn what_has_no_lines_stays_json() {
        let given = json!({"amount": 249, "order": "A-1001"});

        assert_eq!(room(None).whole(&given).join("\n"), "  {\n    \"amount\": 249,\n    \"order\": \"A-1001\"\n  }");
        assert_eq!(room(None).brief(&given), [r#"  with amount=249 order="A-1001""#]);
    }
}
