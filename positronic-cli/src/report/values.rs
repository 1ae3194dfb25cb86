//! Values in a report: an object as a list of its fields, a short one within the line, a long one as a block.

use std::fmt::Write as _;

use serde_json::Value;

use crate::markdown::{block, code, fits_in_line};

/// Writes a value as items of a list: one for each field of an object, else one.
pub(super) fn fields(out: &mut String, value: &Value, indent: &str) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                item(out, &code(name), value, indent);
            }
        }
        value => {
            block(out, &written(value), indent);
        }
    }
}

/// Writes a value as an item of a list, the fields of an object as a list in it.
pub(super) fn labelled(out: &mut String, label: &str, value: &Value, indent: &str) {
    match value {
        Value::Object(all) if !all.is_empty() => {
            _ = writeln!(out, "{indent}- {label}");
            fields(out, value, &format!("{indent}  "));
        }
        value => item(out, label, value, indent),
    }
}

fn item(out: &mut String, label: &str, value: &Value, indent: &str) {
    let short = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if short.is_empty() {
        _ = writeln!(out, "{indent}- {label}: empty");
    } else if fits_in_line(&short) {
        _ = writeln!(out, "{indent}- {label}: {}", code(&short));
    } else {
        _ = write!(out, "{indent}- {label}:\n\n");
        block(out, &written(value), &format!("{indent}  "));
        out.push('\n');
    }
}

fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}
