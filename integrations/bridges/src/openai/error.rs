//! Problems as errors of OpenAI's API.

use axum::http::HeaderValue;
use axum::response::Response;
use positronic_server::Problem;
use positronic_server::extension::RequestContext;
use serde_json::{Value, json};

/// Returns an error object.
pub(super) fn error(message: &str, kind: &str, code: &str, param: Option<&str>) -> Value {
    json!({ "error": { "message": message, "type": kind, "param": param, "code": code } })
}

/// Returns a problem as an error object.
pub(super) fn error_of(problem: &Problem) -> Value {
    let document = problem.document();
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    let message = text("detail").or(text("title")).unwrap_or_default();
    let kind = if problem.kind().status() >= 500 { "server_error" } else { "invalid_request_error" };
    error(message, kind, problem.kind().slug(), text("param"))
}

/// Answers with an error.
pub(super) fn refused(cx: &RequestContext, problem: &Problem) -> Result<Response, Problem> {
    answer(cx, problem.kind().status(), &error_of(problem))
}

/// Answers that a run has not completed. The client must not send the request again by itself: it would start another run.
pub(super) fn failed(cx: &RequestContext, code: &str, message: &str) -> Result<Response, Problem> {
    answer(cx, 422, &error(message, "run_error", code, None))
}

fn answer(cx: &RequestContext, status: u16, error: &Value) -> Result<Response, Problem> {
    let mut response = cx.answer(status, error)?;
    response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    Ok(response)
}
