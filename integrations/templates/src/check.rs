//! The check of a template against the type of its variables, before there is a value.

use std::any::type_name;

use minijinja::{Environment, ErrorKind, Template, Value};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

use crate::error::{Cause, TemplateError, listed};
use crate::sample;

/// Checks that a template uses only variables of the type.
///
/// It looks at the variables that the template names, in all branches, then renders it with a sample, which also reaches
/// included templates and the items of lists.
pub(crate) fn check<T: JsonSchema>(
    environment: &Environment<'_>,
    template: &Template<'_, '_>,
) -> Result<(), TemplateError> {
    let schema = SchemaSettings::default().for_serialize().into_generator().into_root_schema_for::<T>();
    let (schema, context) = (Json::from(schema), short(type_name::<T>()));
    let sample = sample::of(&schema);
    let globals: Vec<&str> = environment.globals().map(|(name, _)| name).collect();
    let mut used: Vec<String> = template.undeclared_variables(true).into_iter().collect();
    used.sort_by_key(|variable| (line_of(template.source(), variable), variable.clone()));
    for variable in used {
        let first = variable.split('.').next().unwrap_or_default();
        if !globals.contains(&first) && !has(&sample, &variable) {
            return Err(TemplateError::UnknownVariable {
                template: template.name().to_owned(),
                line: line_of(template.source(), &variable),
                variable,
                context,
                known: listed(sample::names(&schema).iter().map(String::as_str)),
            });
        }
    }
    match template.render(sample) {
        Ok(_) => Ok(()),
        Err(error) => {
            let Cause { template, line, reason, kind } = Cause::of(template.name(), &error);
            match kind {
                // These do not depend on the values.
                ErrorKind::UndefinedError
                | ErrorKind::TemplateNotFound
                | ErrorKind::UnknownFilter
                | ErrorKind::UnknownTest
                | ErrorKind::UnknownFunction
                | ErrorKind::UnknownMethod
                | ErrorKind::UnknownBlock
                | ErrorKind::MissingArgument
                | ErrorKind::TooManyArguments
                | ErrorKind::SyntaxError => Err(TemplateError::Render { template, line, reason }),
                _ => Ok(()),
            }
        }
    }
}

/// Returns whether a sample has the value at a path of fields.
fn has(sample: &Value, path: &str) -> bool {
    let found = path.split('.').try_fold(sample.clone(), |value, name| match name.parse::<usize>() {
        Ok(index) => value.get_item_by_index(index),
        Err(_) => value.get_attr(name),
    });
    found.is_ok_and(|value| !value.is_undefined())
}

/// Returns the first line that names a variable, from 1.
fn line_of(source: &str, variable: &str) -> usize {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let begins = source.match_indices(variable).map(|(at, _)| at).find(|at| {
        let (before, after) = source.split_at(*at);
        let after = after.get(variable.len()..).unwrap_or_default();
        !before.ends_with(|letter: char| is_part(letter) || letter == '.') && !after.starts_with(is_part)
    });
    let before = begins.and_then(|at| source.get(..at)).unwrap_or_default();
    1 + before.matches('\n').count()
}

/// Returns the name of a type without its modules and parameters.
fn short(name: &str) -> String {
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name).to_owned()
}
