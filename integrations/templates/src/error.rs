//! The errors of templates, each with the template and the line.

use std::error::Error as _;

use minijinja::ErrorKind;

/// An error of a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The template cannot be parsed.
    #[error("cannot parse the template `{template}`, line {line}: {reason}")]
    Syntax {
        /// The template.
        template: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The template uses a variable that its type does not have.
    #[error(
        "the template `{template}`, line {line}, uses `{variable}`, which `{context}` does not have; it has {known}"
    )]
    UnknownVariable {
        /// The template.
        template: String,
        /// The line, from 1.
        line: usize,
        /// The variable, as the template writes it.
        variable: String,
        /// The type of the variables.
        context: String,
        /// The variables of the type.
        known: String,
    },
    /// The template cannot be rendered.
    #[error("cannot render the template `{template}`, line {line}: {reason}")]
    Render {
        /// The template.
        template: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The set has no template of this name.
    #[error("there is no template `{template}`; the set has {known}")]
    UnknownTemplate {
        /// The name.
        template: String,
        /// The names of the templates.
        known: String,
    },
}

/// Where and why a template failed; in an included template, its name and line.
pub(crate) struct Cause {
    pub(crate) template: String,
    pub(crate) line: usize,
    pub(crate) reason: String,
    pub(crate) kind: ErrorKind,
}

impl Cause {
    pub(crate) fn of(template: &str, error: &minijinja::Error) -> Self {
        let mut innermost = error;
        while let Some(source) = innermost.source().and_then(|source| source.downcast_ref::<minijinja::Error>()) {
            innermost = source;
        }
        let written = innermost.range().zip(innermost.template_source()).and_then(|(range, text)| text.get(range));
        let what = innermost.detail().map_or_else(|| innermost.kind().to_string(), str::to_owned);
        Self {
            template: innermost.name().unwrap_or(template).to_owned(),
            line: innermost.line().unwrap_or(1),
            reason: match written.map(str::trim).filter(|written| !written.is_empty() && !what.contains(written)) {
                Some(written) => format!("{what}, at `{written}`"),
                None => what,
            },
            kind: innermost.kind(),
        }
    }
}

/// Lists names for a message.
pub(crate) fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
