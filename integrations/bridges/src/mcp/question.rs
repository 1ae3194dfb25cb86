//! What a run waits for as forms of the client (elicitation), and their answers as decisions. A form has only fields of simple types.

use positronic_core::record::{Amounts, PendingKind};
use positronic_server::extension::{Decision, OpenQuestion, Viewer};
use positronic_server::{Problem, ProblemType};
use rmcp::model::{ElicitRequest, ElicitRequestParams, ElicitationSchema, InputRequest};
use serde_json::{Map, Value, json};

use crate::answer_form::person;
use crate::open_questions::prompt;

/// The field of an answer that is not an object.
const ANSWER: &str = "answer";

/// Returns whether the caller can answer a question.
pub(super) fn is_answerable(question: &OpenQuestion) -> bool {
    question.pending.kind.is_for_person() && question.refused.is_none()
}

/// Returns a question as a form. `misfit` says why the answer before was not recorded.
pub(super) fn form(viewer: &Viewer, question: &OpenQuestion, misfit: Option<&Problem>) -> ElicitRequestParams {
    let asked = prompt(viewer, question);
    let message = match misfit {
        Some(problem) => format!("The last answer was not recorded: {}\n{asked}", problem.message()),
        None => asked,
    };
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema: schema(question) }
}

/// Returns a form as a part of an answer.
pub(super) fn request(form: ElicitRequestParams) -> InputRequest {
    InputRequest::Elicitation(ElicitRequest::new(form))
}

fn schema(question: &OpenQuestion) -> ElicitationSchema {
    let fields = match &question.pending.kind {
        PendingKind::Approval { gate, .. } => {
            let mut fields = json!({
                "approve": { "type": "boolean", "title": "Approve" },
                "reason": { "type": "string", "description": "Why not; the model reads it" },
            });
            if let Some(fields) = fields.as_object_mut().filter(|_| gate.editable) {
                let edited = json!({ "type": "string", "description": "Other arguments, all of them, as JSON" });
                fields.insert("arguments".to_owned(), edited);
            }
            object(&fields, "approve")
        }
        PendingKind::Budget(_) => object(
            &json!({
                "approve": { "type": "boolean", "title": "Approve" },
                "tokens": { "type": "integer", "minimum": 0 },
                "iterations": { "type": "integer", "minimum": 0 },
                "reason": { "type": "string" },
            }),
            "approve",
        ),
        PendingKind::Answer { waits } => {
            let wanted = person(waits).map(|(_, wait)| Value::clone(&wait.schema)).unwrap_or_default();
            match (flat(&wanted), simple(&wanted)) {
                (Some(schema), _) => return schema,
                (None, Some(field)) => object(&json!({ ANSWER: field }), ANSWER),
                (None, None) => object(&json!({ ANSWER: { "type": "string", "description": "As JSON" } }), ANSWER),
            }
        }
    };
    // These schemas have simple fields only.
    ElicitationSchema::from_json_schema(fields).unwrap_or_else(|_| ElicitationSchema::new(Default::default()))
}

fn object(properties: &Value, required: &str) -> Map<String, Value> {
    let schema = json!({ "type": "object", "properties": properties, "required": [required] });
    schema.as_object().cloned().unwrap_or_default()
}

/// Returns the schema of an object with fields of simple types as it is.
fn flat(schema: &Value) -> Option<ElicitationSchema> {
    let mut schema =
        schema.as_object().filter(|schema| schema.get("type").is_some_and(|kind| kind == "object"))?.clone();
    let has_more = |name: &&str| schema.contains_key(*name);
    if ["$defs", "oneOf", "anyOf", "allOf"].iter().any(has_more) {
        return None;
    }
    let simple = schema.get("properties")?.as_object()?.values().all(|field| simple(field).is_some());
    if !simple {
        return None;
    }
    schema.remove("$schema");
    ElicitationSchema::from_json_schema(schema).ok()
}

/// Returns a schema if it is that of a text, a number or a truth value.
fn simple(schema: &Value) -> Option<&Value> {
    let kind = schema.get("type").and_then(Value::as_str)?;
    matches!(kind, "string" | "integer" | "number" | "boolean").then_some(schema)
}

/// Reads the answer to a form; `None` if the person has closed it without one, so that the question stays open.
///
/// # Errors
///
/// `InvalidBody` if it does not fit the form.
pub(super) fn decision(question: &OpenQuestion, action: &str, content: &Value) -> Result<Option<Decision>, Problem> {
    let text = |name: &str| content.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let reason = || text("reason").map(str::to_owned);
    let kind = &question.pending.kind;
    match (action, kind) {
        ("accept", PendingKind::Answer { waits }) => {
            let Some((wait, spec)) = person(waits) else { return Ok(None) };
            let payload = if flat(&spec.schema).is_some() {
                content.clone()
            } else {
                let answer = content.get(ANSWER).cloned().ok_or_else(|| invalid("`answer` is missing"))?;
                match (&answer, simple(&spec.schema)) {
                    (Value::String(json), None) => {
                        serde_json::from_str(json).map_err(|error| invalid(&error.to_string()))?
                    }
                    _ => answer,
                }
            };
            Ok(Some(Decision::Reply { payload, wait: Some(wait) }))
        }
        ("accept", PendingKind::Approval { .. } | PendingKind::Budget(_)) => {
            let approve = content.get("approve").and_then(Value::as_bool);
            let approve = approve.ok_or_else(|| invalid("`approve` is neither true nor false"))?;
            Ok(Some(match kind {
                _ if !approve => Decision::Reject { reason: reason() },
                PendingKind::Budget(_) => {
                    let amount = |name: &str| content.get(name).and_then(Value::as_u64).unwrap_or_default();
                    let (tokens, iterations) = (amount("tokens"), amount("iterations"));
                    Decision::Grant(Amounts { tokens, iterations, ..Amounts::default() })
                }
                _ => {
                    let edited = text("arguments").map(serde_json::from_str::<Value>).transpose();
                    Decision::Approve { arguments: edited.map_err(|error| invalid(&error.to_string()))? }
                }
            }))
        }
        ("decline", PendingKind::Approval { .. } | PendingKind::Budget(_)) => {
            Ok(Some(Decision::Reject { reason: reason() }))
        }
        _ => Ok(None),
    }
}

/// Reads the answer to a form whose question is no longer open; `None` if the person has closed it. The answer says what was meant.
pub(super) fn late_decision(action: &str, content: &Value) -> Option<Decision> {
    let edited = || content.get("arguments").and_then(Value::as_str).and_then(|json| serde_json::from_str(json).ok());
    match (action, content.get("approve").and_then(Value::as_bool)) {
        ("accept", Some(true)) => Some(Decision::Approve { arguments: edited() }),
        ("accept", Some(false)) | ("decline", _) => Some(Decision::Reject { reason: None }),
        ("accept", None) => {
            let payload = content.get(ANSWER).unwrap_or(content).clone();
            Some(Decision::Reply { payload, wait: None })
        }
        _ => None,
    }
}

fn invalid(detail: &str) -> Problem {
    Problem::new(ProblemType::InvalidBody).detail(format!("the answer does not fit the form: {detail}"))
}
