//! The middleware around every request: the check of its host, its id, panics, redaction and the headers of all answers.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use positronic_core::runner::{Ids as _, UuidIds};
use serde_json::Value;

use super::accept::is_json;
use super::large_answer::placed;
use super::route::ProblemForm;
use crate::app::App;
use crate::auth::{allow, allowed_host, allowed_origin, preflight, security_headers};
use crate::problem::{Problem, ProblemType, Reporter};
use crate::redact::{AsIs, REDACTED, Redact, redacted_answer};

/// The header with the id of a request.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Checks the host, turns a panic into a problem document, redacts JSON, and adds the headers of all answers.
pub(super) async fn outermost(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let (settings, id) = (&app.settings, request_id(&request));
    let reporter =
        Reporter { prefix: app.prefix(request.uri(), request.extensions()).into(), request: id.as_str().into() };
    request.extensions_mut().insert(reporter.clone());
    let (host, origin) = (allowed_host(settings, &request), allowed_origin(settings, request.headers()));
    let is_api = request.uri().path().starts_with("/api/");
    let preflight = origin.is_some().then(|| preflight(&request)).flatten();
    let response = match (host, preflight) {
        (Err(problem), _) => problem.into_response(),
        (Ok(()), Some(preflight)) => preflight,
        (Ok(()), None) => {
            let answer = std::panic::AssertUnwindSafe(next.run(request)).catch_unwind().await;
            answer.unwrap_or_else(|_| Problem::new(ProblemType::Internal).into_response())
        }
    };
    let mut response = security_headers(response);
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let document = reporter.document(&problem).to_string();
        response.headers_mut().remove(CONTENT_LENGTH);
        *response.body_mut() = match response.extensions_mut().remove::<ProblemForm>() {
            Some(form) => {
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type));
                let text = (form.body)(&problem);
                Body::from(match &settings.redact {
                    Some(redact) if !is_json(form.media_type) => redacted_words(redact, &text).await,
                    _ => text,
                })
            }
            None => Body::from(document),
        };
    }
    if let Some(redact) = settings.redact.as_ref().filter(|_| is_api) {
        response = redacted(redact, response, &reporter).await;
    }
    let mut response = placed(response);
    allow(settings, origin, response.headers_mut());
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// Redacts an answer with JSON. Streams redact each of their events.
async fn redacted(redact: &Redact, response: Response, reporter: &Reporter) -> Response {
    let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !is_json(media_type) || response.extensions().get::<AsIs>().is_some() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    let text = match to_bytes(body, usize::MAX).await {
        Ok(bytes) if bytes.is_empty() => return Response::from_parts(parts, Body::empty()),
        Ok(bytes) => redacted_answer(redact, String::from_utf8_lossy(&bytes).into_owned()).await,
        Err(error) => Err(Problem::new(ProblemType::Internal).detail(error)),
    };
    let text = text.unwrap_or_else(|problem| {
        parts.status = StatusCode::INTERNAL_SERVER_ERROR;
        parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        reporter.document(&problem).to_string()
    });
    Response::from_parts(parts, Body::from(text))
}

/// Redacts a text that is not JSON, as texts in JSON are.
async fn redacted_words(redact: &Redact, text: &str) -> String {
    let redacted = redacted_answer(redact, Value::from(text).to_string()).await;
    let redacted = redacted.ok().and_then(|json| serde_json::from_str(&json).ok());
    redacted.unwrap_or_else(|| REDACTED.to_owned())
}

/// Returns the id under which a client or a proxy knows the request, or a new one.
fn request_id(request: &Request) -> String {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let given = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let given = given.filter(|id| (1..=64).contains(&id.len()) && id.bytes().all(is_safe));
    given.map_or_else(|| UuidIds.signal().to_string(), str::to_owned)
}
