//! Bodies of requests: how many large ones are in memory; JSON is checked by the schema of its route, and errors name the invalid places.

use std::fmt;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use positronic_core::record::check_numbers;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

use crate::problem::{FieldError, Problem, ProblemType};

/// The largest number of invalid places that an answer lists.
const MAX_ERRORS: usize = 20;
/// The most characters of the text of an error.
const MAX_ERROR: usize = 500;
/// The most values of a body. A decoded value may take a hundred times the memory of its text.
const MAX_VALUES: usize = 50_000;

/// How many large bodies are in memory at once, and how many of them before their signature is checked, so that anonymous
/// senders leave room for callers.
pub(crate) const MAX_LARGE_BODIES: usize = 8;
pub(crate) const MAX_LARGE_ANONYMOUS_BODIES: usize = 4;

/// The compiled schema of a route's body.
pub(crate) struct BodySchema(Option<jsonschema::Validator>);

impl BodySchema {
    /// Compiles a schema. With one that cannot be compiled, every body matches.
    pub(crate) fn new(schema: impl FnOnce(&mut SchemaGenerator) -> Schema) -> Self {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        let mut schema = schema(&mut generator);
        schema.insert("$defs".to_owned(), Value::Object(generator.take_definitions(true)));
        Self(jsonschema::validator_for(schema.as_value()).ok())
    }

    /// Decodes and checks the body of a request.
    pub(crate) fn read(&self, body: &[u8]) -> Result<Value, Problem> {
        if values(body) > MAX_VALUES {
            let detail = format!("the JSON has more than {MAX_VALUES} values");
            return Err(Problem::new(ProblemType::TooLarge).detail(detail).field("max_values", MAX_VALUES));
        }
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| Problem::new(ProblemType::InvalidJson).detail(format!("the body is not JSON: {error}")))?;
        check_numbers(&String::from_utf8_lossy(body)).map_err(|number| {
            let detail = format!("the JSON has {number}");
            let place = FieldError::new(cut(&number.pointer), cut(&number.to_string()));
            Problem::new(ProblemType::InvalidJson).detail(cut(&detail)).errors(vec![place])
        })?;
        let errors = self.0.as_ref().map_or_else(Vec::new, |validator| errors_of(validator, &value));
        if errors.is_empty() { Ok(value) } else { Err(Problem::new(ProblemType::InvalidBody).errors(errors)) }
    }
}

/// Counts the values of JSON, without decoding it: the items of its lists and objects, and the lists and objects themselves.
fn values(json: &[u8]) -> usize {
    let (mut count, mut in_text, mut is_escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

/// Lists the places of a value that do not match a schema.
pub(crate) fn errors_of(validator: &jsonschema::Validator, value: &Value) -> Vec<FieldError> {
    let errors = validator.iter_errors(value).take(MAX_ERRORS);
    errors.map(|error| field_error(&error, &error)).collect()
}

/// Lists the places of a value with secrets that do not match a schema, without quoting the value.
pub(crate) fn masked_errors_of(validator: &jsonschema::Validator, value: &Value) -> Vec<FieldError> {
    let errors = validator.iter_errors(value).take(MAX_ERRORS);
    errors.map(|error| field_error(&error, &error.masked())).collect()
}

/// Names the place of an error, which has its description: that of a missing field is the field's own, where a form can show it.
fn field_error(error: &ValidationError<'_>, described: &impl fmt::Display) -> FieldError {
    let place = error.instance_path();
    match error.kind() {
        ValidationErrorKind::Required { property: Value::String(name) } => {
            FieldError::new(cut(place.join(name.as_str()).as_str()), "is required")
        }
        _ => FieldError::new(cut(place.as_str()), cut(&described.to_string())),
    }
}

/// Cuts what quotes a value of the body: the answer to a large body stays small.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_ERROR) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
