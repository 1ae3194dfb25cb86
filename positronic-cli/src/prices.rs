//! What models cost: the table, found and read, whether it can keep a limit, and the cost of a run or a conversation in words.

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

/// Reads the table that is named, else the environment's, else takes the bundled one.
pub(crate) fn prices(named: Option<&Path>, settings: &Settings) -> Result<PriceTable, Failure> {
    Ok(given(named, settings)?.unwrap_or_else(PriceTable::bundled))
}

/// Reads the table that is named, else the environment's, if there is one. A file whose name ends with `.json` is JSON, every
/// other one TOML.
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

/// Refuses a limit of money that could not be kept, before anything begins: one of the command line, or of the brain.
pub(crate) fn keepable(limited: Option<Limited>, models: &Models) -> Result<(), Failure> {
    let Some(limited) = limited else { return Ok(()) };
    let misused = |message: String, hint: &str| Failure::Misused { message, hint: hint.to_owned() };
    let Some(prices) = &models.prices else {
        return Err(misused(format!("{limited}, and nothing says what models cost"), NAME_PRICES));
    };
    let Tape::Plays(cassette) = &models.tape else { return Ok(()) };
    let metadata = cassette.metadata();
    let unknown = metadata.iter().filter(|metadata| prices.charge(metadata).is_none());
    let (silent, unpriced): (Vec<_>, Vec<_>) = unknown.partition(|metadata| metadata.usage.total() == 0);
    if let Some(first) = unpriced.first() {
        let (as_of, name) = (&prices.as_of, cassette.name());
        let model = if first.model.is_empty() { name } else { format!("{}/{}", first.provider, first.model) };
        let message = format!("{limited}, and the prices of {as_of} have none for `{model}`, which the cassette plays");
        return Err(misused(message, "add it to the table, or play the cassette without a limit of money"));
    }
    if silent.is_empty() {
        return Ok(());
    }
    let silent = many(u64::try_from(silent.len()).unwrap_or(u64::MAX), "answer");
    let message = format!("{limited}, and the cassette says nothing of the tokens of {silent}");
    Err(misused(
        message,
        "play it without a limit of money; a cassette that --record has made has the tokens of its answers",
    ))
}

const NAME_PRICES: &str = "name a table with --prices FILE or in POSITRONIC_PRICES: `as_of = \"2026-11-01\"` and, under \
                           `[prices]`, lines such as `\"openai/gpt-5\" = { input = 1.25, output = 10 }`";

/// Who sets a limit of money.
#[derive(Debug)]
pub(crate) enum Limited {
    /// The command line, with this option.
    Here(&'static str),
    /// The brain of this title.
    Brain(String),
    /// What was said of this conversation before.
    Conversation(String),
}

impl Limited {
    /// Finds a limit that is known before a run begins: of an option, else of the brain. Those of loops are known when they
    /// begin.
    pub(crate) fn of(options: &[(&'static str, Option<&Budget>)], definition: &BrainDefinition) -> Option<Self> {
        let has = |budget: Option<&Budget>| budget.is_some_and(|budget| budget.max_money.is_some());
        let here = options.iter().find(|(_, budget)| has(*budget)).map(|(option, _)| Self::Here(option));
        here.or_else(|| has(definition.budget.as_ref()).then(|| Self::Brain(definition.title.clone())))
    }

    /// Finds the limit of a conversation that goes on.
    pub(crate) fn before(conversation: &str, budget: Option<&Budget>) -> Option<Self> {
        budget?.max_money.map(|_| Self::Conversation(conversation.to_owned()))
    }
}

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(option) => write!(f, "{option} is a limit of money"),
            Self::Brain(title) => write!(f, "`{title}` has a limit of money"),
            Self::Conversation(id) => write!(f, "the conversation `{id}` has a limit of money"),
        }
    }
}

/// Finds the currency in which a run's limits of money count, for a question that one has asked.
pub(crate) async fn currency(client: &Client, run: &RunId, pending: &Pending) -> Result<Option<String>, StoreError> {
    if !matches!(pending.kind, PendingKind::Amounts { kind: LimitKind::Money, .. }) {
        return Ok(None);
    }
    let log = client.events(run, Seq(0)).await?;
    Ok(log.iter().find_map(|event| event.currency()).map(str::to_owned))
}

/// Writes what a run cost, by which prices, and what has none.
pub(crate) fn told(costs: &Costs) -> String {
    let total = costs.total();
    let counted = match costs.counted() {
        Some(Counted { currency, spent, .. }) if spent.known != total.known || currency != costs.currency => {
            let some = if spent.unpriced == 0 {
                String::new()
            } else {
                format!(" for {}", many(spent.calls - spent.unpriced, "answer"))
            };
            format!("; {} {currency}{some} when the answers came, which is what its limits count", spent.known)
        }
        _ => String::new(),
    };
    spent(&total, &costs.unpriced(), &costs.currency, &costs.as_of) + &counted
}

/// Writes what the runs of a conversation cost.
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
