//! Problems as errors of OpenAI's API.

use axum::http::HeaderValue;
use axum::response::{IntoResponse as _, Response};
use positronic_server::extension::{RequestContext, Route};
use positronic_server::{Problem, ProblemType};
use serde_json::{Value, json};

/// Returns an error object.
pub(super) fn error(message: &str, kind: &str, code: &str, param: Option<&str>) -> Value {
    json!({ "error": { "message": message, "type": kind, "param": param, "code": code } })
}

/// Lets a route answer with the errors of OpenAI's API, also to what the router refuses.
pub(super) fn with_errors(route: Route) -> Route {
    route.problems_as("application/json", |problem| {
        let kind = if problem.kind().status() >= 500 { "server_error" } else { "invalid_request_error" };
        let document = problem.document();
        let param = document.get("param").and_then(Value::as_str);
        error(&problem.message(), kind, problem.kind().slug(), param).to_string()
    })
}

/// Refuses what the client must not send again by itself.
pub(super) fn refused(problem: Problem) -> Response {
    without_retries(problem.into_response())
}

/// Answers that a run has not completed. The client must not send the request again by itself: it would start another run.
pub(super) fn failed(cx: &RequestContext, code: &str, message: &str) -> Result<Response, Problem> {
    cx.answer(422, &error(message, "run_error", code, None)).map(without_retries)
}

fn without_retries(mut response: Response) -> Response {
    response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    response
}

/// Refuses a parameter that the facade does not have.
pub(super) fn unsupported(param: &str, detail: &str) -> Problem {
    Problem::new(ProblemType::Unprocessable)
        .detail(format!("`{param}` is not supported: {detail}"))
        .field("param", param)
}

/// Refuses a parameter with a wrong value.
pub(super) fn invalid(param: &str, detail: &str) -> Problem {
    Problem::new(ProblemType::InvalidBody).detail(format!("`{param}`: {detail}")).field("param", param)
}
