//! Problems with options.

use std::fmt;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::schema::{Shape, bare, property};
use crate::cli::suggest::did_you_mean;
use crate::render::text::shorten;

/// Invalid options, with all problems.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.problems))]
pub(crate) struct OptionsError {
    /// All problems, in the order of the options.
    pub(crate) problems: Vec<Problem>,
    /// Valid example flags.
    pub(crate) example: String,
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Problem {
    /// An argument is not of the form `key=value`.
    NotAPair {
        /// The argument.
        given: String,
    },
    /// The document is invalid JSON.
    NoJson {
        /// The reason.
        message: String,
    },
    /// Unknown option.
    Unknown {
        /// The option.
        key: String,
        /// Similar names.
        near: Vec<String>,
        /// All names.
        known: Vec<String>,
    },
    /// A value has the wrong format.
    Unfit {
        /// The option.
        key: String,
        /// The given value.
        given: String,
        /// The expected format.
        expected: String,
    },
    /// An option that is not a list was given twice.
    Twice {
        /// The option.
        key: String,
    },
    /// A required option is missing.
    Missing {
        /// The option.
        key: String,
        /// The expected format.
        expected: String,
    },
    /// The brain's schema is an invalid JSON schema.
    Schema {
        /// The reason.
        message: String,
    },
}

/// Maximum length of a quoted value.
const SHOWN: usize = 60;

fn short(given: &str) -> String {
    shorten(given, SHOWN, true)
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPair { given } => write!(f, "`{}` is not of the form key=value", short(given)),
            Self::NoJson { message } => write!(f, "--options: {message}"),
            Self::Unknown { key, near, known } => {
                write!(f, "{key}: unknown option")?;
                let near: Vec<&str> = near.iter().map(String::as_str).collect();
                match did_you_mean(&near) {
                    Some(question) => write!(f, "; {question}"),
                    None if known.is_empty() => write!(f, "; the brain has no options"),
                    None => write!(f, "; the options are {}", known.join(", ")),
                }
            }
            Self::Unfit { key, given, expected } if key.is_empty() => {
                write!(f, "the options are `{}`, expected {expected}", short(given))
            }
            Self::Unfit { key, given, expected } => write!(f, "{key}: got `{}`, expected {expected}", short(given)),
            Self::Twice { key } => write!(f, "{key}: given twice, but it is not a list"),
            Self::Missing { key, expected } => write!(f, "{key}: missing, expected {expected}"),
            Self::Schema { message } => write!(f, "the brain's options have a broken schema: {message}"),
        }
    }
}

impl Problem {
    fn key(&self) -> Option<&str> {
        match self {
            Self::Unknown { key, .. } | Self::Unfit { key, .. } | Self::Twice { key } | Self::Missing { key, .. } => {
                Some(key)
            }
            Self::NotAPair { .. } | Self::NoJson { .. } | Self::Schema { .. } => None,
        }
    }

    /// Returns whether another problem is only a consequence of this one.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, self.key(), other.key()) {
            (Self::NoJson { .. }, _, _) => true,
            (_, Some(own), Some(other)) => {
                own == other || own.strip_prefix(other).is_some_and(|rest| rest.starts_with('.') && !other.is_empty())
            }
            _ => false,
        }
    }
}

/// Converts a validator's error into a problem.
pub(super) fn of(schema: &Value, error: &ValidationError<'_>) -> Problem {
    let pointer = error.instance_path().to_string();
    let parts: Vec<&str> = pointer.split('/').filter(|part| !part.is_empty()).collect();
    let key_of = |last: Option<&str>| parts.iter().copied().chain(last).collect::<Vec<_>>().join(".");
    let expected_at = |last: Option<&str>| {
        let mut at = schema;
        for part in parts.iter().copied().chain(last) {
            at = property(schema, at, part).or_else(|| super::schema::resolve(schema, at).get("items"))?;
        }
        Some(Shape::of(schema, at).expected())
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = bare(property);
            let expected = expected_at(Some(&name)).unwrap_or_else(|| "a value".to_owned());
            Problem::Missing { key: key_of(Some(&name)), expected }
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let key = key_of(unexpected.first().map(String::as_str));
            let around = parts.iter().try_fold(schema, |at, part| property(schema, at, part)).unwrap_or(schema);
            let names = super::schema::names(schema, around);
            let written = unexpected.first().map_or("", String::as_str);
            let near = crate::cli::suggest::nearest(written, names.iter().copied());
            let near = near.iter().map(|name| key_of(Some(name))).collect();
            Problem::Unknown { key, near, known: names.iter().map(|name| key_of(Some(name))).collect() }
        }
        _ => {
            let given = error.instance().to_string();
            let expected = expected_at(None).unwrap_or_else(|| error.to_string());
            Problem::Unfit { key: key_of(None), given, expected }
        }
    }
}
