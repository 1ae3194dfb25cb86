//! A run's report as Markdown, to be read and passed on. What is in it is
//! [`RunReport`](positronic_core::projection::RunReport)'s.

mod values;

use std::fmt::Write as _;
use std::time::Duration;

use positronic_core::projection::{Cost, Ending, ReportCall, ReportIteration, ReportPart, RunReport, Spent};
use positronic_core::record::{LoopOutcome, RunSummary, StageKind, ToolResult, Usage};

use self::values::{Length, fields, labelled};
use crate::display::figures::{duration, many, size, tokens};
use crate::markdown::{code, escaped, quoted};
use crate::prices::told;

/// Writes a report.
pub(crate) fn markdown(report: &RunReport, row: &RunSummary) -> String {
    let mut text = format!("# {}\n\n", escaped(&report.title));
    head(&mut text, report, row);
    if report.options.as_object().is_some_and(|options| !options.is_empty()) {
        paragraph(&mut text, "## Options");
        fields(&mut text, &report.options, "");
    }
    if let Some(Ending::Completed { result }) = &report.ending
        && !result.is_null()
    {
        paragraph(&mut text, "## Result");
        fields(&mut text, result, "");
    }
    if !report.parts.is_empty() {
        paragraph(&mut text, "## Steps");
    }
    for part in &report.parts {
        write_part(&mut text, part, &report.costs.currency);
    }
    if !report.files.is_empty() {
        paragraph(&mut text, "## Files");
        for file in &report.files {
            let kind = escaped(&file.media_type);
            _ = writeln!(text, "- {} ({kind}, {}), {}", code(&file.name), size(file.size), code(&file.uri));
        }
    }
    text.truncate(text.trim_end_matches('\n').len());
    text.push('\n');
    text
}

fn head(text: &mut String, report: &RunReport, row: &RunSummary) {
    _ = writeln!(text, "- Run: {}", code(row.run.as_str()));
    let outcome = match &report.ending {
        Some(Ending::Completed { .. }) => "**completed**".to_owned(),
        Some(Ending::Failed(failure)) => format!("**failed**: {}", escaped(&failure.message)),
        Some(Ending::Cancelled { by, reason }) => {
            let by = by.as_ref().map_or_else(String::new, |by| format!(" by {}", escaped(by)));
            let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {}", escaped(reason)));
            format!("**cancelled**{by}{reason}")
        }
        None => {
            let why = row.why.as_ref().map_or_else(String::new, |why| format!(": {}", escaped(why)));
            format!("**not over**, {}{why}", row.status.as_str())
        }
    };
    _ = writeln!(text, "- Outcome: {outcome}");
    if let Some(user) = &report.user {
        _ = writeln!(text, "- For: {}", escaped(user));
    }
    if let Some((origin, at)) = &row.forked_from {
        _ = writeln!(text, "- Forked from: {} after event {at}", code(origin.as_str()));
    }
    let took = duration(report.last.since(report.began));
    _ = writeln!(text, "- Began: {}; {took} to its last event", report.began);
    _ = writeln!(text, "- StructuredActions: {}", counted(report));
    let total = report.costs.total();
    if total.calls > 0 {
        _ = writeln!(text, "- Used: {}", used(&total.usage));
        let cost = told(&report.costs);
        let cost = cost.strip_prefix("cost").unwrap_or(&cost).trim_start_matches([':', ' ']);
        _ = writeln!(text, "- Cost: {}", escaped(cost));
    }
    notes(text, &report.notes);
}

/// Counts iterations, calls and what became of them.
fn counted(report: &RunReport) -> String {
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let mut said =
        vec![many(number(report.iterations().count()), "iteration"), many(number(report.calls().count()), "action")];
    let ended =
        |fits: fn(&ToolResult) -> bool| report.calls().filter(|call| call.result.as_ref().is_some_and(fits)).count();
    let kinds: [(&str, usize); 5] = [
        ("failed", ended(|result| matches!(result, ToolResult::Error { .. }))),
        ("denied", ended(|result| matches!(result, ToolResult::Denied { .. }))),
        ("skipped", ended(|result| matches!(result, ToolResult::Skipped { .. }))),
        ("interrupted", ended(|result| matches!(result, ToolResult::Interrupted { .. }))),
        ("open", report.calls().filter(|call| call.result.is_none()).count()),
    ];
    said.extend(kinds.iter().filter(|(_, count)| *count > 0).map(|(kind, count)| format!("{count} {kind}")));
    let refused: usize = report.iterations().map(|iteration| iteration.refused.len()).sum();
    if refused > 0 {
        said.push(format!("{} refused", many(number(refused), "answer")));
    }
    said.join(", ")
}

