//! The options of a run, typed by the brain's schema.
//!
//! They come as `-o key=value`, parsed by the schema, as one JSON document with
//! `--options`, or both: the pairs override the document. `-o list=a -o list=b` fills a list, `-o a.b=1` sets
//! a nested field. All problems are reported at once, each with its field, the given value and the expected format.

mod asked_fields;
mod example;
mod problem;
mod schema;

#[cfg(test)]
mod tests;

use positronic_core::record::check_numbers;
use positronic_core::tools::with_integer_bounds;
use serde_json::{Map, Value};

pub(crate) use asked_fields::{OptionEntry, entries, read_entry, sample};
pub(crate) use example::{example, fields, shell_word};
use problem::{Problem, quoted};
use schema::{Kind, Shape};

use crate::cli::no_json;

/// Invalid options: all problems, and valid example flags.
#[derive(Debug)]
pub(crate) struct OptionsError {
    /// One sentence each, in the order of the options.
    pub(crate) problems: Vec<String>,
    pub(crate) example: String,
}

/// Parses options from `key=value` pairs and a JSON document.
///
/// # Errors
///
/// [`OptionsError`] with every problem.
pub(crate) fn parse(schema: &Value, pairs: &[String], document: Option<&str>) -> Result<Value, OptionsError> {
    let schema = &with_integer_bounds(schema);
    let refuse = |problems| Err(OptionsError { problems, example: example(schema) });
    let mut options = match document.map(|text| (text, serde_json::from_str(text))) {
        None if matches!(Shape::of(schema, schema).kind, Kind::Null) => Value::Null,
        None => Value::Object(Map::new()),
        Some((text, Ok(document))) => match check_numbers(text) {
            Ok(()) => document,
            Err(number) => return refuse(vec![format!("--options: the JSON has {number}")]),
        },
        Some((text, Err(error))) => return refuse(vec![format!("--options: {}", no_json(text, &error))]),
    };
    let mut reader = Reader { schema, problems: Vec::new(), given: Vec::new() };
    for pair in pairs {
        match pair.split_once('=') {
            Some((key, text)) if !key.trim().is_empty() => reader.assign(&mut options, key.trim(), text),
            _ => reader.problems.push(Problem::general(format!("{} is not of the form key=value", quoted(pair)))),
        }
    }
    reader.check(&options);
    if reader.problems.is_empty() {
        return Ok(options);
    }
    refuse(reader.problems.into_iter().map(|problem| problem.message).collect())
}

struct Reader<'a> {
    schema: &'a Value,
    problems: Vec<Problem>,
    /// The keys so far, to detect repeated ones.
    given: Vec<String>,
}

impl Reader<'_> {
    fn assign(&mut self, options: &mut Value, key: &str, text: &str) {
        let repeated = self.given.iter().any(|given| given == key);
        self.given.push(key.to_owned());
        let parts: Vec<&str> = match schema::property(self.schema, self.schema, key) {
            Some(_) => vec![key],
            None => key.split('.').collect(),
        };
        let Some((last, parents)) = parts.split_last() else { return };
        let mut schema = self.schema;
        let mut place = options;
        for part in parents {
            let Some(inner) = schema::property(self.schema, schema, part) else {
                return self.unknown(schema, key, part);
            };
            schema = inner;
            place = entry(place, part);
        }
        let Some(inner) = schema::property(self.schema, schema, last) else {
            return self.unknown(schema, key, last);
        };
        let shape = Shape::of(self.schema, inner);
        match shape.read(text) {
            Err(expected) => self.problems.push(Problem::unexpected(key, text, &expected)),
            Ok(value) if repeated => match (shape.is_list(), entry(place, last), value) {
                (true, Value::Array(items), Value::Array(more)) => items.extend(more),
                _ => self.problems.push(Problem::of(key, "given twice, but it is not a list")),
            },
            Ok(value) => *entry(place, last) = value,
        }
    }

    fn unknown(&mut self, schema: &Value, key: &str, part: &str) {
        let known = schema::names(self.schema, schema);
        let prefix = key.strip_suffix(part).unwrap_or_default();
        self.problems.push(Problem::unknown(key, prefix, part, &known));
    }

    /// Validates all options by the schema, and reports new problems.
    fn check(&mut self, options: &Value) {
        let validator = match jsonschema::validator_for(self.schema) {
            Ok(validator) => validator,
            Err(error) => {
                let message = format!("the brain's options have a broken schema: {error}");
                return self.problems.push(Problem::general(message));
            }
        };
        for error in validator.iter_errors(options) {
            let problem = Problem::from_validator(self.schema, &error);
            if !self.problems.iter().any(|known| known.covers(&problem)) {
                self.problems.push(problem);
            }
        }
    }
}

/// Returns the entry of `key` in an object, and creates it if missing.
fn entry<'a>(place: &'a mut Value, key: &str) -> &'a mut Value {
    if !place.is_object() {
        *place = Value::Object(Map::new());
    }
    match place {
        Value::Object(fields) => fields.entry(key).or_insert(Value::Null),
        other => other,
    }
}
