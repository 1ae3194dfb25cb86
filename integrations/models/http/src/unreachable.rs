//! Diagnosis of failed connections: the URL, the cause, and advice.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use positronic_core::record::{ModelError, ModelErrorKind};

use super::endpoint::{Endpoint, without_user};

/// How long a probe with the other protocol waits.
const PROBE: Duration = Duration::from_secs(2);

/// Explains a request without an answer.
///
/// The server may speak the other protocol, TLS or plain HTTP. A request of `probe` without the key finds out, so that a wrong
/// scheme is reported at once and not retried.
pub(super) async fn explain(
    error: reqwest::Error,
    endpoint: &Endpoint,
    proxy: Option<&str>,
    probe: Option<&reqwest::Client>,
) -> ModelError {
    let may_be_other_protocol = (error.is_connect() || !error.is_timeout()) && !is_refused(&error);
    if let Some(http) = probe.filter(|_| may_be_other_protocol)
        && speaks_the_other_protocol(endpoint, http).await
    {
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
        return (kind(error), "check that the proxy is running, and that it may connect to this host".to_owned());
    }
    if is_refused(error) {
        return (kind(error), "check that the server is running, and the port in the base URL".to_owned());
    }
    if cause.contains("dns error") {
        let advice = format!("check the host `{}` in the base URL, and the network", endpoint.host());
        return (kind(error), advice);
    }
    if cause.contains("certificate") {
        let advice =
            "its certificate is not trusted: check the host in the base URL, or install the certificate authority";
        return (ModelErrorKind::NotFound, advice.to_owned());
    }
    if error.is_timeout() {
        return (ModelErrorKind::Timeout, "check the host and the port in the base URL, and the network".to_owned());
    }
    (kind(error), "the connection broke before the answer".to_owned())
}

fn kind(error: &reqwest::Error) -> ModelErrorKind {
    if error.is_timeout() { ModelErrorKind::Timeout } else { ModelErrorKind::Connection }
}

/// Sends a request in the other protocol to the same port. Any answer counts, and so does an untrusted certificate or an alert.
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

/// Returns the messages of the error and its causes, for searching.
fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = StdError::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// Returns the message of the innermost cause; the outer ones only say that a request failed.
pub(super) fn root_cause(error: &reqwest::Error) -> String {
    let mut last: &dyn StdError = error;
    while let Some(inner) = last.source() {
        last = inner;
    }
    // The outermost error contains the URL with its query.
    if StdError::source(error).is_none() { "the request failed".to_owned() } else { last.to_string() }
}
