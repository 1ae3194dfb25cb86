//! Access of pages of other origins (CORS): off, except for the origins of the options, which send a token.
//!
//! Cookies are never allowed across origins: no answer has `Access-Control-Allow-Credentials`.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};

use crate::settings::RouterSettings;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, DELETE");
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, idempotency-key, if-match, if-none-match, last-event-id, traceparent, tracestate",
);
const ANSWER_HEADERS: HeaderValue = HeaderValue::from_static(
    "etag, idempotency-key, idempotency-replayed, location, ratelimit, ratelimit-policy, retry-after, x-request-id",
);

/// Returns the origin of a request if its pages have access.
pub(crate) fn allowed_origin(settings: &RouterSettings, headers: &HeaderMap) -> Option<HeaderValue> {
    let mut given = headers.get_all(ORIGIN).iter();
    let (Some(origin), None) = (given.next(), given.next()) else { return None };
    let is_origin =
        |url: &url::Url| url.origin().is_tuple() && url.origin().ascii_serialization().as_bytes() == origin.as_bytes();
    settings.cors_origins.iter().any(is_origin).then(|| origin.clone())
}

/// Answers the question of a browser whether a page of an allowed origin may send a request.
pub(crate) fn preflight(request: &Request) -> Option<Response> {
    let asks = request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    asks.then(|| {
        let headers = [
            (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
            (ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS),
            (ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600")),
        ];
        (StatusCode::NO_CONTENT, headers).into_response()
    })
}

/// Lets the pages of an allowed origin read an answer.
pub(crate) fn allow(settings: &RouterSettings, origin: Option<HeaderValue>, headers: &mut HeaderMap) {
    if settings.cors_origins.is_empty() {
        return;
    }
    headers.append(VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, ANSWER_HEADERS);
    }
}
