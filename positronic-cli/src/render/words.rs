//! Words for events that several renderers share.

use std::collections::HashSet;

use positronic_core::record::{Actor, Amounts, Overrides, RunId, RunSummary};

use super::figures::more;

/// Writes what was granted: `20 tokens more`.
pub(crate) fn granted(granted: &Amounts, currency: Option<&str>) -> String {
    let amounts: Vec<String> = granted.kinds().map(|kind| more(kind, granted.of(kind), currency)).collect();
    amounts.join(" and ")
}

/// Names who did something, with a leading blank; nothing where it is unknown.
pub(crate) fn by(actor: &Actor) -> String {
    match (&actor.by, &actor.channel) {
        (Some(by), _) => format!(" by {by}"),
        (None, Some(channel)) if channel == "cli" => " at the command line".to_owned(),
        (None, Some(channel)) => format!(" over {channel}"),
        (None, None) => String::new(),
    }
}

/// Writes a reason behind what it is for; nothing where there is none.
pub(crate) fn why(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}

/// Reports that no worker has claimed a run, and how to continue it; a `run` that asks releases its run meanwhile.
pub(crate) fn no_worker(work: &str) -> String {
    format!("no worker has claimed the run; unless a `run` or `work` is open for it, continue it with: {work}")
}

/// Renders a run's status, and whether it is unclaimed.
pub(crate) fn status(row: &RunSummary, unclaimed: &HashSet<RunId>) -> String {
    format!("{}{}", row.status.as_str(), if unclaimed.contains(&row.run) { " (no worker)" } else { "" })
}

/// Renders a change of a run's code.
pub(crate) fn code_changed(difference: &str) -> String {
    format!("the code has changed since the start of the run: {difference}")
}

/// Says what a fork says in the place of its brain's code.
pub(crate) fn overridden(overrides: &Overrides) -> String {
    let model = overrides.model.as_ref().map(|model| format!("the model {model}"));
    let system = overrides.system.as_ref().map(|system| format!("another system prompt: {system}"));
    model.into_iter().chain(system).collect::<Vec<_>>().join(" and ")
}
