//! Words for events that several renderers share.

use std::collections::HashSet;

use positronic_core::record::{
    Actor, Approval, ApprovalOutcome, Citation, Decision, Event, EventKind, FileRef, Overrides, Path, ProviderToolUse,
    Repair, ResumeCause, RunId, RunSummary, Status, ToolResult,
};

use positronic_core::projection::timeline::{BudgetOutcome, Ending, WaitEnd};

use super::figures::{more, size};
use super::one_line;

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

/// Renders what was repaired in a call.
pub(crate) fn repaired(repair: &Repair) -> String {
    format!("repaired: {}", repair.clause())
}

/// Renders how a call ended without a result: a word, and the rest of the sentence.
pub(crate) fn without_result(result: &ToolResult) -> Option<(&'static str, String)> {
    Some(match result {
        ToolResult::Error { message } => ("error", why(Some(message))),
        ToolResult::Denied { reason, by, .. } => {
            let by = by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
            ("denied", by + &why(reason.as_deref()))
        }
        ToolResult::Skipped { reason } => ("skipped", why(Some(reason))),
        ToolResult::Interrupted { reason } => ("interrupted", why(Some(reason))),
        _ => return None,
    })
}

/// Renders how a brain ended without a result: a word, and the rest of the sentence.
pub(crate) fn ended(ending: &Ending) -> Option<(&'static str, String)> {
    match ending {
        Ending::Failed(failure) => Some(("failed", why(Some(&failure.message)))),
        Ending::Cancelled { actor, reason } => Some(("cancelled", by(actor) + &why(reason.as_deref()))),
        _ => None,
    }
}

/// Renders the outcome of an approval.
pub(crate) fn approval(approval: &Approval) -> Option<String> {
    Some(match approval.outcome.as_ref()? {
        ApprovalOutcome::Decided { decision, arguments, reason, actor, .. } => {
            let (what, how) = match (decision, arguments) {
                (Decision::Approved, None) => ("approved", ""),
                (Decision::Approved, Some(_)) => ("approved", " with other arguments"),
                (Decision::Rejected, _) => ("rejected", ""),
            };
            format!("{what}{}{how}{}", by(actor), why(reason.as_deref()))
        }
        ApprovalOutcome::Expired { .. } => NO_DECISION.to_owned(),
        ApprovalOutcome::Withdrawn { cause, .. } => format!("approval no longer needed: {cause}"),
        _ => return None,
    })
}

/// An approval has expired.
const NO_DECISION: &str = "no decision in time";

/// Renders the outcome of a limit question.
pub(crate) fn budget(outcome: &BudgetOutcome, currency: Option<&str>) -> String {
    let BudgetOutcome::Decided { decision, more: granted, reason, actor, .. } = outcome else {
        return "no grant in time".to_owned();
    };
    let what = match decision {
        Decision::Approved => {
            let amounts: Vec<String> = granted.kinds().map(|kind| more(kind, granted.of(kind), currency)).collect();
            format!("granted {}", amounts.join(" and "))
        }
        Decision::Rejected => "refused more".to_owned(),
    };
    format!("{what}{}{}", by(actor), why(reason.as_deref()))
}

/// Renders the end of a wait, without its answer.
pub(crate) fn resumed(WaitEnd { cause, actor, received, .. }: &WaitEnd) -> String {
    let older = if received.is_some() { " (older than its question)" } else { "" };
    match cause {
        ResumeCause::Answered => format!("answered{}{older}", by(actor)),
        ResumeCause::Expired => "no answer in time".to_owned(),
        _ => "ended".to_owned(),
    }
}

/// Renders a file: its name, media type, size, and where it is if it is not stored.
pub(crate) fn file(file: &FileRef) -> String {
    // The hash of a stored file does not help a reader.
    let place = if file.blob().is_some() { String::new() } else { format!(" {}", file.uri) };
    format!("{} ({}){place}", file.name, file_kind(file))
}

/// Renders the media type of a file, and its size if known.
pub(crate) fn file_kind(file: &FileRef) -> String {
    match file.size {
        0 if file.blob().is_none() => file.media_type.clone(),
        bytes => format!("{}, {}", file.media_type, size(bytes)),
    }
}

/// Renders files in a sentence.
pub(crate) fn files(files: &[FileRef]) -> String {
    files.iter().map(file).collect::<Vec<_>>().join(", ")
}

/// Renders a message in one line: its text, and its files.
pub(crate) fn message(text: &str, files: &[FileRef]) -> String {
    match (text.trim(), files) {
        (text, []) => text.to_owned(),
        ("", files) => self::files(files),
        (text, files) => format!("{text} [{}]", self::files(files)),
    }
}

/// The maximum number of sources in a short list.
pub(crate) const SOURCES: usize = 3;

/// Renders the first sources of an answer, each in a line, and the number of the others.
pub(crate) fn sources(sources: &[&Citation]) -> Vec<String> {
    let more = sources.len().checked_sub(SOURCES).filter(|more| *more > 0);
    let first = sources.iter().take(SOURCES).map(|source| one_line(&source.line()));
    first.chain(more.map(|more| format!("+{more} more"))).collect()
}

/// Renders the use of a provider's tool: its name, and what the model asked it for.
pub(crate) fn provider_tool(used: &ProviderToolUse) -> String {
    let input = used.input.as_deref().map(str::trim).filter(|input| !input.is_empty());
    format!("{}{}", used.tool, why(input))
}

/// Reports that no worker has claimed a run, and how to continue it. A `run` that asks releases its run meanwhile, and a server claims it soon.
pub(crate) fn no_worker(work: &str) -> String {
    format!("no worker has claimed the run; unless a `run`, `work` or `serve` is open for it, continue it with: {work}")
}

/// Reports that the worker which had a run before continues it.
pub(crate) fn live_worker(name: &str) -> String {
    format!("the worker {name}, which had the run before, is alive and continues it")
}

/// Renders a run's status, and whether it is unclaimed, or a limit has cut off its last loop.
pub(crate) fn status(row: &RunSummary, unclaimed: &HashSet<RunId>) -> String {
    let status = if row.parked { "parked" } else { row.status.as_str() };
    let note = if unclaimed.contains(&row.run) {
        " (no worker)"
    } else if row.status == Status::Completed && row.cut_off.is_some() {
        " (cut off)"
    } else {
        ""
    };
    format!("{status}{note}")
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
    let was = |what: &str, actor: &Actor| Some(format!("{what}{}", actor.clause()));
    let mut found =
        log.filter(|event| event.path == *call || event.path.is_root()).filter_map(|event| match &event.kind {
            EventKind::LoopApprovalDecided { decision: Decision::Approved, actor, .. } => was("it was approved", actor),
            EventKind::LoopApprovalDecided { actor, .. } => was("it was rejected", actor),
            EventKind::BudgetDecided { decision: Decision::Approved, actor, .. } => was("it was granted more", actor),
            EventKind::BudgetDecided { actor, .. } => was("it was refused more", actor),
            EventKind::LoopApprovalExpired {} | EventKind::BudgetExpired {} => Some(NO_DECISION.to_owned()),
            EventKind::LoopResume { cause: ResumeCause::Expired, .. }
            | EventKind::StageResume { cause: ResumeCause::Expired, .. } => {
                Some("it was not answered in time".to_owned())
            }
            EventKind::LoopResume { actor, .. } | EventKind::StageResume { actor, .. } => was("it was answered", actor),
            EventKind::BrainCancelled { actor, .. } => was("the run was cancelled", actor),
            _ => None,
        });
    found.next().unwrap_or_else(|| "it was settled elsewhere".to_owned())
}
