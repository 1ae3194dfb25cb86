//! What a run waits for in words, and where it is decided: for clients that cannot decide it themselves.

use positronic_core::record::{PendingKind, RunId};
use positronic_server::REDACTED;
use positronic_server::extension::{OpenQuestion, Viewer};

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

/// Says what a run waits for, and with which command each question is answered.
pub(crate) fn waiting(viewer: &Viewer, run: &RunId, questions: &[OpenQuestion]) -> String {
    let mut lines = vec![format!("The run {run} waits.")];
    for question in questions {
        let kind = &question.pending.kind;
        let path = match question.pending.call.as_str() {
            "" => ".",
            path => path,
        };
        lines.push(match (kind.is_for_person(), kind) {
            (false, kind) if kind.is_for_caller() => {
                format!("- `{path}` waits for the result of `{}`, a tool of the run's caller.", question.pending.tool)
            }
            (false, _) => format!("- `{path}` waits for another program."),
            (true, PendingKind::Answer { .. }) => {
                format!("- {} Answer: positronic send {run} --reply {path} JSON", prompt(viewer, question))
            }
            (true, _) => format!(
                "- {} Decide: positronic approve {run} {path}, or: positronic reject {run} {path}",
                prompt(viewer, question)
            ),
        });
    }
    lines.join("\n")
}
