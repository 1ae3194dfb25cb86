//! Refusals as errors of JSON-RPC. What concerns the caller and not its request stays a problem with an HTTP status.

use positronic_server::{Problem, ProblemType};
use serde_json::{Value, json};

/// A refusal.
#[derive(Debug)]
pub(super) enum Refusal {
    /// An error of JSON-RPC: its code, the reason as a word of the protocol, and a text.
    Rpc { code: i32, reason: &'static str, text: String },
    /// The caller may not do this, or the server cannot.
    Http(Problem),
}

impl Refusal {
    fn rpc(code: i32, reason: &'static str, text: impl Into<String>) -> Self {
        Self::Rpc { code, reason, text: text.into() }
    }

    pub(super) fn invalid_request(text: impl Into<String>) -> Self {
        Self::rpc(-32600, "INVALID_REQUEST", text)
    }

    pub(super) fn unknown_method(name: &str) -> Self {
        Self::rpc(-32601, "METHOD_NOT_FOUND", format!("there is no method `{name}`"))
    }

    pub(super) fn invalid_params(text: impl Into<String>) -> Self {
        Self::rpc(-32602, "INVALID_PARAMS", text)
    }

    pub(super) fn unknown_task(id: &str) -> Self {
        Self::rpc(-32001, "TASK_NOT_FOUND", format!("there is no task `{id}` of this agent"))
    }

    pub(super) fn unknown_push_notification(task: &str, id: &str) -> Self {
        Self::rpc(-32001, "TASK_NOT_FOUND", format!("the task `{task}` has no push notification `{id}`"))
    }

    pub(super) fn not_cancelable(id: &str) -> Self {
        Self::rpc(-32002, "TASK_NOT_CANCELABLE", format!("the task `{id}` has ended"))
    }

    pub(super) fn no_push_notifications() -> Self {
        let text = "this server sends no push notifications; outgoing webhooks report runs";
        Self::rpc(-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", text)
    }

    pub(super) fn unsupported(text: impl Into<String>) -> Self {
        Self::rpc(-32004, "UNSUPPORTED_OPERATION", text)
    }

    pub(super) fn content_type(text: impl Into<String>) -> Self {
        Self::rpc(-32005, "CONTENT_TYPE_NOT_SUPPORTED", text)
    }

    pub(super) fn no_extended_card() -> Self {
        Self::rpc(-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", "the card is complete; there is no extended one")
    }

    pub(super) fn version(asked: &str) -> Self {
        let text = format!("the version `{asked}` is not supported; the server speaks {}", super::VERSION);
        Self::rpc(-32009, "VERSION_NOT_SUPPORTED", text)
    }

    /// Returns the answer of JSON-RPC.
    ///
    /// # Errors
    ///
    /// The problem of a refusal that has an HTTP status.
    pub(super) fn answer(self, id: &Value) -> Result<Value, Problem> {
        match self {
            Self::Rpc { code, reason, text } => {
                let info = json!({
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": reason,
                    "domain": "a2a-protocol.org",
                });
                let error = json!({ "code": code, "message": text, "data": [info] });
                Ok(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            }
            Self::Http(problem) => Err(problem),
        }
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        use ProblemType as P;
        let text = text(&problem);
        match problem.kind() {
            P::NotFound | P::UnknownRun => Self::rpc(-32001, "TASK_NOT_FOUND", text),
            P::AlreadyDecided | P::Expired | P::NotWaiting | P::RunClosed | P::CodeDiffers | P::Conflict => {
                Self::unsupported(text)
            }
            P::UnknownBrain
            | P::UnknownCall
            | P::InvalidBody
            | P::OptionsInvalid
            | P::ArgumentsInvalid
            | P::Unprocessable
            | P::KeyReused => Self::invalid_params(text),
            _ => Self::Http(problem),
        }
    }
}

/// Returns what a problem says, with the invalid places.
pub(super) fn text(problem: &Problem) -> String {
    let document = problem.document();
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    let mut lines = vec![text("detail").or(text("title")).unwrap_or_default().to_owned()];
    for place in document.get("errors").and_then(Value::as_array).into_iter().flatten() {
        let part = |name: &str| place.get(name).and_then(Value::as_str).unwrap_or_default();
        lines.push(format!("{}: {}", part("pointer"), part("detail")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_concerns_the_caller_keeps_its_http_status() {
        let code = |kind: ProblemType| match Refusal::from(Problem::new(kind)) {
            Refusal::Rpc { code, .. } => Some(code),
            Refusal::Http(_) => None,
        };

        assert_eq!(code(ProblemType::UnknownRun), Some(-32001));
        assert_eq!(code(ProblemType::AlreadyDecided), Some(-32004));
        assert_eq!(code(ProblemType::OptionsInvalid), Some(-32602));
        for kind in [ProblemType::ScopeMissing, ProblemType::NotAnApprover, ProblemType::TooManyStreams] {
            assert_eq!(code(kind), None, "{kind:?}");
        }
    }
}
