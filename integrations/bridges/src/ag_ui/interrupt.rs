//! What a run waits for as interrupts.

use positronic_core::record::PendingKind;
use positronic_server::extension::OpenQuestion;
use serde_json::json;

use super::event::Interrupt;
use crate::answer_form::{person, response_schema};
use crate::leg::PAUSED;
use crate::open_questions::prompt;
use crate::projection::Projection;

/// Returns a pending item as an interrupt.
pub(super) fn interrupt(projection: &Projection, question: &OpenQuestion) -> Interrupt {
    let pending = &question.pending;
    let asked = || prompt(projection.viewer(), question);
    let (reason, message) = match &pending.kind {
        PendingKind::Approval { .. } => ("tool_call", Some(asked())),
        PendingKind::Budget(_) => ("positronic:budget", Some(asked())),
        PendingKind::Answer { waits } if person(waits).is_some() => ("input_required", Some(asked())),
        PendingKind::Answer { .. } => ("positronic:webhook", None),
    };
    let mut metadata = json!({
        "run": projection.run().as_str(),
        "path": pending.call.as_str(),
        "answerable": pending.kind.is_for_person() && question.refused.is_none(),
    });
    if let Some(fields) = metadata.as_object_mut() {
        if let PendingKind::Approval { gate, .. } = &pending.kind {
            fields.insert("tool".to_owned(), pending.tool.as_str().into());
            fields.insert("arguments".to_owned(), projection.redacted(&pending.arguments));
            fields.insert("reason".to_owned(), gate.reason.as_str().into());
        }
        if let Some(refused) = &question.refused {
            fields.insert("refused".to_owned(), refused.as_str().into());
        }
    }
    Interrupt {
        id: question.id.clone(),
        reason,
        message,
        tool_call_id: (!pending.tool.is_empty()).then(|| projection.call_id(&pending.call)),
        response_schema: response_schema(question),
        expires_at: question.expires.map(|at| at.to_string()),
        subagent_run_id: projection.brain_of(&pending.call),
        metadata: json!({ "positronic": metadata }),
    }
}

/// Returns the interrupt of a paused run.
pub(super) fn paused() -> Interrupt {
    plain(PAUSED, "positronic:paused", "A person has paused the run; it continues when one resumes it.")
}

/// Returns the interrupt of a run that waits for a time.
pub(super) fn sleeping() -> Interrupt {
    plain("sleeping", "positronic:timer", "The run waits for a time and continues by itself.")
}

fn plain(id: &str, reason: &'static str, message: &str) -> Interrupt {
    Interrupt {
        id: id.to_owned(),
        reason,
        message: Some(message.to_owned()),
        tool_call_id: None,
        response_schema: None,
        expires_at: None,
        subagent_run_id: None,
        metadata: json!({ "positronic": { "answerable": false } }),
    }
}
