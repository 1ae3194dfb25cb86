//! Values in a report: an object as a list of its fields, a short one within the line, a long one as a block.

use std::fmt::Write as _;

use serde_json::Value;

use crate::render::extent;
use crate::render::markdown::{block, code, fits_in_line, whole_block};

/// Length of a rendered value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// Its beginning and its size.
    Cut,
    /// All of it after its size: a person decides about it.
    Whole,
}

/// Writes a value as items of a list: one for each field of an object, else one.
pub(super) fn fields(out: &mut String, value: &Value, indent: &str) {
    match value {
        Value::Object(fields) if !fields.is_empty() => items(out, fields, indent, Length::Cut),
        value => block(out, &written(value), indent),
    }
}

/// Writes a value as an item of a list, the fields of an object as a list in it.
pub(super) fn labelled(out: &mut String, label: &str, value: &Value, indent: &str, length: Length) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            _ = writeln!(out, "{indent}- {label}");
            items(out, fields, &format!("{indent}  "), length);
        }
        value => item(out, label, value, indent, length),
    }
}

fn items(out: &mut String, fields: &serde_json::Map<String, Value>, indent: &str, length: Length) {
    for (name, value) in fields {
        item(out, &code(name), value, indent, length);
    }
}

fn item(out: &mut String, label: &str, value: &Value, indent: &str, length: Length) {
    let short = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if short.is_empty() {
        _ = writeln!(out, "{indent}- {label}: empty");
    } else if fits_in_line(&short) {
        _ = writeln!(out, "{indent}- {label}: {}", code(&short));
    } else {
        let size = extent(value).filter(|_| length == Length::Whole);
        let size = size.map_or_else(String::new, |size| format!(" ({size})"));
        _ = write!(out, "{indent}- {label}{size}:\n\n");
        let write = if length == Length::Whole { whole_block } else { block };
        write(out, &written(value), &format!("{indent}  "));
        out.push('\n');
    }
}

fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}
