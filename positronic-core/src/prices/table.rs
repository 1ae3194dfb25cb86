//! Prices of models.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::file;
use crate::record::{Charge, Money, ResponseMetadata, Usage};

/// The number of tokens that a price is for.
const TOKENS: u128 = 1_000_000;

/// The price of a model, per million tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens of the request.
    pub input: Money,
    /// Tokens of the answer.
    pub output: Money,
    /// Tokens of the request that the provider had cached; `input` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Money>,
    /// Tokens of the request that the provider wrote to its cache; `input` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Money>,
    /// Tokens of the request that the provider wrote to its cache for an hour; `cache_write` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<Money>,
    /// Reasoning tokens of the answer; `output` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Money>,
    /// Another price for long requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<Box<LongRequest>>,
}

/// The price of long requests. It applies to all tokens of such a request and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongRequest {
    /// Requests with more tokens than this are long; cached tokens count.
    pub above: u64,
    /// The price.
    pub price: Price,
}

impl Price {
    /// Returns the price of a request and its answer, rounded to the nearest billionth.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> Money {
        if let Some(long) = self.long.as_ref().filter(|long| usage.input > long.above) {
            return long.price.of(usage);
        }
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_write.min(usage.input - cached);
        let for_an_hour = usage.cache_write_1h.min(written);
        let reasoning = usage.reasoning.min(usage.output);
        let cache_write = self.cache_write.unwrap_or(self.input);
        let parts = [
            (usage.input - cached - written, self.input),
            (cached, self.cached.unwrap_or(self.input)),
            (written - for_an_hour, cache_write),
            (for_an_hour, self.cache_write_1h.unwrap_or(cache_write)),
            (usage.output - reasoning, self.output),
            (reasoning, self.reasoning.unwrap_or(self.output)),
        ];
        let sum = parts.into_iter().map(|(tokens, price)| u128::from(tokens).saturating_mul(u128::from(price.nanos())));
        let sum = sum.fold(0_u128, u128::saturating_add);
        Money::of_nanos(u64::try_from(sum.saturating_add(TOKENS / 2) / TOKENS).unwrap_or(u64::MAX))
    }
}

/// Prices of models, in one currency, as of a date.
///
/// A key is `provider/model` or a model's name, and matches that model and its dated versions: `gpt-4o` also matches
/// `gpt-4o-2024-08-06`, but not `gpt-4o-mini`. A key that ends with `*` matches by prefix. Among several
/// matches, one with the provider wins, then the longest. A model without a match has no price.
///
/// ```toml
/// as_of = "2026-11-01"
/// currency = "EUR"
///
/// [prices]
/// "openai/gpt-4o" = { input = 2.50, output = 10, cached = 1.25 }
/// "gemini/gemini-2.5-pro" = { input = 1.25, output = 10, long = { above = 200_000, price = { input = 2.50, output = 15 } } }
/// "local/*" = { input = 0, output = 0 }
/// ```
///
/// **Prices change.** Nothing here updates them, and contracts differ. For exact amounts, maintain your own table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    /// The date of the prices, as `YYYY-MM-DD`.
    #[serde(deserialize_with = "file::day")]
    pub as_of: String,
    /// The currency of all prices; `USD` by default.
    #[serde(default = "usd", deserialize_with = "file::currency")]
    pub currency: String,
    /// The prices, by provider and model.
    #[serde(deserialize_with = "file::prices")]
    pub prices: IndexMap<String, Price>,
}

pub(super) fn usd() -> String {
    "USD".to_owned()
}

impl PriceTable {
    /// Returns the price of an answer's model: of the reported one, else of the requested one.
    #[must_use]
    pub fn price(&self, metadata: &ResponseMetadata) -> Option<&Price> {
        let names = metadata.answered_by.iter().chain([&metadata.model]).filter(|name| !name.is_empty());
        names.map(|name| longest_match(&self.prices, &metadata.provider, name)).find_map(|price| price)
    }

