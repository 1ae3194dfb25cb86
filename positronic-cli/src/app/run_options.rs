//! A brain's options: given on the command line, over those of the played cassette.

use positronic_core::definition::StageBody;
use serde_json::Value;

use crate::app::failure::Failure;
use crate::app::project::Entry;
use crate::app::ui::Ui;
use crate::cli::options::parse;

/// The options of the command line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GivenOptions<'a> {
    pub(crate) pairs: &'a [String],
    pub(crate) document: Option<&'a str>,
}

/// Parses the options, with the recorded ones of the cassette as defaults.
pub(crate) fn options(
    entry: &Entry,
    given: GivenOptions<'_>,
    recorded: Option<&Value>,
    ui: &mut Ui,
) -> Result<Value, Failure> {
    let document = match given.document {
        Some(given) => Some(crate::app::json::text(given, ui)?),
        None => recorded.map(Value::to_string),
    };
    let options = parse(entry.definition.options.json(), given.pairs, document.as_deref());
    options.map_err(|source| Failure::Options { brain: entry.definition.title.clone(), source })
}

/// Refuses a brain without a loop that could receive a message.
pub(crate) fn check_accepts_messages(entry: &Entry, hint: impl FnOnce() -> String) -> Result<(), Failure> {
    if entry.definition.stages.iter().any(|stage| matches!(stage.body, StageBody::Loop(_))) {
        return Ok(());
    }
    let message = format!("`{}` accepts no message: it has no loop of its own", entry.definition.title);
    Err(Failure::Misused { message, hint: hint() })
}
