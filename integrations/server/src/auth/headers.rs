//! Headers of all answers, for browsers.

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;

/// What an answer other than the inspector page may load: nothing.
const NOTHING: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Adds the headers that protect browsers. A handler may set its own content policy and caching.
pub(crate) fn security_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    set(headers, X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(headers, REFERRER_POLICY, "no-referrer");
    set(headers, HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(headers, HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    if !headers.contains_key(CONTENT_SECURITY_POLICY) {
        set(headers, CONTENT_SECURITY_POLICY, NOTHING);
    }
    if !headers.contains_key(CACHE_CONTROL) {
        set(headers, CACHE_CONTROL, "no-store");
    }
    response
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.insert(name, HeaderValue::from_static(value));
}
