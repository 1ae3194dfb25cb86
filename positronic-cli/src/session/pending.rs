//! Pending items, with the commands that answer them.

use std::fmt::Write as _;

use positronic_core::record::BudgetRequest;
use positronic_core::record::{Pending, PendingKind, Timestamp, WaitSpec};
use positronic_core::store::PendingItem;

use crate::app::{REPLY, Ui};
use crate::cli::limits;
use crate::cli::options::sample;
use crate::render::figures::{age, left, many};
use crate::render::sentences::{needs_approval, waits_for};
use crate::render::{ArgumentLayout, extent, limit_question, one_line, shorten};

/// The path of the whole run, in place of a call.
pub(crate) const WHOLE_RUN: &str = ".";

/// Maximum rows of a call's arguments in a list.
pub(crate) const LISTED_ROWS: usize = 20;

/// Renders one item: the question, the arguments, and the commands that answer it. `run` is the run's id as it
/// is displayed, and `currency` that of its money limits.
///
/// Arguments of several lines begin with their size. They are shown in full, or as the first `most` rows with the
/// command that shows the rest.
pub(crate) fn pending_entry(
    item: &PendingItem,
    run: &str,
    currency: Option<&str>,
    now: Timestamp,
    (columns, most): (usize, Option<usize>),
    ui: &Ui,
) -> String {
    let fit = |line: &str| shorten(&one_line(line), columns);
    let place = match (item.pending.tool.as_str(), item.pending.call.is_root()) {
        ("", true) => String::new(),
        ("", false) => format!(" › {}", item.pending.call),
        (tool, _) => format!(" › {tool} at {}", item.pending.call),
    };
    let head = format!("{run} {}{place}", item.brain);
    let mut text = format!("{}\n", fit(&format!("{head}, for {}", age(now.since(item.at)))));
    let until = expires(&item.pending);
    let remaining = until.map_or_else(String::new, |until| match until.since(now) {
        rest if rest.is_zero() => "; expired: the run continues without an answer".to_owned(),
        rest => format!("; {} left", left(rest)),
    });
    text.push_str(&fit(&format!("  {}{remaining}", question_text(&item.pending, currency))));
    text.push('\n');
    let arguments = &item.pending.arguments;
    let rows = ArgumentLayout { columns }.compact(arguments);
    if rows.len() > 1
        && let Some(extent) = extent(arguments)
    {
        _ = writeln!(text, "  with arguments of {extent}:");
    }
    let shown = most.filter(|most| rows.len() > *most).unwrap_or(rows.len());
    for row in rows.iter().take(shown) {
        _ = writeln!(text, "{row}");
    }
    if shown < rows.len() {
        let command = ui.command(&["show", run]);
        let rows = many(rows.len() - shown, "more row");
        _ = writeln!(text, "  … {rows}: {}", one_line(&command));
    }
    for command in answer_commands(run, &item.pending, now, ui) {
        // A truncated command would be useless.
        _ = writeln!(text, "    {}", one_line(&command));
    }
    text
}

/// Names the asking party as a sentence subject: a tool by its name, a loop by its path, or the run.
pub(crate) fn asking_party(pending: &Pending) -> String {
    match (pending.tool.as_str(), pending.call.is_root()) {
        ("", true) => "the run".to_owned(),
        ("", false) => pending.call.to_string(),
        (tool, _) => tool.to_owned(),
    }
}

/// Returns whether a person can answer.
pub(crate) fn for_person(pending: &Pending) -> bool {
    match &pending.kind {
        PendingKind::Approval { .. } | PendingKind::Budget(_) => true,
        PendingKind::Answer { waits } => waits.iter().any(|wait| wait.person),
    }
}

/// Returns whether a decision answers.
pub(crate) const fn is_approval(pending: &Pending) -> bool {
    matches!(pending.kind, PendingKind::Approval { .. } | PendingKind::Budget(_))
}

/// Describes the question; money has its currency if known.
pub(crate) fn question_text(pending: &Pending, currency: Option<&str>) -> String {
    match &pending.kind {
        PendingKind::Approval { gate, .. } => needs_approval(&gate.reason),
        PendingKind::Budget(request) => limit_question(request, currency),
        PendingKind::Answer { waits } => waits_for(waits),
    }
}

/// Maximum bytes of arguments in a suggested command; longer ones are edited in a file.
const MAX_ARGUMENTS: usize = 400;

/// Returns the commands that answer a pending item, or that continue the run after its expiry.
pub(crate) fn answer_commands(run: &str, pending: &Pending, now: Timestamp, ui: &Ui) -> Vec<String> {
    let call = pending.call.as_str();
    if expires(pending).is_some_and(|until| until <= now) {
        return vec![ui.command(&["work", run])];
    }
    match &pending.kind {
        PendingKind::Approval { gate, .. } => {
            let mut commands = vec![ui.command(&["approve", run, call])];
            if gate.editable {
                let arguments = pending.arguments.to_string();
                let arguments = if arguments.len() > MAX_ARGUMENTS { "@FILE" } else { &arguments };
                commands.push(ui.command(&["approve", run, call, "--args", arguments]));
            }
            commands.push(ui.command(&["reject", run, call, "--reason", "TEXT"]));
            commands
        }
        PendingKind::Budget(BudgetRequest { kind, limit, used, .. }) => {
            let call = if call.is_empty() { WHOLE_RUN } else { call };
            let more = limits::suggested(*kind, *limit, *used);
            vec![
                ui.command(&["approve", run, call, "--more", &more]),
                ui.command(&["reject", run, call, "--reason", "TEXT"]),
            ]
        }
        // Only the end of the other run answers.
        PendingKind::Answer { waits } if pending.kind.is_for_run() => {
            waits.iter().map(|wait| ui.command(&["show", wait.identifier.as_str()])).collect()
        }
        PendingKind::Answer { waits } => waits.iter().map(|wait| delivery(run, call, wait, ui)).collect(),
    }
}

fn delivery(run: &str, call: &str, wait: &WaitSpec, ui: &Ui) -> String {
    let payload = sample(&wait.schema).to_string();
    if wait.webhook == REPLY {
        ui.command(&["send", run, "--reply", call, &payload])
    } else {
        let (name, identifier) = (wait.webhook.as_str(), wait.identifier.as_str());
        ui.command(&["send", run, "--webhook", name, "--identifier", identifier, "--payload", &payload])
    }
}

fn expires(pending: &Pending) -> Option<Timestamp> {
    match &pending.kind {
        PendingKind::Approval { expires, .. } | PendingKind::Budget(BudgetRequest { expires, .. }) => *expires,
        PendingKind::Answer { waits } => waits.iter().filter_map(|wait| wait.expires).min(),
    }
}
