//! The answer that a question takes: its schema, and a client's payload as a decision.

use positronic_core::record::{Amounts, PendingKind, WaitSpec};
use positronic_server::extension::{Decision, OpenQuestion};
use positronic_server::{FieldError, Problem, ProblemType};
use serde_json::{Value, json};

/// Returns the schema of the answer that a person gives; `None` if only a program answers.
pub(crate) fn response_schema(question: &OpenQuestion) -> Option<Value> {
    match &question.pending.kind {
        PendingKind::Approval { gate, .. } => {
            Some(approval_schema(question.arguments_schema.clone().filter(|_| gate.editable)))
        }
        PendingKind::Budget(_) => Some(grant_schema()),
        PendingKind::Answer { waits } => person(waits).map(|(_, wait)| Value::clone(&wait.schema)),
    }
}

fn approval_schema(edited: Option<Value>) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "approved": { "type": "boolean" },
            "reason": { "type": "string", "description": "Why not; the model reads it." },
        },
        "required": ["approved"],
    });
    if let (Some(edited), Some(properties)) = (edited, schema.get_mut("properties").and_then(Value::as_object_mut)) {
        properties.insert("editedArgs".to_owned(), edited);
    }
    schema
}

fn grant_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "approved": { "type": "boolean" },
            "grant": {
                "type": "object",
                "properties": {
                    "iterations": { "type": "integer" },
                    "tokens": { "type": "integer" },
                    "money": { "type": "string", "description": "A decimal number, such as 2.50." },
                    "time": { "type": "integer", "description": "Microseconds." },
                },
            },
            "reason": { "type": "string" },
        },
        "required": ["approved"],
    })
}

/// Returns the answer of a person among the possible ones.
pub(crate) fn person(waits: &[WaitSpec]) -> Option<(usize, &WaitSpec)> {
    waits.iter().enumerate().find(|(_, wait)| wait.person)
}

/// Reads the payload of an answer. `question` is `None` if it is no longer pending; then the payload says what was meant.
///
/// # Errors
///
/// `InvalidBody` if it does not fit the question.
pub(crate) fn decision(question: Option<&OpenQuestion>, payload: &Value, pointer: &str) -> Result<Decision, Problem> {
    let reply = |wait| Decision::Reply { payload: payload.clone(), wait };
    match question.map(|question| &question.pending.kind) {
        Some(PendingKind::Answer { waits }) => match person(waits) {
            Some((wait, _)) => Ok(reply(Some(wait))),
            None => {
                Err(Problem::new(ProblemType::Unprocessable).detail("the run waits for a program, not for a person"))
            }
        },
        Some(PendingKind::Approval { .. }) => verdict(payload, pointer, false),
        Some(PendingKind::Budget(_)) => verdict(payload, pointer, true),
        None => Ok(verdict(payload, pointer, payload.get("grant").is_some()).unwrap_or_else(|_| reply(None))),
    }
}

fn verdict(payload: &Value, pointer: &str, is_budget: bool) -> Result<Decision, Problem> {
    let invalid = |place: &str, detail: &str| {
        let errors = vec![FieldError::new(format!("{pointer}{place}"), detail)];
        Problem::new(ProblemType::InvalidBody).detail(format!("{pointer}{place}: {detail}")).errors(errors)
    };
    let reason = match payload.get("reason") {
        None | Some(Value::Null) => None,
        Some(Value::String(reason)) => Some(reason.clone()).filter(|reason| !reason.trim().is_empty()),
        Some(_) => return Err(invalid("/reason", "expected a text")),
    };
    match payload.get("approved").and_then(Value::as_bool) {
        None => Err(invalid("/approved", "expected true or false")),
        Some(false) => Ok(Decision::Reject { reason }),
        Some(true) if is_budget => {
            let grant = payload.get("grant").ok_or_else(|| invalid("/grant", "expected the amounts"))?;
            let amounts: Amounts =
                serde_json::from_value(grant.clone()).map_err(|error| invalid("/grant", &error.to_string()))?;
            Ok(Decision::Grant(amounts))
        }
        Some(true) => {
            let arguments = payload.get("editedArgs").filter(|edited| !edited.is_null()).cloned();
            Ok(Decision::Approve { arguments })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_without_a_verdict_is_refused_with_its_place() {
        let refused = verdict(&json!({ "ok": true }), "/resume/0/payload", false).unwrap_err();

        assert_eq!(refused.kind(), ProblemType::InvalidBody);
        assert_eq!(refused.document()["errors"][0]["pointer"], "/resume/0/payload/approved");
    }

    #[test]
    fn payload_is_read_as_the_question_asks() {
        let read = |payload: Value, is_budget| verdict(&payload, "", is_budget).unwrap();

        let edited = json!({ "approved": true, "editedArgs": { "amount": 7 } });
        assert_eq!(read(edited, false), Decision::Approve { arguments: Some(json!({ "amount": 7 })) });
        assert_eq!(read(json!({ "approved": true, "editedArgs": null }), false), Decision::Approve { arguments: None });
        let denied = json!({ "approved": false, "reason": "too much" });
        assert_eq!(read(denied, false), Decision::Reject { reason: Some("too much".to_owned()) });
        let more = json!({ "approved": true, "grant": { "tokens": 500 } });
        assert_eq!(read(more, true), Decision::Grant(Amounts { tokens: 500, ..Amounts::default() }));
        assert!(verdict(&json!({ "approved": true }), "", true).is_err());
    }
}
