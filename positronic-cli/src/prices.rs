//! Model prices: loading the table, checking that it can enforce a limit, and rendering costs.

use std::fmt;
use std::fs;
use std::path::Path;

use positronic_core::definition::BrainDefinition;
use positronic_core::model::Model as _;
use positronic_core::projection::{Bill, Cost, Costs, Counted, Spent};
use positronic_core::record::{Budget, LimitKind, Pending, PendingKind, PriceTable, RunId, Seq};
use positronic_core::runner::Client;
use positronic_core::store::StoreError;

use crate::display::figures::many;
use crate::failure::Failure;
use crate::models::{Models, Tape};
use crate::settings::Settings;

/// Reads the named table, else the environment's, else the bundled one.
pub(crate) fn prices(named: Option<&Path>, settings: &Settings) -> Result<PriceTable, Failure> {
    Ok(given(named, settings)?.unwrap_or_else(PriceTable::bundled))
}

/// Reads the named table, else the environment's, if there is one. A file with the extension `.json` is JSON, any
/// other is TOML.
pub(crate) fn given(named: Option<&Path>, settings: &Settings) -> Result<Option<PriceTable>, Failure> {
    let Some(path) = named.or(settings.prices.as_deref()) else { return Ok(None) };
    let text = fs::read_to_string(path);
    let text = text.map_err(|source| Failure::File { path: path.to_owned(), doing: "cannot be read", source })?;
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    let table = if is_json {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else {
        toml::from_str(&text).map_err(|error| error.to_string())
    };
    table.map(Some).map_err(|reason| Failure::Prices { path: path.to_owned(), reason: reason.trim_end().to_owned() })
}

/// Refuses an unenforceable money limit of the command line or the brain, before the run begins.
pub(crate) fn keepable(limited: Option<Limited>, models: &Models) -> Result<(), Failure> {
    let Some(limited) = limited else { return Ok(()) };
    let misused = |message: String, hint: &str| Failure::Misused { message, hint: hint.to_owned() };
    let Some(prices) = &models.prices else {
        return Err(misused(format!("{limited}, but there is no price table"), NAME_PRICES));
    };
    let Tape::Plays(cassette) = &models.tape else { return Ok(()) };
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
pub(crate) enum Limited {
    /// The command line, with this option.
    Here(&'static str),
    /// The brain of this title.
    Brain(String),
    /// The stored budget of this conversation.
    Conversation(String),
}

impl Limited {
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

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(option) => write!(f, "{option} is a money limit"),
            Self::Brain(title) => write!(f, "`{title}` has a money limit"),
            Self::Conversation(id) => write!(f, "the conversation `{id}` has a money limit"),
        }
    }
}

/// Returns the currency of a run's money limits, for a limit question.
pub(crate) async fn currency(client: &Client, run: &RunId, pending: &Pending) -> Result<Option<String>, StoreError> {
    if !matches!(pending.kind, PendingKind::Budget { kind: LimitKind::Money, .. }) {
        return Ok(None);
    }
    let log = client.events(run, Seq(0)).await?;
    Ok(log.iter().find_map(|event| event.currency()).map(str::to_owned))
}

/// Renders a run's cost, with its price table and unpriced answers.
pub(crate) fn told(costs: &Costs) -> String {
    let total = costs.total();
    let counted = match costs.counted() {
        Some(Counted { currency, spent, .. }) if spent.known != total.known || currency != costs.currency => {
            let some = if spent.unpriced == 0 {
                String::new()
            } else {
                format!(" for {}", many(spent.calls - spent.unpriced, "answer"))
            };
            format!("; {} {currency}{some} at the time of the answers, which its limits count", spent.known)
        }
        _ => String::new(),
    };
    spent(&total, &costs.unpriced(), &costs.currency, &costs.as_of) + &counted
}

/// Renders the cost of a conversation's runs.
pub(crate) fn billed(bill: &Bill) -> String {
    spent(&bill.total(), &bill.unpriced(), &bill.currency, &bill.as_of)
}

fn spent(total: &Spent, unpriced: &[&str], currency: &str, as_of: &str) -> String {
    let unknown = || format!("unknown price of {} ({})", many(total.unpriced, "answer"), unpriced.join(", "));
    let known = format!("{} {currency}", total.known);
    let as_of = format!("by the prices of {as_of}");
    match total.total() {
        Cost::Known(_) => format!("cost {known}, {as_of}"),
        Cost::Unknown if total.unpriced == total.calls => format!("cost: {}", unknown()),
        Cost::Unknown => {
            let priced = many(total.calls - total.unpriced, "answer");
            format!("cost {known} for {priced}, {as_of}; {}", unknown())
        }
    }
}
