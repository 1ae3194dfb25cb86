//! Examples and descriptions of options, derived from their schema.

use std::borrow::Cow;

use serde_json::Value;

use super::schema::Shape;

/// One option in the list of `show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OptionField {
    /// Its key, with dots for nested fields.
    pub(crate) key: String,
    /// The expected format.
    pub(crate) expected: String,
    /// Whether it is required.
    pub(crate) required: bool,
    /// The author's description.
    pub(crate) description: Option<String>,
    /// Its default.
    pub(crate) default: Option<String>,
}

/// Maximum depth of listed objects.
const DEPTH: usize = 3;

/// Lists the options, including nested ones.
pub(crate) fn fields(schema: &Value) -> Vec<OptionField> {
    let mut fields = Vec::new();
    collect(&Shape::of(schema, schema), "", true, DEPTH, &mut fields);
    fields
}

fn collect(shape: &Shape<'_>, prefix: &str, required: bool, depth: usize, fields: &mut Vec<OptionField>) {
    for (name, inner, needed) in shape.properties() {
        let key = format!("{prefix}{name}");
        if inner.is_object() && depth > 0 {
            collect(&inner, &format!("{key}."), required && needed, depth - 1, fields);
        } else {
            let (description, default) = shape.notes(name);
            fields.push(OptionField {
                key,
                expected: inner.expected(),
                required: required && needed,
                description,
                default,
            });
        }
    }
}

/// Renders the flags of an example call: all required options, or else the first option.
pub(crate) fn example(schema: &Value) -> String {
    let mut flags = Vec::new();
    samples(&Shape::of(schema, schema), "", DEPTH, &mut flags);
    flags.join(" ")
}

fn samples(shape: &Shape<'_>, prefix: &str, depth: usize, flags: &mut Vec<String>) {
    let properties = shape.properties();
    let any_required = properties.iter().any(|(_, _, required)| *required);
    for (index, (name, inner, required)) in properties.iter().enumerate() {
        if !required && (any_required || index > 0) {
            continue;
        }
        let key = format!("{prefix}{name}");
        if inner.is_object() && depth > 0 {
            samples(inner, &format!("{key}."), depth - 1, flags);
        } else {
            flags.push(format!("-o {key}={}", shell_word(&inner.sample())));
        }
    }
}

/// Quotes a word for a shell if needed.
pub(crate) fn shell_word(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), Cow::into_owned)
}