fn write_part(text: &mut String, part: &ReportPart, currency: &str) {
    let kind = match (&part.title, part.kind) {
        (Some(title), kind) => format!("{kind} {}", escaped(title)),
        (None, kind) => kind.to_string(),
    };
    let took = part.duration.map_or_else(String::new, |took| format!(", {}", duration(Duration::from_micros(took))));
    paragraph(text, &format!("### {} ({kind}{took})", code(part.path.as_str())));
    if let Some(input) = &part.input {
        quoted(text, input, "");
    }
    let ended = match &part.outcome {
        Some(LoopOutcome::Exited { tool }) => Some(format!("it was ended by {}", code(tool))),
        Some(LoopOutcome::Cancelled) => Some("it was cancelled".to_owned()),
        // What a limit or a failure says stands among the notes.
        Some(_) => None,
        None if part.over => None,
        None => Some("it is not over".to_owned()),
    };
    if !part.notes.is_empty() || ended.is_some() {
        paragraph(text, "");
    }
    notes(text, &part.notes);
    if let Some(ended) = ended {
        _ = writeln!(text, "- {ended}");
    }
    for (place, iteration) in (1..).zip(&part.iterations) {
        write_iteration(text, place, iteration, part.kind, currency);
    }
}

fn write_iteration(text: &mut String, place: usize, iteration: &ReportIteration, kind: StageKind, currency: &str) {
    let calls: Vec<_> = iteration.calls.iter().map(|call| code(&call.tool)).collect();
    let what = match (kind, iteration.answered) {
        (_, false) => "no answer yet".to_owned(),
        (StageKind::Step, true) => "a question".to_owned(),
        (_, true) if calls.is_empty() => "an answer".to_owned(),
        (_, true) => calls.join(", "),
    };
    paragraph(text, &format!("#### {place}. {what}"));
    if let Some(question) = &iteration.question {
        quoted(text, question, "");
    }
    if !iteration.reason.is_empty() {
        paragraph(text, "Reason:");
        quoted(text, &iteration.reason, "");
    }
    if !iteration.said.is_empty() {
        paragraph(text, "Answer:");
        quoted(text, &iteration.said, "");
    }
    paragraph(text, "");
    for refused in &iteration.refused {
        _ = writeln!(text, "- an answer was refused: {}; it was {}", escaped(&refused.message), code(&refused.answer));
    }
    notes(text, &iteration.notes);
    let several = iteration.calls.len() > 1;
    for call in &iteration.calls {
        if several {
            _ = writeln!(text, "- {}", code(&call.tool));
        }
        write_call(text, call, if several { "  " } else { "" });
    }
    if iteration.spent.calls > 0 {
        _ = writeln!(text, "- {}", spent(&iteration.spent, currency));
    }
}

fn write_call(text: &mut String, call: &ReportCall, indent: &str) {
    match &call.edited {
        None => labelled(text, "input", &call.arguments, indent, Length::Whole),
        Some(edited) => {
            labelled(text, "input, as the model wanted it", &call.arguments, indent, Length::Whole);
            labelled(text, "input, as a person edited it", edited, indent, Length::Whole);
        }
    }
    for note in &call.notes {
        _ = writeln!(text, "{indent}- {}", escaped(note));
    }
    let took = call.duration.map_or_else(String::new, |took| format!(", {}", duration(Duration::from_micros(took))));
    match &call.result {
        None => _ = writeln!(text, "{indent}- it is not over"),
        Some(ToolResult::Success { output, .. }) => {
            labelled(text, &format!("result{took}"), output, indent, Length::Cut);
        }
        Some(ToolResult::Error { message }) => {
            labelled(text, &format!("**error**{took}"), &message.as_str().into(), indent, Length::Cut);
        }
        Some(ToolResult::Denied { reason, by }) => {
            let by = by.as_ref().map_or_else(String::new, |by| format!(" by {}", escaped(by)));
            let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {}", escaped(reason)));
            _ = writeln!(text, "{indent}- **denied**{by}{reason}");
        }
        Some(ToolResult::Skipped { reason }) => _ = writeln!(text, "{indent}- **skipped**: {}", escaped(reason)),
        Some(ToolResult::Interrupted { reason }) => {
            _ = writeln!(text, "{indent}- **interrupted**: {}", escaped(reason));
        }
    }
}

/// Writes a line between empty ones; an empty one is one alone.
fn paragraph(text: &mut String, line: &str) {
    text.truncate(text.trim_end_matches('\n').len());
    text.push_str("\n\n");
    if !line.is_empty() {
        _ = write!(text, "{line}\n\n");
    }
}

fn notes(text: &mut String, notes: &[String]) {
    for note in notes {
        _ = writeln!(text, "- {}", escaped(note));
    }
}

fn spent(spent: &Spent, currency: &str) -> String {
    let cost = match spent.total() {
        Cost::Known(money) => format!("cost {money} {currency}"),
        Cost::Unknown => "cost unknown".to_owned(),
    };
    format!("{}; {cost}", used(&spent.usage))
}

/// Writes how many tokens were used, as far as anybody has said it.
fn used(usage: &Usage) -> String {
    if usage.total() == 0 { "no tokens reported".to_owned() } else { tokens(usage) }
}
