//! What a run waits for in words, and where it is decided: for clients that cannot decide it themselves.

use std::borrow::Cow;

use positronic_core::record::{PendingKind, RunId, WaitSpec};
use positronic_server::REDACTED;
use positronic_server::extension::{OpenQuestion, Viewer};

use crate::answer_form::person;

/// Where the commands work.
const WHERE: &str = "Commands work where the server runs: in its folder, or with `--store` and its store.";

/// Says what is asked.
pub(crate) fn prompt(viewer: &Viewer, question: &OpenQuestion) -> String {
    let pending = &question.pending;
    match &pending.kind {
        PendingKind::Approval { gate, .. } => {
            let arguments = viewer.redacted(&*pending.arguments).unwrap_or_else(|| REDACTED.into());
            format!("May `{}` run with {arguments}? It needs an approval: {}.", pending.tool, gate.reason)
        }
        PendingKind::Budget(_) => "The run has reached a limit and asks for more.".to_owned(),
        PendingKind::Answer { waits } => {
            let prompt = waits.iter().find(|wait| wait.person).and_then(|wait| wait.prompt.clone());
            prompt.unwrap_or_else(|| format!("`{}` waits for an answer.", pending.call))
        }
    }
}

/// Says what a run waits for, and with which command of a program each question is answered.
pub(crate) fn waiting(viewer: &Viewer, program: &str, run: &RunId, questions: &[OpenQuestion]) -> String {
    if questions.is_empty() {
        return format!("The run {run} waits for a time, and continues by itself.");
    }
    let page = viewer.page(run).map(|page| format!(" A person decides at {page}, or with a command."));
    let mut lines = vec![format!("The run {run} waits.{} {WHERE}", page.unwrap_or_default())];
    for question in questions {
        let pending = &question.pending;
        let path = match pending.call.as_str() {
            "" => ".",
            path => path,
        };
        let word = quoted(path);
        lines.push(match &pending.kind {
            kind if kind.is_for_caller() => {
                format!("- `{path}` waits for the result of `{}`, a tool of the run's caller.", pending.tool)
            }
            PendingKind::Answer { waits } if !pending.kind.is_for_person() => {
                let webhooks: Vec<_> = waits.iter().map(|wait| webhook(viewer, program, wait)).collect();
                format!("- `{path}` waits for another program: {}", webhooks.join(", or "))
            }
            PendingKind::Answer { waits } => {
                let fits = person(waits).map(|(_, wait)| format!(", where JSON fits {}", wait.schema));
                let (prompt, fits) = (prompt(viewer, question), fits.unwrap_or_default());
                format!("- {prompt} Answer: {program} send {run} --reply {word} JSON{fits}")
            }
            PendingKind::Approval { .. } | PendingKind::Budget(_) => format!(
                "- {} Decide: {program} approve {run} {word}, or: {program} reject {run} {word}",
                prompt(viewer, question)
            ),
        });
        if let Some(refused) = &question.refused {
            lines.push(format!("  (not by this caller: {refused})"));
        }
    }
    lines.join("\n")
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> Cow<'_, str> {
    shlex::try_quote(word).unwrap_or(Cow::Borrowed(word))
}

/// Names a webhook, and the command that sends it in place of the other program.
fn webhook(viewer: &Viewer, program: &str, wait: &WaitSpec) -> String {
    let identifier = if viewer.redacts() { REDACTED } else { &wait.identifier };
    let (name, identifier) = (quoted(&wait.webhook), quoted(identifier));
    format!(
        "the webhook `{}`. To send it by hand: {program} send --webhook {name} --identifier {identifier} --payload JSON",
        wait.webhook
    )
}

/// Says that a run is paused, and with which command of a program a person resumes it.
pub(crate) fn paused(program: &str, run: &RunId) -> String {
    format!("The run {run} is paused. A person can resume it: {program} resume {run}\n{WHERE}")
}
