//! A brain's options: given on the command line, over those of the played cassette.

use positronic_core::definition::StageBody;
use serde_json::Value;

use crate::app::failure::Failure;
use crate::app::project::Entry;
use crate::app::ui::Ui;
use crate::cli::options::parse;

/// The options as the command line says them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) pairs: &'a [String],
    pub(crate) document: Option<&'a str>,
}

/// Reads the options: what was given, laid over what the cassette was recorded with.
pub(crate) fn options(
    entry: &Entry,
    given: Given<'_>,
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

/// Refuses what has no loop that could hear a message.
pub(crate) fn hears(entry: &Entry, hint: impl FnOnce() -> String) -> Result<(), Failure> {
    if entry.definition.stages.iter().any(|stage| matches!(stage.body, StageBody::Loop(_))) {
        return Ok(());
    }
    let message =
        format!("`{}` takes no message: it has no loop of its own that could hear one", entry.definition.title);
    Err(Failure::Misused { message, hint: hint() })
}
