//! Repair of JSON that a strict parser refuses or rounds: lone surrogates, `NaN` and infinities, control characters in texts, and
//! numbers that a value cannot keep.
//!
//! What JSON cannot hold travels through the parser as a mark, a character for private use: a half of a surrogate pair, whose
//! other half may be in the next chunk, and the literal of a number. [`join_halves`] and [`restore_literals`] turn the marks of a
//! finished answer into text. Outside of a call's arguments a literal is only marked until the document is parsed: there it is a
//! rounded number, or `null`, since nothing reads it exactly.

use std::fmt::Write as _;

use positronic_core::record::check_numbers;
use serde_json::{Map, Number, Value};

/// Adding a surrogate to this makes its mark, a character for private use.
const HALF: u32 = 0x0010_0000;

/// Begins a text that is the literal of a number.
const LITERAL: char = '\u{10F8FF}';

/// Repairs a document; `None` if there is nothing to repair, or if the result is not JSON either.
pub(super) fn repaired(text: &str) -> Option<String> {
    let mut repair = Repair { text, place: 0, out: String::with_capacity(text.len() + 16), is_changed: false };
    repair.document();
    let mut value: Value = repair.is_changed.then(|| serde_json::from_str(&repair.out).ok())??;
    settle(&mut value);
    Some(value.to_string())
}

struct Repair<'a> {
    text: &'a str,
    place: usize,
    out: String,
    is_changed: bool,
}

impl<'a> Repair<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.place..).unwrap_or_default()
    }

    fn document(&mut self) {
        while let Some(next) = self.rest().chars().next() {
            match next {
                '"' => self.string(),
                '-' if self.rest().starts_with("-Infinity") => self.literal("-Infinity"),
                '-' | '0'..='9' => {
                    let number = number_at(self.text, self.place);
                    if check_numbers(number).is_ok() { self.copy(number) } else { self.literal(number) }
                }
                'N' if self.rest().starts_with("NaN") => self.literal("NaN"),
                'I' if self.rest().starts_with("Infinity") => self.literal("Infinity"),
                _ => self.copy(self.rest().get(..next.len_utf8()).unwrap_or_default()),
            }
        }
    }

    fn copy(&mut self, text: &str) {
        self.out.push_str(text);
        self.place += text.len().max(1);
    }

    fn literal(&mut self, literal: &str) {
        self.out.extend(['"', LITERAL]);
        self.copy(literal);
        self.out.push('"');
        self.is_changed = true;
    }

    fn string(&mut self) {
        self.copy("\"");
        while let Some(next) = self.rest().chars().next() {
            match (next, surrogate(self.rest())) {
                ('"', _) => return self.copy("\""),
                (_, Some(high @ 0xD800..=0xDBFF)) => match surrogate(self.rest().get(6..).unwrap_or_default()) {
                    Some(0xDC00..=0xDFFF) => self.copy(self.rest().get(..12).unwrap_or_default()),
                    _ => self.half(high),
                },
                (_, Some(low)) => self.half(low),
                ('\\', None) => {
                    let second = self.rest().chars().nth(1).map_or(0, char::len_utf8);
                    self.copy(self.rest().get(..1 + second).unwrap_or_default());
                }
                (control, None) if u32::from(control) < 0x20 => {
                    _ = write!(self.out, "\\u{:04x}", u32::from(control));
                    self.place += 1;
                    self.is_changed = true;
                }
                (other, None) => self.copy(self.rest().get(..other.len_utf8()).unwrap_or_default()),
            }
        }
    }

    /// Replaces the escape of a lone surrogate.
    fn half(&mut self, unit: u32) {
        self.out.extend(char::from_u32(HALF + unit));
        self.place += 6;
        self.is_changed = true;
    }
}

/// Reads the escape of a surrogate at the beginning of a text.
fn surrogate(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|unit| (0xD800..=0xDFFF).contains(unit))
}

