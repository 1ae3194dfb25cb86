//! What has to be right in a table of prices that a person wrote: the day, the currency, and each key once.
//!
//! A table with a wrong day or a key that fits no model would be read without a word, and its prices would be missed one by
//! one, long after.

use std::fmt;

use indexmap::IndexMap;
use serde::de::{self, Deserializer, MapAccess, Unexpected, Visitor};

use super::invisible::is_invisible;
use super::price::Price;

/// Reads a day.
pub(super) fn day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserializer.deserialize_str(Words {
        expecting: "a day in quotes, such as \"2026-11-01\"",
        check: |text| {
            let is_day = text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok();
            if is_day { Ok(()) } else { Err(format!("`{text}` is no day, such as 2026-11-01")) }
        },
    })
}

/// Reads the name of a currency.
pub(super) fn currency<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserializer.deserialize_str(Words {
        expecting: "a currency in quotes, such as \"EUR\"",
        check: |text| {
            let is_name = !text.is_empty()
                && !text.contains(|letter: char| letter.is_whitespace() || letter.is_control() || is_invisible(letter));
            if is_name { Ok(()) } else { Err(format!("`{text}` is no currency, such as EUR")) }
        },
    })
}

/// Reads the prices, each key once.
pub(super) fn prices<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IndexMap<String, Price>, D::Error> {
    deserializer.deserialize_map(Prices)
}

struct Words {
    expecting: &'static str,
    check: fn(&str) -> Result<(), String>,
}

impl Visitor<'_> for Words {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
        (self.check)(text).map(|()| text.to_owned()).map_err(E::custom)
    }
}

struct Prices;

impl<'de> Visitor<'de> for Prices {
    type Value = IndexMap<String, Price>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("prices by model, such as \"openai/gpt-5\" = { input = 1.25, output = 10 }")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut prices = IndexMap::new();
        while let Some(Key(key)) = entries.next_key()? {
            let price = entries.next_value()?;
            if prices.contains_key(&key) {
                return Err(de::Error::custom(format!("`{key}` has two prices")));
            }
            prices.insert(key, price);
        }
        Ok(prices)
    }
}

/// The name of a model, or the beginning of several with a `*`.
struct Key(String);

impl<'de> de::Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;

        impl Visitor<'_> for Name {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a model, such as \"openai/gpt-5\"")
            }

            fn visit_str<E: de::Error>(self, key: &str) -> Result<Key, E> {
                let name = key.strip_suffix('*').unwrap_or(key);
                if key.trim().is_empty() {
                    return Err(E::invalid_value(Unexpected::Str(key), &self));
                }
                if name.contains('*') {
                    return Err(E::custom(format!("`{key}` fits no model: a `*` stands at the end alone")));
                }
                if key.trim() != key || key.contains(|letter: char| letter.is_control() || is_invisible(letter)) {
                    return Err(E::custom(format!(
                        "`{key}` fits no model: there is a blank around it, or more than a line"
                    )));
                }
                Ok(Key(key.to_owned()))
            }
        }

        deserializer.deserialize_str(Name)
    }
}

#[cfg(test)]
mod tests {
    use crate::record::PriceTable;

    #[test]
    fn a_table_that_says_what_cannot_be_is_refused_with_its_place() {
        let refused = |as_of: &str, rest: &str| {
            let text = format!("{{\"as_of\": {as_of},\n{rest}}}");
            serde_json::from_str::<PriceTable>(&text).unwrap_err().to_string()
        };
        let day = r#""2026-11-01""#;
        let one = r#""prices": {"a/b": {"input": 1, "output": 2}}"#;
        assert!(serde_json::from_str::<PriceTable>(&format!("{{\"as_of\": {day}, {one}}}")).is_ok());
        for (as_of, rest, says) in [
            (r#""soon""#, one, "`soon` is no day, such as 2026-11-01 at line 1"),
            (r#""2026-13-41""#, one, "`2026-13-41` is no day"),
            (r#""2026-11-01T10:00""#, one, "is no day"),
            ("7", one, "expected a day in quotes"),
            (day, r#""currency": "", "prices": {}"#, "`` is no currency, such as EUR"),
            (day, r#""prices": {"": {"input": 1, "output": 2}}"#, "expected the name of a model"),
            (day, r#""prices": {" a": {"input": 1, "output": 2}}"#, "` a` fits no model"),
            (day, r#""prices": {"a/*b": {"input": 1, "output": 2}}"#, "a `*` stands at the end alone at line 2"),
            (
                day,
                r#""prices": {"a": {"input": 1, "output": 2}, "a": {"input": 1, "output": 2}}"#,
                "`a` has two prices",
            ),
            (day, r#""prices": {"a": {"input": -1, "output": 2}}"#, "`-1` is no amount of money"),
            (day, r#""prices": {"a": {"input": 1, "outptu": 2}}"#, "unknown field `outptu`"),
            (day, r#""prices": 5"#, "expected prices by model"),
        ] {
            let said = refused(as_of, rest);
            assert!(said.contains(says), "{said}");
        }
    }
}
