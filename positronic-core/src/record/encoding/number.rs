//! Numbers of JSON documents: those that a [`Value`] would round, and those without a fraction.
//!
//! A [`Value`] holds integers of 64 bits and floats, and rounds all other numbers without an error.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Number, Value};

/// The digits that every float keeps.
const ALWAYS_KEPT: usize = 15;

/// A number of a JSON text that a [`Value`] would round.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a number with too many digits{}: {number}; write one that fits into 64 bits, or a string",
    if pointer.is_empty() { String::new() } else { format!(" at `{pointer}`") }
)]
pub struct InexactNumber {
    /// Its place, as a JSON pointer (RFC 6901).
    pub pointer: String,
    /// The number as it is written.
    pub number: String,
}

/// Refuses a JSON text with a number that a [`Value`] would round; digits in strings are not numbers.
///
/// ```
/// use positronic_core::record::check_numbers;
///
/// assert!(check_numbers(r#"{"id": 18446744073709551615, "text": "18446744073709551617"}"#).is_ok());
/// assert_eq!(check_numbers(r#"{"id": 18446744073709551617}"#).unwrap_err().pointer, "/id");
/// ```
///
/// # Errors
///
/// [`InexactNumber`], the first of them.
pub fn check_numbers(json: &str) -> Result<(), InexactNumber> {
    if !may_have_long_number(json.as_bytes()) {
        return Ok(());
    }
    match inexact_numbers(json).next() {
        Some(place) => Err(InexactNumber { pointer: pointer(json, place), number: number_at(json, place).to_owned() }),
        None => Ok(()),
    }
}

/// Writes each number that a [`Value`] would round as a string with its digits, for a reader that must not refuse the text.
#[must_use]
pub fn quote_inexact_numbers(json: &str) -> Cow<'_, str> {
    let mut quoted = String::new();
    let mut copied = 0;
    for place in inexact_numbers(json) {
        let number = number_at(json, place);
        quoted.extend([json.get(copied..place).unwrap_or_default(), "\"", number, "\""]);
        copied = place + number.len();
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    quoted.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(quoted)
}

/// Returns whether a text has a digit before an `e`, or more digits in a row than are always kept; both may be in its strings. Nearly
/// no text has, and this looks at many bytes at once.
fn may_have_long_number(text: &[u8]) -> bool {
    let exponent = |(digit, letter): (&u8, &u8)| digit.is_ascii_digit() & (letter | 0x20 == b'e');
    if text.iter().zip(text.iter().skip(1)).fold(false, |found, pair| found | exponent(pair)) {
        return true;
    }
    let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let length = |place: usize| {
        let (before, after) = text.split_at(place);
        before.iter().rev().take_while(is_part).count() + after.iter().take_while(is_part).count()
    };
    // A row of this many digits covers one of these places.
    let mut places = (ALWAYS_KEPT..text.len()).step_by(ALWAYS_KEPT + 1);
    places.any(|place| text.get(place).as_ref().is_some_and(is_part) && length(place) > ALWAYS_KEPT)
}

/// Finds the numbers of a JSON text that a value would not keep exactly.
fn inexact_numbers(json: &str) -> impl Iterator<Item = usize> {
    let bytes = json.as_bytes();
    let mut next = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = bytes.get(next..).unwrap_or_default();
            let place = next + rest.iter().position(|byte| matches!(byte, b'"' | b'-' | b'0'..=b'9'))?;
            if bytes.get(place) == Some(&b'"') {
                next = end_of_string(bytes, place);
                continue;
            }
            let literal = number_at(json, place);
            next = place + literal.len();
            if !is_kept(literal) {
                return Some(place);
            }
        }
    })
}

/// Returns the JSON pointer of a place in a JSON text.
fn pointer(json: &str, end: usize) -> String {
    let bytes = json.as_bytes();
    let mut steps = Vec::new();
    let (mut text, mut place) = ("", 0);
    while let Some(byte) = bytes.get(place).filter(|_| place < end) {
        let begin = place;
        place = if *byte == b'"' { end_of_string(bytes, begin) } else { begin + 1 };
        match (byte, steps.last_mut()) {
            (b'"', _) => text = json.get(begin..place).unwrap_or_default(),
            (b'{', _) => steps.push(PointerStep::Field("")),
            (b'[', _) => steps.push(PointerStep::Item(0)),
            (b'}' | b']', _) => _ = steps.pop(),
            (b':', Some(PointerStep::Field(name))) => *name = text,
            (b',', Some(PointerStep::Item(index))) => *index += 1,
            _ => {}
        }
    }
    steps.iter().map(ToString::to_string).collect()
}

/// A step of a JSON pointer.
enum PointerStep<'a> {
    /// The name of a field, as it is written.
    Field(&'a str),
    Item(usize),
}

impl fmt::Display for PointerStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => {
                let name: String = serde_json::from_str(name).unwrap_or_else(|_| (*name).to_owned());
                write!(f, "/{}", name.replace('~', "~0").replace('/', "~1"))
            }
            Self::Item(index) => write!(f, "/{index}"),
        }
    }
}

