//! Checks of the options that a request gives to a brain.

use positronic_core::definition::BrainDefinition;
use positronic_core::record::MAX_DOCUMENT_BYTES;
use serde_json::{Map, Value};

use crate::app::App;
use crate::bodies::{cut, masked_errors_of};
use crate::problem::{FieldError, Problem, ProblemType};

/// The most unknown options that an answer lists.
const MAX_ERRORS: usize = 20;
/// How many references a schema may follow to one of its parts.
const MAX_DEPTH: usize = 64;

impl App {
    /// Reads options as the brain does, with its defaults. An option that the brain does not have is refused, since a misspelt one
    /// would start a run with a default.
    pub(crate) fn read_options(&self, brain: &BrainDefinition, options: &Value) -> Result<Value, Problem> {
        let schema = brain.options.json();
        let has_none = schema.get("type").is_some_and(|kind| kind == "null");
        if has_none && !options.is_null() && !options.as_object().is_some_and(Map::is_empty) {
            return Err(options_invalid(&format!("the brain `{}` has no options", brain.title)));
        }
        let mut errors = Vec::new();
        unknown_fields(schema, schema, options, "/options", MAX_DEPTH, &mut errors);
        if let Some(first) = errors.first() {
            return Err(Problem::new(ProblemType::OptionsInvalid).detail(&first.detail).errors(errors));
        }
        (brain.read_options)(options, MAX_DOCUMENT_BYTES).map_err(|error| match self.settings.redact {
            // The brain's sentence may quote a secret.
            Some(_) => masked_options_invalid(schema, options),
            None => options_invalid(&error),
        })
    }
}

/// Refuses options with secrets, without quoting them.
fn masked_options_invalid(schema: &Value, options: &Value) -> Problem {
    let validator = jsonschema::validator_for(schema).ok();
    let mut errors = validator.map_or_else(Vec::new, |validator| masked_errors_of(&validator, options));
    errors.iter_mut().for_each(|error| error.pointer.insert_str(0, "/options"));
    Problem::new(ProblemType::OptionsInvalid).errors(errors)
}

/// Refuses options for a reason that names no field.
pub(super) fn options_invalid(reason: &impl ToString) -> Problem {
    let errors = vec![FieldError::new("/options", reason.to_string())];
    Problem::new(ProblemType::OptionsInvalid).detail(reason.to_string()).errors(errors)
}

/// Lists the fields of objects that the schema does not name. A schema with alternatives or further properties names none.
fn unknown_fields(
    root: &Value,
    schema: &Value,
    value: &Value,
    pointer: &str,
    depth: usize,
    errors: &mut Vec<FieldError>,
) {
    let Some(depth) = depth.checked_sub(1).filter(|_| errors.len() < MAX_ERRORS) else { return };
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.into_iter().for_each(|target| unknown_fields(root, target, value, pointer, depth, errors));
    }
    let is_open = ["additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf"]
        .iter()
        .any(|keyword| schema.get(keyword).is_some_and(|given| *given != Value::Bool(false)));
    let properties = schema.get("properties").and_then(Value::as_object).filter(|_| !is_open);
    if let (Some(properties), Some(fields)) = (properties, value.as_object()) {
        for (name, field) in fields {
            if errors.len() >= MAX_ERRORS {
                break;
            }
            let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            match properties.get(name) {
                Some(schema) => unknown_fields(root, schema, field, &pointer, depth, errors),
                None => {
                    let (name, pointer) = (cut(name), cut(&pointer));
                    let known = properties.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                    let detail = match known.is_empty() {
                        true => format!("unknown option `{name}`; there are none here"),
                        false => format!("unknown option `{name}`; the options are {known}"),
                    };
                    errors.push(FieldError::new(pointer, detail));
                }
            }
        }
    }
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        for (index, item) in values.iter().enumerate() {
            unknown_fields(root, items, item, &format!("{pointer}/{index}"), depth, errors);
        }
    }
}