    /// Computes the cost of an answer; `None` if its model has no price, or its usage is missing: a request is
    /// never empty. Answers scripted in code or from a development cache cost nothing.
    #[must_use]
    pub fn charge(&self, metadata: &ResponseMetadata) -> Option<Charge> {
        let amount = match metadata.is_free() {
            true => Money::default(),
            false => self.price(metadata).filter(|_| metadata.usage.total() > 0)?.of(&metadata.usage),
        };
        let currency = self.currency.clone();
        Some(Charge { amount, currency, as_of: Some(self.as_of.clone()) })
    }
}

/// Finds the entry of a table whose key matches a model best, as in a [`PriceTable`]: one with the provider, then the longest.
#[must_use]
pub fn longest_match<'a, T>(table: &'a IndexMap<String, T>, provider: &str, model: &str) -> Option<&'a T> {
    let full = format!("{provider}/{model}");
    let longest = |name: &str| {
        let fitting = table.iter().filter(|(key, _)| stands_for(key, name));
        fitting.max_by_key(|(key, _)| (!key.ends_with('*'), key.len())).map(|(_, value)| value)
    };
    longest(&full).or_else(|| longest(model))
}

/// Returns whether a table's key matches a name.
fn stands_for(key: &str, name: &str) -> bool {
    match key.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name.strip_prefix(key).is_some_and(|rest| rest.is_empty() || is_dated(rest)),
    }
}

