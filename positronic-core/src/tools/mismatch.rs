//! Error messages for values that do not fit their schema, as models read them.

use std::fmt;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::validation_work::nodes;

/// How many valid values a message lists.
const NAMED: usize = 30;

/// How many errors a message lists, and the maximum characters of each.
pub(super) const MAX_ERRORS: usize = 20;
const LONGEST: usize = 600;

/// Up to how many steps the errors are listed.
pub(super) const MAX_EXPLAINED: u64 = 200_000;

/// Names the places of a value that do not fit.
pub(super) fn explain(validator: &jsonschema::Validator, steps: Option<u64>, value: &Value) -> Result<(), String> {
    if validator.is_valid(value) {
        return Ok(());
    }
    // Listing the errors takes memory, unlike validation.
    if steps.unwrap_or_else(|| nodes(value)) > MAX_EXPLAINED {
        return Err("the value does not match the schema, and is too large to list the errors".to_owned());
    }
    let mut errors = validator.iter_errors(value);
    let mut problems: Vec<_> = errors
        .by_ref()
        .take(MAX_ERRORS)
        .map(|error| match error.instance_path().as_str() {
            "" => problem(&error, value),
            pointer => format!("at `{pointer}`: {}", problem(&error, value)),
        })
        .collect();
    match errors.count() {
        0 => {}
        more => problems.push(format!("and {more} more")),
    }
    Err(problems.join("; "))
}

/// Describes an error of a value. For an enumeration, it lists the valid values.
fn problem(error: &ValidationError<'_>, value: &Value) -> String {
    if matches!(error.kind(), ValidationErrorKind::FalseSchema) {
        // The error of a field that an object without fields has is at the object.
        let fields = value.pointer(error.instance_path().as_str()).and_then(Value::as_object);
        let named = fields.and_then(|fields| fields.iter().find(|(_, field)| *field == error.instance().as_ref()));
        return match named {
            Some((name, _)) => format!("the field `{}` is not allowed", cut(name)),
            None => format!("{} is not allowed here", cut(error.instance())),
        };
    }
    let Some(values) = choices(error).filter(|values| values.len() > 1) else { return cut(error) };
    let mut named: Vec<_> = values.iter().take(NAMED).map(cut).collect();
    let last = match values.len().saturating_sub(NAMED) {
        0 => named.pop().unwrap_or_default(),
        more => format!("{more} more"),
    };
    format!("{} is not one of {} or {last}", cut(error.instance()), named.join(", "))
}

/// Renders a value or message, truncated for a sentence.
pub(super) fn cut(shown: &impl fmt::Display) -> String {
    let text = shown.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Lists the valid values, if they can be enumerated.
fn choices(error: &ValidationError<'_>) -> Option<Vec<Value>> {
    match error.kind() {
        ValidationErrorKind::Enum { options } => options.as_array().cloned(),
        ValidationErrorKind::Constant { expected_value } => Some(vec![Value::clone(expected_value)]),
        ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } => {
            let branches = context.iter().map(|branch| match branch.as_slice() {
                [only] if only.instance_path() == error.instance_path() => choices(only),
                _ => None,
            });
            branches.collect::<Option<Vec<_>>>().map(|values| values.concat())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde_json::{Value, json};

    use crate::tools::Schema;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema is used")]
    struct Refund {
        order: String,
        amount: u32,
    }

    #[test]
    fn error_lists_the_valid_values() {
        let plain = Schema::new(json!({"properties": {"way": {"enum": ["north", "east", "south", "west"]}}}));
        let constants = Schema::new(json!({"properties": {"way": {"oneOf": [{"const": "up"}, {"const": "down"}]}}}));
        let mixed = Schema::new(json!({"properties": {"way": {"anyOf": [{"const": "up"}, {"type": "integer"}]}}}));
        let left = json!({"way": "left"});

        let sentence = "at `/way`: \"left\" is not one of \"north\", \"east\", \"south\" or \"west\"";
        assert_eq!(plain.check(&left).unwrap_err(), sentence);
        assert_eq!(constants.check(&left).unwrap_err(), "at `/way`: \"left\" is not one of \"up\" or \"down\"");
        let sentence = "at `/way`: \"left\" is not valid under any of the schemas listed in the 'anyOf' keyword";
        assert_eq!(mixed.check(&left).unwrap_err(), sentence);
    }

    #[test]
    fn errors_of_a_huge_value_are_not_listed() {
        let orders = Value::Array(vec![json!(1); 200_001]);

        let error = Schema::of::<Vec<Refund>>().check(&orders).unwrap_err();

        assert_eq!(error, "the value does not match the schema, and is too large to list the errors");
    }

    #[test]
    fn every_error_is_listed() {
        let error = Schema::of::<Refund>().check(&json!({"amount": "much"})).unwrap_err();

        assert_eq!(error, "\"order\" is a required property; at `/amount`: \"much\" is not of type \"integer\"");
    }
}
