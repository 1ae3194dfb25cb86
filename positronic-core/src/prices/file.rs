//! Validation of a hand-written price table: the date, the currency, and unique keys.
//!
//! Without it, a table with a wrong date or a key that matches no model would load silently, and its prices would be missing
//! much later.

use std::fmt;

use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};

use super::table::Price;
use crate::record::is_invisible;

/// Parses a date.
pub(super) fn day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let is_day = |text: &str| text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok();
    quoted(deserializer, is_day, "a date in quotes, such as \"2026-11-01\"")
}

/// Parses the name of a currency.
pub(super) fn currency<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let is_name =
        |text: &str| !text.is_empty() && !text.contains(|letter: char| letter.is_whitespace() || is_hidden(letter));
    quoted(deserializer, is_name, "a currency in quotes, such as \"EUR\"")
}

fn quoted<'de, D: Deserializer<'de>>(
    deserializer: D,
    is_valid: fn(&str) -> bool,
    expected: &str,
) -> Result<String, D::Error> {
    // The format's own error does not say what is expected.
    let text = String::deserialize(deserializer).map_err(|_| Error::custom(format!("expected {expected}")))?;
    if is_valid(&text) { Ok(text) } else { Err(Error::invalid_value(Unexpected::Str(&text), &expected)) }
}

fn is_hidden(letter: char) -> bool {
    letter.is_control() || is_invisible(letter)
}

/// Parses the prices, with unique keys.
pub(super) fn prices<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IndexMap<String, Price>, D::Error> {
    deserializer.deserialize_map(Prices)
}

struct Prices;

impl<'de> Visitor<'de> for Prices {
    type Value = IndexMap<String, Price>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("prices by model, such as \"openai/gpt-5\" = { input = 1.25, output = 10 }")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut prices = IndexMap::new();
        while let Some(ModelPattern(key)) = entries.next_key()? {
            let price = entries.next_value()?;
            if prices.contains_key(&key) {
                return Err(Error::custom(format!("`{key}` has two prices")));
            }
            prices.insert(key, price);
        }
        Ok(prices)
    }
}

/// The name of a model, or a prefix with a `*`.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct ModelPattern(String);

impl TryFrom<String> for ModelPattern {
    type Error = String;

    fn try_from(key: String) -> Result<Self, String> {
        if key.trim().is_empty() {
            return Err(format!("`{key}` is not the name of a model, such as \"openai/gpt-5\""));
        }
        if key.strip_suffix('*').unwrap_or(&key).contains('*') {
            return Err(format!("`{key}` matches no model: a `*` is only allowed at the end"));
        }
        if key.trim() != key || key.contains(is_hidden) {
            return Err(format!("`{key}` matches no model: it has surrounding blanks or a line break"));
        }
        Ok(Self(key))
    }
}

#[cfg(test)]
mod tests {
    use crate::prices::PriceTable;

    #[test]
    fn invalid_table_is_rejected_with_its_location() {
        let refused = |as_of: &str, rest: &str| {
            let text = format!("{{\"as_of\": {as_of},\n{rest}}}");
            serde_json::from_str::<PriceTable>(&text).unwrap_err().to_string()
        };
        let day = r#""2026-11-01""#;
        let one = r#""prices": {"a/b": {"input": 1, "output": 2}}"#;
        assert!(serde_json::from_str::<PriceTable>(&format!("{{\"as_of\": {day}, {one}}}")).is_ok());
        for (as_of, rest, says) in [
            (r#""soon""#, one, r#"string "soon", expected a date in quotes, such as "2026-11-01" at line 1"#),
            (r#""2026-13-41""#, one, "\"2026-13-41\", expected a date"),
            (r#""2026-11-01T10:00""#, one, "expected a date in quotes"),
            ("7", one, "expected a date in quotes, such as \"2026-11-01\" at line 1"),
            (day, r#""currency": "", "prices": {}"#, "expected a currency in quotes, such as \"EUR\" at line 2"),
            (day, r#""prices": {"": {"input": 1, "output": 2}}"#, "`` is not the name of a model"),
            (day, r#""prices": {" a": {"input": 1, "output": 2}}"#, "` a` matches no model"),
            (day, r#""prices": {"a/*b": {"input": 1, "output": 2}}"#, "a `*` is only allowed at the end at line 2"),
            (
                day,
                r#""prices": {"a": {"input": 1, "output": 2}, "a": {"input": 1, "output": 2}}"#,
                "`a` has two prices",
            ),
            (day, r#""prices": {"a": {"input": -1, "output": 2}}"#, "`-1` is not a valid amount of money"),
            (day, r#""prices": {"a": {"input": 1, "outptu": 2}}"#, "unknown field `outptu`"),
            (day, r#""prices": 5"#, "expected prices by model"),
        ] {
            let said = refused(as_of, rest);
            assert!(said.contains(says), "{said}");
        }
    }
}
