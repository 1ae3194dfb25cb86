//! Problems with options.

use std::fmt::Display;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::schema::{Shape, bare, names, property, resolve};
use crate::cli::did_you_mean;
use crate::render::shorten;

/// One problem: a sentence, and the option that it is about.
#[derive(Debug)]
pub(super) struct Problem {
    key: Option<String>,
    pub(super) message: String,
}

/// Maximum length of a quoted value.
const SHOWN: usize = 60;

impl Problem {
    /// A problem of no single option.
    pub(super) fn general(message: impl Display) -> Self {
        Self { key: None, message: message.to_string() }
    }

    pub(super) fn of(key: impl Into<String>, message: impl Display) -> Self {
        let key = key.into();
        Self { message: format!("{key}: {message}"), key: Some(key) }
    }

    /// The option `key`, where no option has the name `written` after `prefix`.
    pub(super) fn unknown(key: &str, prefix: &str, written: &str, known: &[&str]) -> Self {
        let all = known.iter().map(|name| format!("{prefix}{name}")).collect::<Vec<_>>().join(", ");
        let help = match did_you_mean(written, known.iter().copied(), prefix) {
            Some(question) => question,
            None if known.is_empty() => "the brain has no options".to_owned(),
            None => format!("the options are {all}"),
        };
        Self::of(key, format!("unknown option; {help}"))
    }

    /// A value of the wrong format.
    pub(super) fn unexpected(key: &str, given: &str, expected: &str) -> Self {
        let given = quoted(given);
        if key.is_empty() {
            let message = format!("the options are {given}, expected {expected}");
            return Self { key: Some(String::new()), message };
        }
        Self::of(key, format!("got {given}, expected {expected}"))
    }

    /// Returns whether another problem is only a consequence of this one.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let (Some(own), Some(other)) = (&self.key, &other.key) else { return false };
        own == other || own.strip_prefix(other).is_some_and(|rest| rest.starts_with('.') && !other.is_empty())
    }

    /// Converts a validator's error into a problem.
    pub(super) fn from_validator(schema: &Value, error: &ValidationError<'_>) -> Self {
        let pointer = error.instance_path().to_string();
        let parts: Vec<&str> = pointer.split('/').filter(|part| !part.is_empty()).collect();
        let key_of = |last: Option<&str>| parts.iter().copied().chain(last).collect::<Vec<_>>().join(".");
        let expected_at = |last: Option<&str>| {
            let mut at = schema;
            for part in parts.iter().copied().chain(last) {
                at = property(schema, at, part).or_else(|| resolve(schema, at).get("items"))?;
            }
            Some(Shape::of(schema, at).expected())
        };
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                let name = bare(property);
                let expected = expected_at(Some(&name)).unwrap_or_else(|| "a value".to_owned());
                Self::of(key_of(Some(&name)), format!("missing, expected {expected}"))
            }
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                let parent = parts.iter().try_fold(schema, |at, part| property(schema, at, part)).unwrap_or(schema);
                let written = unexpected.first().map_or("", String::as_str);
                Self::unknown(&key_of(Some(written)), &key_of(Some("")), written, &names(schema, parent))
            }
            _ => {
                let expected = expected_at(None).unwrap_or_else(|| error.to_string());
                Self::unexpected(&key_of(None), &error.instance().to_string(), &expected)
            }
        }
    }
}

/// Quotes the beginning of what was given.
pub(super) fn quoted(given: &str) -> String {
    format!("`{}`", shorten(given, SHOWN))
}
