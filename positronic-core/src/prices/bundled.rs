//! The prices that are bundled with the library.

use super::table::{LongRequest, Price, PriceTable, usd};
use crate::record::Money;

/// The rates of a model, in thousandths of a dollar per million tokens.
#[derive(Debug, Clone, Copy)]
struct Rates {
    input: u64,
    cached: u64,
    /// Tokens written to the cache, and those written for an hour.
    written: Option<(u64, u64)>,
    output: u64,
}

/// A model, its rates, and those of requests with more than a number of tokens.
type Row = (&'static str, Rates, Option<(u64, Rates)>);

const fn rates(input: u64, cached: u64, output: u64) -> Rates {
    Rates { input, cached, written: None, output }
}

const fn claude(input: u64, written: u64, written_1h: u64, cached: u64, output: u64) -> Rates {
    Rates { input, cached, written: Some((written, written_1h)), output }
}

const BUNDLED: [Row; 32] = [
    ("openai/gpt-5", rates(1250, 125, 10_000), None),
    ("openai/gpt-5-mini", rates(250, 25, 2000), None),
    ("openai/gpt-5-nano", rates(50, 5, 400), None),
    ("openai/gpt-4.1", rates(2000, 500, 8000), None),
    ("openai/gpt-4.1-mini", rates(400, 100, 1600), None),
    ("openai/gpt-4.1-nano", rates(100, 25, 400), None),
    ("openai/gpt-4o", rates(2500, 1250, 10_000), None),
    ("openai/gpt-4o-mini", rates(150, 75, 600), None),
    ("openai/o3", rates(2000, 500, 8000), None),
    ("openai/o3-mini", rates(1100, 550, 4400), None),
    ("openai/o4-mini", rates(1100, 275, 4400), None),
    ("anthropic/claude-fable-5-1", claude(10_000, 12_500, 20_000, 250, 50_000), None),
    ("anthropic/claude-fable-5", claude(10_000, 12_500, 20_000, 1000, 50_000), None),
    ("anthropic/claude-opus-5-5", claude(4000, 5000, 8000, 200, 20_000), None),
    ("anthropic/claude-opus-5", claude(5000, 6250, 10_000, 500, 25_000), None),
    ("anthropic/claude-opus-4-8", claude(5000, 6250, 10_000, 500, 25_000), None),
    ("anthropic/claude-opus-4-7", claude(5000, 6250, 10_000, 500, 25_000), None),
    ("anthropic/claude-opus-4-6", claude(5000, 6250, 10_000, 500, 25_000), None),
    ("anthropic/claude-opus-4-5", claude(5000, 6250, 10_000, 500, 25_000), None),
    ("anthropic/claude-sonnet-5-5", claude(2000, 2500, 4000, 100, 10_000), None),
    ("anthropic/claude-sonnet-5", claude(2000, 2500, 4000, 200, 10_000), None),
    ("anthropic/claude-sonnet-4-6", claude(3000, 3750, 6000, 300, 15_000), None),
    (
        "anthropic/claude-sonnet-4-5",
        claude(3000, 3750, 6000, 300, 15_000),
        Some((200_000, claude(6000, 7500, 12_000, 600, 22_500))),
    ),
    ("anthropic/claude-haiku-5-5", claude(100, 125, 200, 10, 500), Some((100_000, claude(500, 625, 1000, 50, 2500)))),
    ("anthropic/claude-haiku-4-5", claude(1000, 1250, 2000, 100, 5000), None),
    ("gemini/gemini-3.8-flash", rates(750, 75, 3750), None),
    ("gemini/gemini-3.7-flash", rates(750, 75, 3750), None),
    ("gemini/gemini-3.1-pro-preview", rates(2000, 200, 12_000), Some((200_000, rates(4000, 400, 18_000)))),
    ("gemini/gemini-3-flash-preview", rates(500, 50, 3000), None),
    ("gemini/gemini-2.5-pro", rates(1250, 125, 10_000), Some((200_000, rates(2500, 250, 15_000)))),
    ("gemini/gemini-2.5-flash", rates(300, 30, 2500), None),
    ("gemini/gemini-2.5-flash-lite", rates(100, 10, 400), None),
];

/// Converts thousandths of a dollar.
const fn dollars(thousandths: u64) -> Money {
    Money::of_nanos(thousandths * 1_000_000)
}

fn price(rates: Rates, long: Option<(u64, Rates)>) -> Price {
    Price {
        input: dollars(rates.input),
        output: dollars(rates.output),
        cached: Some(dollars(rates.cached)),
        cache_write: rates.written.map(|(written, _)| dollars(written)),
        cache_write_1h: rates.written.map(|(_, written)| dollars(written)),
        reasoning: None,
        long: long.map(|(above, rates)| Box::new(LongRequest { above, price: price(rates, None) })),
    }
}

impl PriceTable {
    /// Returns the table that is bundled with the library, in US dollars per million tokens:
    ///
    /// | model | input | cached | written to the cache | for an hour | output |
    /// |---|---|---|---|---|---|
    /// | `openai/gpt-5` | 1.25 | 0.125 | | | 10 |
    /// | `openai/gpt-5-mini` | 0.25 | 0.025 | | | 2 |
    /// | `openai/gpt-5-nano` | 0.05 | 0.005 | | | 0.4 |
    /// | `openai/gpt-4.1` | 2 | 0.5 | | | 8 |
    /// | `openai/gpt-4.1-mini` | 0.4 | 0.1 | | | 1.6 |
    /// | `openai/gpt-4.1-nano` | 0.1 | 0.025 | | | 0.4 |
    /// | `openai/gpt-4o` | 2.5 | 1.25 | | | 10 |
    /// | `openai/gpt-4o-mini` | 0.15 | 0.075 | | | 0.6 |
    /// | `openai/o3` | 2 | 0.5 | | | 8 |
    /// | `openai/o3-mini` | 1.1 | 0.55 | | | 4.4 |
    /// | `openai/o4-mini` | 1.1 | 0.275 | | | 4.4 |
    /// | `anthropic/claude-fable-5-1` | 10 | 0.25 | 12.5 | 20 | 50 |
    /// | `anthropic/claude-fable-5` | 10 | 1 | 12.5 | 20 | 50 |
    /// | `anthropic/claude-opus-5-5` | 4 | 0.2 | 5 | 8 | 20 |
    /// | `anthropic/claude-opus-5` | 5 | 0.5 | 6.25 | 10 | 25 |
    /// | `anthropic/claude-opus-4-8` | 5 | 0.5 | 6.25 | 10 | 25 |
    /// | `anthropic/claude-opus-4-7` | 5 | 0.5 | 6.25 | 10 | 25 |
    /// | `anthropic/claude-opus-4-6` | 5 | 0.5 | 6.25 | 10 | 25 |
    /// | `anthropic/claude-opus-4-5` | 5 | 0.5 | 6.25 | 10 | 25 |
    /// | `anthropic/claude-sonnet-5-5` | 2 | 0.1 | 2.5 | 4 | 10 |
    /// | `anthropic/claude-sonnet-5` | 2 | 0.2 | 2.5 | 4 | 10 |
    /// | `anthropic/claude-sonnet-4-6` | 3 | 0.3 | 3.75 | 6 | 15 |
    /// | `anthropic/claude-sonnet-4-5` | 3 | 0.3 | 3.75 | 6 | 15 |
    /// | … above 200,000 tokens | 6 | 0.6 | 7.5 | 12 | 22.5 |
    /// | `anthropic/claude-haiku-5-5` | 0.1 | 0.01 | 0.125 | 0.2 | 0.5 |
    /// | … above 100,000 tokens | 0.5 | 0.05 | 0.625 | 1 | 2.5 |
    /// | `anthropic/claude-haiku-4-5` | 1 | 0.1 | 1.25 | 2 | 5 |
    /// | `gemini/gemini-3.8-flash` | 0.75 | 0.075 | | | 3.75 |
    /// | `gemini/gemini-3.7-flash` | 0.75 | 0.075 | | | 3.75 |
    /// | `gemini/gemini-3.1-pro-preview` | 2 | 0.2 | | | 12 |
    /// | … above 200,000 tokens | 4 | 0.4 | | | 18 |
    /// | `gemini/gemini-3-flash-preview` | 0.5 | 0.05 | | | 3 |
    /// | `gemini/gemini-2.5-pro` | 1.25 | 0.125 | | | 10 |
    /// | … above 200,000 tokens | 2.5 | 0.25 | | | 15 |
    /// | `gemini/gemini-2.5-flash` | 0.3 | 0.03 | | | 2.5 |
    /// | `gemini/gemini-2.5-flash-lite` | 0.1 | 0.01 | | | 0.4 |
    ///
    /// They are the providers' standard prices for text, from public copies of their price lists; the lists themselves were
    /// not consulted. Thinking is part of the output.
    ///
    /// | provider | its list | copies of |
    /// |---|---|---|
    /// | `openai` | <https://platform.openai.com/docs/pricing> | March 2026 |
    /// | `anthropic` | <https://platform.claude.com/docs/en/about-claude/pricing> | October 2026; the long requests of Sonnet 4.5 November 2025 |
    /// | `gemini` | <https://ai.google.dev/gemini-api/docs/pricing> | October 2026; 3.7 and 3.8 Flash have half their price until the end of 2026 |
    ///
    /// The table's date is that of its oldest prices. **They become outdated:** check the lists before you rely on an amount,
    /// and set your own table. A model that is not listed has no price.
    #[must_use]
    pub fn bundled() -> Self {
        let prices = BUNDLED.into_iter().map(|(model, rates, long)| (model.to_owned(), price(rates, long)));
        Self { as_of: "2026-03-21".to_owned(), currency: usd(), prices: prices.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Usage;

    /// Renders a price as its row in the docs.
    fn row(name: &str, price: &Price) -> String {
        let cell = |money: Option<Money>| money.map_or_else(String::new, |money| format!(" {money}"));
        let more = [price.cached, price.cache_write, price.cache_write_1h].map(cell).join(" |");
        let row = format!("| {name} | {} |{more} | {} |", price.input, price.output);
        let long = price.long.as_ref().map(|long| {
            let name = format!("… above {},000 tokens", long.above / 1000);
            format!("\n{}", self::row(&name, &long.price))
        });
        row + &long.unwrap_or_default()
    }

    #[test]
    fn bundled_table_matches_its_docs() {
        let table = PriceTable::bundled();
        let text = serde_json::to_string(&table).unwrap();
        assert_eq!(serde_json::from_str::<PriceTable>(&text).unwrap(), table);
        let source = include_str!("bundled.rs");
        let docs: Vec<_> = source.lines().filter_map(|line| line.trim().strip_prefix("/// ")).collect();
        let is_model =
            |line: &&&str| line.split('`').nth(1).is_some_and(|name| line.starts_with("| `") && name.contains('/'));
        let listed = docs.iter().filter(is_model).count();
        assert_eq!(listed, table.prices.len());
        let docs = docs.join("\n");
        for (model, price) in &table.prices {
            let row = row(&format!("`{model}`"), price);
            assert!(docs.contains(&row), "{row}");
        }
    }

    #[test]
    fn known_requests_cost_what_their_providers_say() {
        let prices = PriceTable::bundled().prices;
        let million = 1_000_000;
        let cost = |model: &str, usage: Usage| prices[model].of(&usage).to_string();
        let used = Usage { input: million, output: million, cached: million / 2, reasoning: 9, ..Usage::default() };
        assert_eq!(cost("openai/gpt-5", used), "10.6875");
        // 100,000 tokens of which 40,000 were read, 30,000 written for five minutes and 20,000 for an hour.
        let used = Usage { input: 100_000, output: 1000, cached: 40_000, cache_write: 50_000, ..Usage::default() };
        let used = Usage { cache_write_1h: 20_000, ..used };
        assert_eq!(cost("anthropic/claude-sonnet-4-5", used), "0.2895");
        let long = Usage { input: 300_000, cached: 40_000, ..used };
        assert_eq!(cost("anthropic/claude-sonnet-4-5", long), "1.7715");
        let used = Usage { input: 200_000, output: 1000, reasoning: 800, ..Usage::default() };
        assert_eq!(cost("gemini/gemini-2.5-pro", used), "0.26");
        assert_eq!(cost("gemini/gemini-2.5-pro", Usage { input: 200_001, ..used }), "0.5150025");
    }
}