/// Turns each number without a fraction into an integer, so that `50`, `50.0` and `5e1` are one value, as they are for a JSON schema.
/// Numbers beyond 64 bits stay as they are.
pub(crate) fn unify_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(integer) = integer(number) {
                *number = integer;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(unify_numbers),
        Value::Object(fields) => fields.values_mut().for_each(unify_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Returns a number without a fraction as an integer; `None` if it is one.
fn integer(number: &Number) -> Option<Number> {
    /// One more than the largest number of 64 bits, without and with a sign.
    const END: f64 = 18_446_744_073_709_551_616.0;
    let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)?;
    if (0.0..END).contains(&float) {
        Some((float as u64).into())
    } else if (-END / 2.0..0.0).contains(&float) {
        Some((float as i64).into())
    } else {
        None
    }
}

/// Returns the place after the string that begins at a place.
fn end_of_string(json: &[u8], start: usize) -> usize {
    let mut place = start + 1;
    loop {
        let rest = json.get(place..).unwrap_or_default();
        let Some(found) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) else { return json.len() };
        place += found;
        match json.get(place) {
            Some(b'"') => return place + 1,
            _ => place += 2,
        }
    }
}

/// Returns the number that begins at a place, which has at least one character.
fn number_at(json: &str, start: usize) -> &str {
    let rest = json.get(start..).unwrap_or_default();
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let length = rest.bytes().position(|byte| !is_part(&byte)).unwrap_or(rest.len());
    rest.get(..length.max(1)).unwrap_or(rest)
}

/// Returns whether a value keeps a number exactly. A float keeps it if it has the same digits when written with as many.
fn is_kept(literal: &str) -> bool {
    let is_float = literal.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    if !is_float {
        return literal.len() <= ALWAYS_KEPT || literal.parse::<i64>().is_ok() || literal.parse::<u64>().is_ok();
    }
    if literal.len() <= ALWAYS_KEPT && !literal.contains(['e', 'E']) {
        return true;
    }
    let digits = significant(literal);
    let Ok(float) = literal.parse::<f64>() else { return true };
    if digits.is_empty() || !float.is_finite() {
        return digits.is_empty();
    }
    significant(&format!("{float:.*e}", digits.len() - 1)) == digits
}

/// Returns the digits of a number before its exponent, without zeros at both ends.
fn significant(literal: &str) -> String {
    let mantissa = literal.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_a_value_keeps_are_accepted() {
        for kept in [
            "0",
            "-0",
            "9223372036854775807",
            "18446744073709551615",
            "-9223372036854775808",
            "0.1",
            "1e300",
            "1E+3",
            "0e999",
            "59.913868799999996",
            "0.10000000000000001",
            "0.1000000000000000055511151231257827",
            "5e-324",
            "100.0000000000000000000",
        ] {
            assert_eq!(check_numbers(&format!("[{kept}]")), Ok(()), "{kept}");
            let value: Value = serde_json::from_str(kept).unwrap();
            assert_eq!(value.as_f64(), kept.parse().ok(), "{kept}");
        }
    }

    #[test]
    fn numbers_that_a_value_would_round_are_found() {
        for rounded in [
            "18446744073709551616",
            "18446744073709551617",
            "-9223372036854775809",
            "100000000000000000000000000000",
            "9007199254740993.0",
            "12345678901234567.89",
            "0.12345678901234567890123",
            "1e-400",
            "1e400",
        ] {
            let json = format!("{{\"a\": \"18446744073709551617 \\\" 1e400\", \"b\": [1, {rounded}]}}");
            let error = check_numbers(&json).unwrap_err();
            assert_eq!((&*error.number, &*error.pointer), (rounded, "/b/1"));
            assert_eq!(
                quote_inexact_numbers(&json),
                json.replace(&format!(" {rounded}]"), &format!(" \"{rounded}\"]"))
            );
        }
    }

    #[test]
    fn numbers_are_found_at_every_place() {
        for before in 0..40 {
            for number in ["18446744073709551616", "-9223372036854775809", "9007199254740993.0", "1E400"] {
                let json = format!("[\"{}\",{number}]", "x".repeat(before));
                assert_eq!(check_numbers(&json).unwrap_err().number, number, "{before}");
            }
        }
    }

    #[test]
    fn text_that_is_not_json_is_read_to_its_end() {
        for text in ["\"open", "\"\\", "-", "1.2.3", "ü-", "{\"a\":"] {
            assert_eq!(check_numbers(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn place_of_a_number_is_a_json_pointer() {
        for (json, pointer) in [
            ("1e400", ""),
            (r#"[[], {"a": [1]}, 1e400]"#, "/2"),
            (r#"{"a": {"b": ",:{[\"", "c": [{}, [2, 1e400]]}}"#, "/a/c/1/1"),
            (r#"{"~/\u0061": {"": 1e400}}"#, "/~0~1a/"),
        ] {
            assert_eq!(check_numbers(json).unwrap_err().pointer, pointer, "{json}");
        }
        let error = check_numbers("[1e400]").unwrap_err().to_string();
        assert_eq!(
            error,
            "a number with too many digits at `/0`: 1e400; write one that fits into 64 bits, or a string"
        );
    }

    #[test]
    fn numbers_without_a_fraction_become_integers() {
        let mut value: Value = serde_json::from_str(
            r#"{"a": [50.0, 5e1, -0.0, -3.0, 0.5, 1e300, 18446744073709549568.0, -9223372036854775808.0], "b": "50.0"}"#,
        )
        .unwrap();
        unify_numbers(&mut value);

        assert_eq!(
            value.to_string(),
            r#"{"a":[50,50,0,-3,0.5,1e+300,18446744073709549568,-9223372036854775808],"b":"50.0"}"#
        );
    }
}