/// Returns whether this is the date of a model's version: `-2024-08-06`, `-20240806`, `@20240806`.
fn is_dated(rest: &str) -> bool {
    let Some(date) = rest.strip_prefix(['-', '@']) else { return false };
    let digits = date.bytes().filter(u8::is_ascii_digit).count();
    match date.len() {
        8 => digits == 8,
        10 => digits == 8 && date.split('-').map(str::len).eq([4, 2, 2]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nanos(nanos: u64) -> Money {
        Money::of_nanos(nanos)
    }

    #[test]
    fn cached_and_reasoning_tokens_default_to_the_prices_of_input_and_output() {
        let dollar = |thousandths: u64| nanos(thousandths * 1_000_000);
        let plain = Price { input: dollar(2000), output: dollar(8000), ..Price::default() };
        let all = Price { cached: Some(dollar(500)), reasoning: Some(dollar(4000)), ..plain.clone() };
        let usage = |input, cached, output, reasoning| Usage { input, output, cached, reasoning, ..Usage::default() };
        for (price, used, cost) in [
            (&plain, usage(0, 0, 0, 0), 0),
            (&plain, usage(1, 0, 0, 0), 2000),
            (&plain, usage(0, 0, 1, 0), 8000),
            (&plain, usage(100, 40, 10, 5), 100 * 2000 + 10 * 8000),
            (&all, usage(100, 40, 10, 5), 60 * 2000 + 40 * 500 + 5 * 8000 + 5 * 4000),
            (&all, usage(100, 100, 10, 10), 100 * 500 + 10 * 4000),
            // Wrong counts of a server never exceed the total.
            (&all, usage(10, 99, 1, 99), 10 * 500 + 4000),
            (&all, usage(u64::MAX, 0, 0, 0), u64::MAX),
        ] {
            assert_eq!(price.of(&used), nanos(cost), "{used:?}");
        }
        let writes = Price { cache_write: Some(dollar(2500)), ..all.clone() };
        let written = |cached, cache_write| Usage { cache_write, ..usage(100, cached, 0, 0) };
        assert_eq!(writes.of(&written(40, 30)), nanos(30 * 2000 + 40 * 500 + 30 * 2500));
        assert_eq!(writes.of(&written(40, 99)), nanos(40 * 500 + 60 * 2500), "a token counts once");
        assert_eq!(all.of(&written(0, 99)), nanos(100 * 2000));
        let for_an_hour = Price { cache_write_1h: Some(dollar(4000)), ..writes.clone() };
        let hour = |cache_write_1h| Usage { cache_write_1h, ..written(40, 30) };
        assert_eq!(for_an_hour.of(&hour(10)), nanos(30 * 2000 + 40 * 500 + 20 * 2500 + 10 * 4000));
        assert_eq!(for_an_hour.of(&hour(99)), nanos(30 * 2000 + 40 * 500 + 30 * 4000), "a token counts once");
        assert_eq!(writes.of(&hour(10)), writes.of(&written(40, 30)));
        let tiny = Price { input: nanos(1), ..Price::default() };
        assert_eq!([499_999, 500_000, 1_499_999].map(|tokens| tiny.of(&usage(tokens, 0, 0, 0)).nanos()), [0, 1, 1]);
    }

    #[test]
    fn longest_matching_key_is_the_price() {
        let price = |input| Price { input: nanos(input), ..Price::default() };
        let keys = ["gpt-4o", "openai/gpt-4o", "gpt-4o-mini", "local/*", "local/big-*", "openai/o*", "o3"];
        let prices = (1..).zip(keys).map(|(input, key)| (key.to_owned(), price(input))).collect();
        let table = PriceTable { as_of: String::new(), currency: usd(), prices };
        let found = |provider: &str, model: &str, answered_by: Option<&str>| {
            let (provider, model, answered_by) =
                (provider.to_owned(), model.to_owned(), answered_by.map(str::to_owned));
            let metadata = ResponseMetadata { provider, model, answered_by, ..ResponseMetadata::default() };
            table.price(&metadata).map_or(0, |price| price.input.nanos())
        };
        for (provider, model, answered_by, input) in [
            ("openai", "gpt-4o", None, 2),
            ("azure", "gpt-4o", None, 1),
            ("", "gpt-4o", None, 1),
            ("openai", "gpt-4o-2024-08-06", None, 2),
            ("azure", "gpt-4o-20240806", None, 1),
            ("openai", "gpt-4o-mini", None, 3),
            ("openai", "gpt-4o-pro", None, 0),
            ("openai", "gpt-4o-5", None, 0),
            ("openai", "gpt-4.1", None, 0),
            ("local", "tiny", None, 4),
            ("local", "big-one", None, 5),
            ("openai", "o3", None, 6),
            ("azure", "o3", None, 7),
            ("router", "auto", Some("gpt-4o-mini"), 3),
            ("openai", "gpt-4o", Some("unknown"), 2),
            ("", "", None, 0),
        ] {
            assert_eq!(found(provider, model, answered_by), input, "{provider}/{model} {answered_by:?}");
        }
    }

    #[test]
    fn long_request_has_its_own_price_for_all_tokens() {
        let table: PriceTable = serde_json::from_value(json!({
            "as_of": "2026-11-01",
            "prices": {"a/b": {
                "input": 1, "output": 10,
                "long": {"above": 200, "price": {"input": 2, "output": 15, "cached": "0.5"}},
            }},
        }))
        .unwrap();
        let price = &table.prices["a/b"];
        let of = |input, cached| price.of(&Usage { input, cached, output: 1, ..Usage::default() }).nanos();

        assert_eq!(of(200, 100), 200 * 1000 + 10_000);
        assert_eq!(of(201, 200), 2000 + 200 * 500 + 15_000, "cached tokens count");
        let text = serde_json::to_string(&table).unwrap();
        assert_eq!(serde_json::from_str::<PriceTable>(&text).unwrap(), table);
    }

    #[test]
    fn prices_and_usage_of_earlier_versions_are_read_and_written_unchanged() {
        let price = r#"{"input":"1","output":"2","cached":"0.1","cache_write":"1.25","reasoning":"3"}"#;
        let usage = r#"{"input":7,"output":3,"cached":1,"cache_write":2,"reasoning":1}"#;

        assert_eq!(serde_json::to_string(&serde_json::from_str::<Price>(price).unwrap()).unwrap(), price);
        assert_eq!(serde_json::to_string(&serde_json::from_str::<Usage>(usage).unwrap()).unwrap(), usage);
    }
}
