//! The options of a run, typed by the brain's schema.
//!
//! They come as `-o key=value`, parsed by the schema, as one JSON document with
//! `--options`, or both: the pairs override the document. `-o list=a -o list=b` fills a list, `-o a.b=1` sets
//! a nested field. All problems are reported at once, each with its field, the given value and the expected format.

mod entries;
mod example;
mod problem;
mod schema;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub(crate) use entries::{Entry, entries, read_entry, sample};
pub(crate) use example::{example, fields, shell_word};
pub(crate) use problem::{OptionsError, Problem};
use schema::{Kind, Shape, ranged};

use crate::cli::json::no_json;

/// Parses options from `key=value` pairs and a JSON document.
///
/// # Errors
///
/// [`OptionsError`] with every [`Problem`].
pub(crate) fn parse(schema: &Value, pairs: &[String], document: Option<&str>) -> Result<Value, OptionsError> {
    let schema = &ranged(schema);
    let mut reader = Reader { schema, problems: Vec::new(), given: Vec::new() };
    let mut options = reader.document(document);
    for pair in pairs {
        match pair.split_once('=') {
            Some((key, text)) if !key.trim().is_empty() => reader.assign(&mut options, key.trim(), text),
            _ => reader.problems.push(Problem::NotAPair { given: pair.clone() }),
        }
    }
    reader.check(&options);
    if reader.problems.is_empty() {
        Ok(options)
    } else {
        Err(OptionsError { problems: reader.problems, example: example(schema) })
    }
}

struct Reader<'a> {
    schema: &'a Value,
    problems: Vec<Problem>,
    /// The keys so far, to detect repeated ones.
    given: Vec<String>,
}

impl Reader<'_> {
    /// Parses the document; the default is an empty object, or `null` for a brain without options.
    fn document(&mut self, text: Option<&str>) -> Value {
        let empty = match Shape::of(self.schema, self.schema).kind {
            Kind::Null => Value::Null,
            _ => Value::Object(Map::new()),
        };
        let Some(text) = text else { return empty };
        match serde_json::from_str(text) {
            Ok(document) => document,
            Err(error) => {
                self.problems.push(Problem::NoJson { message: no_json(text, &error) });
                empty
            }
        }
    }

    fn assign(&mut self, options: &mut Value, key: &str, text: &str) {
        let repeated = self.given.iter().any(|given| given == key);
        self.given.push(key.to_owned());
        let parts: Vec<&str> = match schema::property(self.schema, self.schema, key) {
            Some(_) => vec![key],
            None => key.split('.').collect(),
        };
        let Some((last, around)) = parts.split_last() else { return };
        let mut schema = self.schema;
        let mut place = options;
        for part in around {
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
            Err(expected) => {
                let (key, given) = (key.to_owned(), text.to_owned());
                self.problems.push(Problem::Unfit { key, given, expected });
            }
            Ok(value) if repeated => match (shape.is_list(), entry(place, last), value) {
                (true, Value::Array(items), Value::Array(more)) => items.extend(more),
                _ => self.problems.push(Problem::Twice { key: key.to_owned() }),
            },
            Ok(value) => *entry(place, last) = value,
        }
    }

    fn unknown(&mut self, schema: &Value, key: &str, part: &str) {
        let known = schema::names(self.schema, schema);
        let prefix = key.strip_suffix(part).unwrap_or_default();
        let near = crate::cli::suggest::nearest(part, known.iter().copied());
        let near = near.iter().map(|name| format!("{prefix}{name}")).collect();
        let known = known.iter().map(|name| format!("{prefix}{name}")).collect();
        self.problems.push(Problem::Unknown { key: key.to_owned(), near, known });
    }

    /// Validates all options by the schema, and reports new problems.
    fn check(&mut self, options: &Value) {
        let validator = match jsonschema::validator_for(self.schema) {
            Ok(validator) => validator,
            Err(error) => {
                self.problems.push(Problem::Schema { message: error.to_string() });
                return;
            }
        };
        for error in validator.iter_errors(options) {
            let problem = problem::of(self.schema, &error);
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
