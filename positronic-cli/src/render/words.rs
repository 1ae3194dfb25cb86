//! Words for events that several renderers share.

use std::collections::HashSet;

use positronic_core::record::{Actor, Amounts, Decision, Event, EventKind, Overrides, Path, RunId, RunSummary};

use super::figures::more;

/// Renders a grant: `20 tokens more`.
pub(crate) fn granted(granted: &Amounts, currency: Option<&str>) -> String {
    let amounts: Vec<String> = granted.kinds().map(|kind| more(kind, granted.of(kind), currency)).collect();
    amounts.join(" and ")
}

/// Renders an actor with a leading blank; empty if unknown.
pub(crate) fn by(actor: &Actor) -> String {
    match (&actor.by, &actor.channel) {
        (Some(by), _) => format!(" by {by}"),
        (None, channel) => over(channel.as_deref()),
    }
}

/// Renders a channel with a leading blank; empty if unknown.
pub(crate) fn over(channel: Option<&str>) -> String {
    match channel {
        Some("cli") => " at the command line".to_owned(),
        Some(channel) => format!(" over {channel}"),
        None => String::new(),
    }
}

/// Renders a reason after a colon; empty without one.
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

/// Renders the settings that a fork overrides.
pub(crate) fn overridden(overrides: &Overrides) -> String {
    let model = overrides.model.as_ref().map(|model| format!("the model {model}"));
    let system = overrides.system.as_ref().map(|system| format!("another system prompt: {system}"));
    model.into_iter().chain(system).collect::<Vec<_>>().join(" and ")
}

/// Renders why a call no longer waits, from the events since.
pub(crate) fn settlement<'a>(log: impl Iterator<Item = &'a Event>, call: &Path) -> String {
    let by = |actor: &Actor| {
        let by = actor.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        format!("{by}{}", over(actor.channel.as_deref()))
    };
    let mut found =
        log.filter(|event| event.path == *call || event.path.is_root()).filter_map(|event| match &event.kind {
            EventKind::LoopApprovalDecided { decision: Decision::Approved, actor, .. } => {
                Some(format!("it was approved{}", by(actor)))
            }
            EventKind::LoopApprovalDecided { decision: Decision::Rejected, actor, .. } => {
                Some(format!("it was rejected{}", by(actor)))
            }
            EventKind::BudgetDecided { decision: Decision::Approved, actor, .. } => {
                Some(format!("it was granted more{}", by(actor)))
            }
            EventKind::BudgetDecided { decision: Decision::Rejected, actor, .. } => {
                Some(format!("it was refused more{}", by(actor)))
            }
            EventKind::LoopApprovalExpired {} | EventKind::BudgetExpired {} => Some("no decision in time".to_owned()),
            EventKind::LoopResume { actor, .. } => Some(format!("it was answered{}", by(actor))),
            EventKind::BrainCancelled { actor, .. } => Some(format!("the run was cancelled{}", by(actor))),
            _ => None,
        });
    found.next().unwrap_or_else(|| "it was settled elsewhere".to_owned())
}