/// Replaces the literals outside of a call's arguments by numbers or `null`.
fn settle(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(literal) = text.strip_prefix(LITERAL) {
                let float = literal.parse().ok().and_then(Number::from_f64);
                *value = float.map_or(Value::Null, Value::Number);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Object(fields) => {
            let arguments = arguments_of(fields);
            fields
                .iter_mut()
                .filter(|(name, _)| !arguments.contains(&name.as_str()))
                .for_each(|(_, value)| settle(value));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the fields of an object that are a call's arguments: of OpenAI's APIs, of Anthropic's and of Gemini's.
fn arguments_of(fields: &Map<String, Value>) -> &'static [&'static str] {
    let is_call = fields.get("name").is_some_and(Value::is_string);
    match fields.get("type").and_then(Value::as_str) {
        Some("tool_use") => &["input"],
        Some("response.function_call_arguments.delta") => &["delta"],
        None | Some("function" | "function_call") if is_call => &["arguments", "args", "partialArgs"],
        _ => &["arguments", "partialArgs", "partial_json"],
    }
}

/// Joins the halves of surrogate pairs; a half without its other half becomes U+FFFD.
pub(super) fn join_halves(text: &mut String) {
    if !text.chars().any(|c| half(c).is_some()) {
        return;
    }
    let mut units = Vec::with_capacity(text.len());
    for c in text.chars() {
        match half(c) {
            Some(unit) => units.push(unit),
            None => units.extend_from_slice(c.encode_utf16(&mut [0; 2])),
        }
    }
    *text = String::from_utf16_lossy(&units);
}

/// Returns the surrogate that a mark stands for.
pub(super) fn half(mark: char) -> Option<u16> {
    let unit = u32::from(mark).checked_sub(HALF)?;
    u16::try_from(unit).ok().filter(|unit| (0xD800..=0xDFFF).contains(unit))
}

/// Writes the literals of numbers into the JSON of arguments as the model wrote them.
pub(super) fn restore_literals(arguments: &mut String) {
    while let Some((before, after)) = arguments.split_once(LITERAL) {
        let (literal, after) = after.split_at(after.find('"').unwrap_or(after.len()));
        let restored = match before.strip_suffix('"') {
            Some(before) => [before, literal, after.strip_prefix('"').unwrap_or(after)].concat(),
            None => [before, literal, after].concat(),
        };
        *arguments = restored;
    }
}

/// Replaces the escapes of lone surrogates in the JSON of arguments by U+FFFD.
pub(super) fn replace_lone_escapes(arguments: &mut String) {
    let has_escape = || ["\\ud", "\\uD"].iter().any(|escape| arguments.contains(escape));
    if !arguments.contains('\\') || !has_escape() {
        return;
    }
    let mut repair =
        Repair { text: arguments, place: 0, out: String::with_capacity(arguments.len()), is_changed: false };
    while let Some(next) = repair.rest().chars().next() {
        match next {
            '"' => repair.string(),
            _ => repair.copy(repair.rest().get(..next.len_utf8()).unwrap_or_default()),
        }
    }
    if repair.is_changed {
        let mut mended = repair.out;
        join_halves(&mut mended);
        *arguments = mended;
    }
}

/// Returns the number that begins at a place, which has at least one character.
fn number_at(json: &str, start: usize) -> &str {
    let rest = json.get(start..).unwrap_or_default();
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let length = rest.bytes().position(|byte| !is_part(&byte)).unwrap_or(rest.len());
    rest.get(..length.max(1)).unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        serde_json::from_str(&repaired(text).unwrap()).unwrap()
    }

    #[test]
    fn json_without_faults_is_left_alone() {
        for text in [r#"{"a": "\ud83d\ude00 \\ud83d \"NaN\" ü", "b": [1.5e3, -2, null]}"#, "nonsense", "", "{\"a\":"] {
            assert_eq!(repaired(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_outside_of_arguments_become_null_or_rounded() {
        let text = r#"{"a":[NaN,-Infinity,Infinity],"b":1e400,"c":18446744073709551617,"d":"NaN"}"#;

        assert_eq!(
            read(text),
            json!({"a": [null, null, null], "b": null, "c": 18_446_744_073_709_551_616.0_f64, "d": "NaN"})
        );
    }

    #[test]
    fn numbers_in_arguments_keep_their_literals() {
        for around in [
            r#"{"function":{"name":"a","arguments":ARGUMENTS}}"#,
            r#"{"type":"function_call","arguments":ARGUMENTS}"#,
            r#"{"type":"tool_use","input":ARGUMENTS}"#,
            r#"{"functionCall":{"name":"a","args":ARGUMENTS}}"#,
        ] {
            let arguments = r#"{"n":[18446744073709551617,NaN],"t":"x"}"#;
            let mut text = read(&around.replace("ARGUMENTS", arguments)).to_string();
            restore_literals(&mut text);
            assert!(text.contains(arguments), "{text}");
        }
        let mut alone = read(r#"{"arguments":1e400}"#)["arguments"].as_str().unwrap().to_owned();
        restore_literals(&mut alone);
        assert_eq!(alone, "1e400");
    }

    #[test]
    fn lone_surrogates_and_control_characters_are_repaired() {
        for (text, expected) in [
            (r#"{"t":"\ud83d"}"#, "\u{fffd}"),
            (r#"{"t":"a\uDE00b"}"#, "a\u{fffd}b"),
            (r#"{"t":"\ud83d\ud83d\ude00"}"#, "\u{fffd}😀"),
            (r#"{"t":"\ud83d\n\\"}"#, "\u{fffd}\n\\"),
            ("{\"t\":\"a\nb\t\"}", "a\nb\t"),
        ] {
            let mut read = read(text)["t"].as_str().unwrap().to_owned();
            join_halves(&mut read);
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn halves_of_two_chunks_are_joined() {
        let mut text = [r#"{"t":"ok \ud83d"}"#, r#"{"t":"\ude00 done"}"#]
            .map(|chunk| read(chunk)["t"].as_str().unwrap().to_owned())
            .concat();

        join_halves(&mut text);

        assert_eq!(text, "ok 😀 done");
    }

    #[test]
    fn escapes_in_arguments_lose_only_lone_surrogates() {
        for (arguments, expected) in [
            (r#"{"t":"\ud83d"}"#, "{\"t\":\"\u{fffd}\"}"),
            (r#"{"t":"\ud83d\ude00 \\ud83d"}"#, r#"{"t":"\ud83d\ude00 \\ud83d"}"#),
            (r#"{"t": 18446744073709551617, "u":"\uDE00"}"#, "{\"t\": 18446744073709551617, \"u\":\"\u{fffd}\"}"),
            (r#"{"t":"\ud8"#, r#"{"t":"\ud8"#),
        ] {
            let mut mended = arguments.to_owned();
            replace_lone_escapes(&mut mended);
            assert_eq!(mended, expected);
        }
    }
}
