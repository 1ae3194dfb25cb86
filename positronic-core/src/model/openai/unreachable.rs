//! Explains why no answer came from an address: names the address, the cause, and what to check.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use super::endpoint::{Endpoint, without_user};
use crate::record::{ModelError, ModelErrorKind};

/// How long to wait for an answer in the other protocol, once a connection has failed.
const PROBE: Duration = Duration::from_secs(2);

/// Explains a request that got no answer.
///
/// A connection that fails may speak the other protocol, TLS or plain HTTP. Where no proxy stands between, one request
/// without a key finds out, so that a wrong scheme is reported at once and not retried.
pub(super) async fn explain(
    error: reqwest::Error,
    endpoint: &Endpoint,
    proxy: Option<&str>,
    http: &reqwest::Client,
) -> ModelError {
    let mixed_up = proxy.is_none() && (error.is_connect() || !error.is_timeout()) && !is_refused(&error);
    if mixed_up && speaks_the_other_protocol(endpoint, http).await {
        let (speaks, write) = if endpoint.is_tls() { ("plain HTTP, not TLS", "http") } else { ("TLS", "https") };
        let sentence = format!(
            "cannot reach {endpoint}: the server speaks {speaks}; write the base URL as {write}://…, since {} answers",
            endpoint.origin(true)
        );
        return ModelError::new(ModelErrorKind::NotFound, sentence);
    }
    let through = proxy.map(|proxy| format!(" through the proxy {}", without_user(proxy))).unwrap_or_default();
    let (kind, advice) = advice(&error, endpoint, proxy.is_some());
    ModelError::new(kind, format!("cannot reach {endpoint}{through}: {}; {advice}", root_cause(&error)))
}

fn advice(error: &reqwest::Error, endpoint: &Endpoint, has_proxy: bool) -> (ModelErrorKind, String) {
    let cause = causes(error).to_ascii_lowercase();
    if error.is_builder() {
        return (ModelErrorKind::BadRequest, "check the base URL, the headers and the proxy".to_owned());
    }
    if has_proxy && error.is_connect() {
        return (kind(error), "check that the proxy runs, and that it may connect to this host".to_owned());
    }
    if is_refused(error) {
        return (kind(error), "check that the server runs, and that the base URL has its port".to_owned());
    }
    if cause.contains("dns error") {
        let advice = format!("check the host `{}` in the base URL, and the network", endpoint.host());
        return (kind(error), advice);
    }
    if cause.contains("certificate") {
        let advice = "its certificate is not trusted here: check the host in the base URL, or install its authority";
        return (ModelErrorKind::NotFound, advice.to_owned());
    }
    if error.is_timeout() {
        return (ModelErrorKind::Timeout, "check the host and the port in the base URL, and the network".to_owned());
    }
    (kind(error), "the connection broke before an answer came".to_owned())
}

fn kind(error: &reqwest::Error) -> ModelErrorKind {
    if error.is_timeout() { ModelErrorKind::Timeout } else { ModelErrorKind::Connection }
}

/// Asks the same port in the other protocol. Any answer counts, and so does a certificate that is not trusted, or an alert.
async fn speaks_the_other_protocol(endpoint: &Endpoint, http: &reqwest::Client) -> bool {
    match http.get(endpoint.origin(true)).timeout(PROBE).send().await {
        Ok(_) => true,
        Err(error) => ["certificate", "fatal alert"].iter().any(|words| causes(&error).contains(words)),
    }
}

fn is_refused(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(inner) = cause {
        if inner.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = inner.source();
    }
    false
}

/// Returns the error and its causes as one text, to search in.
fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = StdError::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// Returns the sentence of the innermost cause: those around it only say that a request has failed.
pub(super) fn root_cause(error: &reqwest::Error) -> String {
    let mut last: &dyn StdError = error;
    while let Some(inner) = last.source() {
        last = inner;
    }
    // The outermost error names the URL with its query.
    if StdError::source(error).is_none() { "the request failed".to_owned() } else { last.to_string() }
}
