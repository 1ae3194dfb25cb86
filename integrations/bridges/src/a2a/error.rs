//! Refusals as errors of the protocol, in the form of each binding. What concerns the caller and not its request keeps its HTTP status.

use std::borrow::Cow;

use positronic_server::{Problem, ProblemType};
use serde_json::{Value, json};

use crate::json_rpc_error::json_rpc_code;

/// A refusal.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The request is refused.
    Protocol(ProtocolError),
    /// The caller may not do this, or the server cannot.
    Http(Problem),
}

/// An error of the protocol.
#[derive(Debug)]
pub(super) struct ProtocolError {
    kind: ErrorKind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorKind {
    InvalidRequest,
    UnknownMethod,
    InvalidParams,
    TaskNotFound,
    TaskNotCancelable,
    PushNotificationNotSupported,
    UnsupportedOperation,
    ContentTypeNotSupported,
    ExtendedAgentCardNotConfigured,
    VersionNotSupported,
    /// What the protocol has no error for.
    Http(ProblemType),
}

/// How the bindings name a kind of error.
struct Names {
    /// The code of JSON-RPC.
    code: i32,
    /// The HTTP status.
    http: u16,
    /// The word of `google.rpc.Code`.
    status: &'static str,
    reason: Cow<'static, str>,
    /// Whose word the reason is.
    domain: &'static str,
}

impl ErrorKind {
    const fn of(kind: ProblemType) -> Self {
        use ProblemType as P;
        match kind {
            P::NotFound | P::UnknownRun => Self::TaskNotFound,
            P::AlreadyDecided | P::Expired | P::NotWaiting | P::RunClosed | P::CodeDiffers | P::Conflict => {
                Self::UnsupportedOperation
            }
            P::UnknownBrain
            | P::UnknownCall
            | P::InvalidBody
            | P::InvalidQuery
            | P::OptionsInvalid
            | P::ArgumentsInvalid
            | P::Unprocessable
            | P::KeyReused => Self::InvalidParams,
            other => Self::Http(other),
        }
    }

