//! Money limits: whether the price table can enforce them.

use std::fmt;

use positronic_core::definition::BrainDefinition;
use positronic_core::model::Model as _;
use positronic_core::record::Budget;

use crate::app::failure::Failure;
use crate::app::models::{CassetteSession, Models};
use crate::render::figures::many;

/// Refuses an unenforceable money limit of the command line or the brain, before the run begins.
pub(crate) fn check_enforceable(limited: Option<MoneyLimit>, models: &Models) -> Result<(), Failure> {
    let Some(limited) = limited else { return Ok(()) };
    let misused = |message: String, hint: &str| Failure::Misused { message, hint: hint.to_owned() };
    let Some(prices) = &models.prices else {
        return Err(misused(format!("{limited}, but there is no price table"), NAME_PRICES));
    };
    let CassetteSession::Plays(cassette) = &models.cassette else { return Ok(()) };
    let metadata = cassette.metadata();
    let unknown = metadata.iter().filter(|metadata| prices.charge(metadata).is_none());
    let (silent, unpriced): (Vec<_>, Vec<_>) = unknown.partition(|metadata| metadata.usage.total() == 0);
    if let Some(first) = unpriced.first() {
        let (as_of, name) = (&prices.as_of, cassette.name());
        let model = if first.model.is_empty() { name } else { format!("{}/{}", first.provider, first.model) };
        let message =
            format!("{limited}, but the price table of {as_of} has no price for the cassette's model `{model}`");
        return Err(misused(message, "add it to the table, or play the cassette without a money limit"));
    }
    if silent.is_empty() {
        return Ok(());
    }
    let silent = many(u64::try_from(silent.len()).unwrap_or(u64::MAX), "answer");
    let message = format!("{limited}, but the cassette lacks the token counts of {silent}");
    Err(misused(message, "play it without a money limit; a cassette of --record has the token counts of its answers"))
}

const NAME_PRICES: &str = "name a table with --prices FILE or in POSITRONIC_PRICES: `as_of = \"2026-11-01\"` and, under \
                           `[prices]`, lines such as `\"openai/gpt-5\" = { input = 1.25, output = 10 }`";

/// The source of a money limit.
#[derive(Debug)]
pub(crate) enum MoneyLimit {
    /// The command line, with this option.
    Here(&'static str),
    /// The brain of this title.
    Brain(String),
    /// The stored budget of this conversation.
    Conversation(String),
}

impl MoneyLimit {
    /// Finds a limit that is known before a run begins: of an option, else of the brain. Limits of loops are known when
    /// they begin.
    pub(crate) fn of(options: &[(&'static str, Option<&Budget>)], definition: &BrainDefinition) -> Option<Self> {
        let has = |budget: Option<&Budget>| budget.is_some_and(|budget| budget.max_money.is_some());
        let here = options.iter().find(|(_, budget)| has(*budget)).map(|(option, _)| Self::Here(option));
        here.or_else(|| has(definition.budget.as_ref()).then(|| Self::Brain(definition.title.clone())))
    }

    /// Finds the limit of a continued conversation.
    pub(crate) fn before(conversation: &str, budget: Option<&Budget>) -> Option<Self> {
        budget?.max_money.map(|_| Self::Conversation(conversation.to_owned()))
    }
}

impl fmt::Display for MoneyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(option) => write!(f, "{option} is a money limit"),
            Self::Brain(title) => write!(f, "`{title}` has a money limit"),
            Self::Conversation(id) => write!(f, "the conversation `{id}` has a money limit"),
        }
    }
}
