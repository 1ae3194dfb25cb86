//! Words for events that several renderers share.

use positronic_core::record::{Actor, Amounts};

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