    fn names(self) -> Names {
        let (code, http, status, reason) = match self {
            Self::InvalidRequest => (-32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
            Self::UnknownMethod => (-32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND"),
            Self::InvalidParams => (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
            Self::TaskNotFound => (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
            Self::TaskNotCancelable => (-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
            Self::PushNotificationNotSupported => {
                (-32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED")
            }
            Self::UnsupportedOperation => (-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
            Self::ContentTypeNotSupported => (-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
            Self::ExtendedAgentCardNotConfigured => {
                (-32007, 400, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED")
            }
            Self::VersionNotSupported => (-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
            Self::Http(kind) => {
                let reason = kind.slug().replace('-', "_").to_uppercase().into();
                let (code, status) = (json_rpc_code(kind), status_word(kind.status()));
                return Names { code, http: kind.status(), status, reason, domain: "positronic" };
            }
        };
        Names { code, http, status, reason: reason.into(), domain: "a2a-protocol.org" }
    }
}

/// Returns the word of `google.rpc.Code` for an HTTP status.
const fn status_word(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}

impl ProtocolError {
    /// Returns a problem as an error of the protocol, also where there is no HTTP status any more: after a stream has begun.
    pub(super) fn of(problem: &Problem) -> Self {
        Self { kind: ErrorKind::of(problem.kind()), text: problem.message() }
    }

    /// Returns the error object of JSON-RPC.
    pub(super) fn json_rpc(&self) -> Value {
        json!({ "code": self.kind.names().code, "message": self.text, "data": [self.info()] })
    }

    /// Returns the HTTP status and the body of HTTP+JSON.
    pub(super) fn http_json(&self) -> (u16, Value) {
        let Names { http, status, .. } = self.kind.names();
        let error = json!({ "code": http, "status": status, "message": self.text, "details": [self.info()] });
        (http, json!({ "error": error }))
    }

    fn info(&self) -> Value {
        let Names { reason, domain, .. } = self.kind.names();
        json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason,
            "domain": domain,
        })
    }

    /// Returns the code of JSON-RPC.
    #[cfg(test)]
    pub(super) fn code(&self) -> i32 {
        self.kind.names().code
    }
}

impl Refusal {
    fn of(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self::Protocol(ProtocolError { kind, text: text.into() })
    }

    pub(super) fn invalid_request(text: impl Into<String>) -> Self {
        Self::of(ErrorKind::InvalidRequest, text)
    }

    pub(super) fn unknown_method(name: &str) -> Self {
        Self::of(
            ErrorKind::UnknownMethod,
            format!("there is no method `{name}`; the server speaks A2A {}", super::VERSION),
        )
    }

    pub(super) fn invalid_params(text: impl Into<String>) -> Self {
        Self::of(ErrorKind::InvalidParams, text)
    }

    pub(super) fn unknown_task(id: &str) -> Self {
        Self::of(
            ErrorKind::TaskNotFound,
            format!("there is no task `{id}` of this agent, or it is that of another user"),
        )
    }

    pub(super) fn unknown_push_notification(task: &str, id: &str) -> Self {
        Self::of(ErrorKind::TaskNotFound, format!("the task `{task}` has no push notification `{id}`"))
    }

    pub(super) fn not_cancelable(id: &str) -> Self {
        Self::of(ErrorKind::TaskNotCancelable, format!("the task `{id}` has ended"))
    }

    pub(super) fn no_push_notifications() -> Self {
        let text = "this server sends no push notifications; outgoing webhooks report runs";
        Self::of(ErrorKind::PushNotificationNotSupported, text)
    }

    pub(super) fn unsupported(text: impl Into<String>) -> Self {
        Self::of(ErrorKind::UnsupportedOperation, text)
    }

    pub(super) fn content_type(text: impl Into<String>) -> Self {
        Self::of(ErrorKind::ContentTypeNotSupported, text)
    }

    pub(super) fn no_extended_card() -> Self {
        Self::of(ErrorKind::ExtendedAgentCardNotConfigured, "the card is complete; there is no extended one")
    }

    pub(super) fn version(asked: &str) -> Self {
        let text = format!("the version `{asked}` is not supported; the server speaks {}", super::VERSION);
        Self::of(ErrorKind::VersionNotSupported, text)
    }

    /// Returns the error of a refusal that concerns the request.
    ///
    /// # Errors
    ///
    /// The problem of a refusal that concerns the caller.
    pub(super) fn into_error(self) -> Result<ProtocolError, Problem> {
        match self {
            Self::Protocol(error) => Ok(error),
            Self::Http(problem) => Err(problem),
        }
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        match ErrorKind::of(problem.kind()) {
            ErrorKind::Http(_) => Self::Http(problem),
            kind => Self::of(kind, problem.message()),
        }
    }
}

/// Writes a problem with an HTTP status in the form of HTTP+JSON.
pub(super) fn http_json_problem(problem: &Problem) -> String {
    let (_, mut body) = ProtocolError::of(problem).http_json();
    if let Some(code) = body.pointer_mut("/error/code") {
        *code = problem.kind().status().into();
    }
    body.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_concerns_the_caller_keeps_its_http_status() {
        let code = |kind: ProblemType| match Refusal::from(Problem::new(kind)) {
            Refusal::Protocol(error) => Some(error.code()),
            Refusal::Http(_) => None,
        };

        assert_eq!(code(ProblemType::UnknownRun), Some(-32001));
        assert_eq!(code(ProblemType::AlreadyDecided), Some(-32004));
        assert_eq!(code(ProblemType::OptionsInvalid), Some(-32602));
        for kind in [ProblemType::ScopeMissing, ProblemType::NotAnApprover, ProblemType::TooManyStreams] {
            assert_eq!(code(kind), None, "{kind:?}");
        }
    }

    #[test]
    fn each_binding_has_its_form_of_an_error() {
        let error = Refusal::unknown_task("x").into_error().unwrap();
        let (status, body) = error.http_json();

        assert_eq!((status, &body["error"]["code"], &body["error"]["status"]), (404, &json!(404), &json!("NOT_FOUND")));
        assert_eq!(body["error"]["details"], error.json_rpc()["data"]);
        assert_eq!(error.json_rpc()["data"][0]["reason"], "TASK_NOT_FOUND");
        let within = ProtocolError::of(&Problem::new(ProblemType::TooManyStreams));
        assert_eq!((within.code(), within.http_json().0), (-32600, 429));
    }
}
