//! The prices that are bundled with the library.

use super::table::PriceTable;

impl PriceTable {
    /// Returns the table that is bundled with the library, in US dollars per million tokens:
    ///
    /// ```json
    #[doc = include_str!("bundled.json")]
    /// ```
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
    #[expect(
        clippy::expect_used,
        clippy::missing_panics_doc,
        reason = "the file is part of the library, and a test reads it"
    )]
    pub fn bundled() -> Self {
        serde_json::from_str(include_str!("bundled.json")).expect("the bundled prices are valid")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Usage;

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
