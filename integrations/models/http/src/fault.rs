//! Reads the failures that servers report as [`ModelError`]s.

use std::time::Duration;

use positronic_core::record::{ModelError, ModelErrorKind};
use serde_json::Value;

use super::failure_kind::kind;
use super::json::Json;

/// The maximum number of calls or items in an answer, far above what models produce. Each piece searches its call among them.
pub const MAX_ITEMS: usize = 4096;

/// Creates the error for an answer with too many calls or items.
#[must_use]
pub fn too_many_items() -> ModelError {
    ModelError::new(ModelErrorKind::Malformed, format!("the answer has more than {MAX_ITEMS} calls or items"))
}

/// A failure as the server reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerFault {
    pub(super) message: String,
    pub(super) code: Option<String>,
    pub(super) kind: Option<String>,
    status: Option<u16>,
}

impl ServerFault {
    /// Reads the error object of a body or a chunk: `{"error": {…}}`, `{"error": "…"}`, `{"object": "error", …}`,
    /// `{"message": "…", "code": …}`.
    pub(super) fn read<J: Json>(document: &J) -> Option<Self> {
        let inner = match document.get("error") {
            Some(error) if !error.is_null() => error,
            _ if is_bare(document) => document,
            _ => return None,
        };
        Some(Self::of(&inner.to_value()))
    }

    /// Reads an error object, or a string instead of one.
    pub(super) fn of(error: &Value) -> Self {
        let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
        let code = error.get("code").or_else(|| error.get("status"));
        let message = text("message").or_else(|| error.as_str().map(str::to_owned)).or_else(|| text("detail"));
        let message = message.unwrap_or_else(|| shorten(&error.to_string()));
        Self {
            message: upstream(error).map_or_else(|| message.clone(), |cause| format!("{message}: {cause}")),
            code: code.and_then(|code| match code {
                Value::String(code) => Some(code.clone()),
                Value::Number(code) => Some(code.to_string()),
                _ => None,
            }),
            kind: text("type").filter(|kind| kind != "error"),
            status: code.and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()),
        }
    }

    /// Makes the error of a failure during an answer, whose HTTP status was a success.
    pub(super) fn into_error(self) -> ModelError {
        let kind = kind(self.status, &self);
        ModelError { provider_code: self.code.or(self.kind), ..ModelError::new(kind, self.message) }
    }
}

/// Reads the error of the provider behind a router: OpenRouter's `metadata.raw`, a string that often contains an error
/// object, and `metadata.provider_name`.
fn upstream(error: &Value) -> Option<String> {
    let metadata = error.get("metadata")?;
    let raw = match metadata.get("raw")? {
        Value::String(raw) => serde_json::from_str(raw).unwrap_or_else(|_| Value::from(raw.as_str())),
        other => other.clone(),
    };
    let cause = match &raw {
        Value::Null => return None,
        Value::String(text) => text.trim().to_owned(),
        document => ServerFault::read(document).unwrap_or_else(|| ServerFault::of(document)).message,
    };
    let cause = Some(shorten(&cause)).filter(|cause| !cause.is_empty())?;
    Some(match metadata.get("provider_name").and_then(Value::as_str) {
        Some(provider) => format!("{provider}: {cause}"),
        None => cause,
    })
}

/// Returns whether a document is an error object without a field around it.
fn is_bare<J: Json>(document: &J) -> bool {
    let text = |name: &str| document.get(name).and_then(J::as_str);
    let has = |name: &str| document.get(name).is_some_and(|value| !value.is_null());
    let is_named = text("object") == Some("error") || text("type") == Some("error");
    let is_answer = || ["choices", "candidates", "output", "content"].into_iter().any(has);
    let is_error = || has("detail") || (text("message").is_some() && (has("code") || has("status")));
    is_named || (text("object").is_none() && is_error() && !is_answer())
}

/// Makes the error of an error object, or of a string instead of one, that a server sends during an answer.
#[must_use]
pub fn reported_error(error: &Value) -> ModelError {
    ServerFault::of(error).into_error()
}

/// Reads the wait that Google's APIs name in the details of an error: `{"retryDelay": "34s"}`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("error")?.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

/// Makes the error of an answer with a failure status, from its body and what its headers say.
#[must_use]
pub fn http_error(status: u16, body: &str, wait: Option<Duration>, request_id: Option<String>) -> ModelError {
    let document: Option<Value> = serde_json::from_str(body).ok().or_else(|| in_event(body));
    // Some servers wrap the object in a list.
    let document = document.map(|document| document.get(0).cloned().unwrap_or(document));
    let fault = document.as_ref().map_or_else(
        || ServerFault { message: prose(status, body), ..ServerFault::default() },
        |document| ServerFault::read(document).unwrap_or_else(|| ServerFault::of(document)),
    );
    let kind = kind(Some(status), &fault);
    ModelError {
        retry_after: wait.or_else(|| document.as_ref().and_then(retry_delay)),
        status: Some(status),
        provider_code: fault.code.or(fault.kind),
        request_id,
        ..ModelError::new(kind, fault.message)
    }
}

/// Reads the document in the first event of a body that is an event stream.
fn in_event(body: &str) -> Option<Value> {
    let data = body.lines().find_map(|line| line.strip_prefix("data:"))?;
    serde_json::from_str(data).ok()
}

/// Makes the error of an event that is named `error`: an object in any form, or words.
pub(super) fn named_error(data: &str) -> ModelError {
    let fault = match serde_json::from_str::<Value>(data) {
        Ok(document) => ServerFault::read(&document).unwrap_or_else(|| ServerFault::of(&document)),
        Err(_) => ServerFault { message: shorten(data.trim()), ..ServerFault::default() },
    };
    fault.into_error()
}

/// Describes a body that is not JSON.
fn prose(status: u16, body: &str) -> String {
    let body = body.trim();
    if body.is_empty() {
        return format!("the server answered {status} with an empty body");
    }
    if !is_web_page(body) {
        return format!("the server answered {status}: {}", shorten(body));
    }
    let title =
        body.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>")).map(|(title, _)| title.trim());
    match title.filter(|title| !title.is_empty()) {
        Some(title) => format!("the server answered {status} with a web page: {}", shorten(title)),
        None => format!("the server answered {status} with a web page"),
    }
}

/// Returns whether a body is a web page, which gateways send.
pub(super) fn is_web_page(body: &str) -> bool {
    let start = body.trim_start().get(..14).unwrap_or_default().to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// Truncates a text for use in a message.
#[must_use]
pub fn shorten(text: &str) -> String {
    const LONGEST: usize = 300;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind_of(status: u16, body: &str) -> ModelErrorKind {
        http_error(status, body, None, None).kind
    }

    #[test]
    fn errors_of_gemini_have_their_kinds_and_waits() {
        let key = r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#;
        let busy = r#"{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}"#;

        assert_eq!(kind_of(400, key), ModelErrorKind::Auth);
        let error = http_error(429, busy, None, None);
        assert_eq!((error.kind, error.retry_after), (ModelErrorKind::RateLimited, Some(Duration::from_millis(34_500))));
    }

    #[test]
    fn web_page_is_reported_by_its_title() {
        let page = "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head></html>";

        let error = http_error(502, page, None, Some("req_1".to_owned()));

        assert_eq!(error.message, "the server answered 502 with a web page: 502 Bad Gateway");
        assert_eq!(error.kind, ModelErrorKind::Server);
        assert_eq!(error.request_id.as_deref(), Some("req_1"));
    }

    #[test]
    fn status_is_reported_once() {
        let reported = |status: u16, body: &str| http_error(status, body, None, None).to_string();

        assert_eq!(reported(401, r#"{"error":{"message":"wrong key"}}"#), "wrong key (HTTP 401)");
        assert_eq!(reported(429, "slow down"), "the server answered 429: slow down");
    }

    #[test]
    fn error_of_the_provider_behind_a_router_is_reported() {
        let routed = |raw: Value| {
            let metadata = json!({"raw": raw, "provider_name": "DeepInfra"});
            let body = json!({"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}});
            let error = http_error(400, &body.to_string(), None, None);
            (error.kind, error.message)
        };
        let too_long = "maximum context length is 4096 tokens";

        let nested = json!({"error": {"message": too_long}});
        for raw in [json!(too_long), nested.clone(), json!(nested.to_string())] {
            let message = format!("Provider returned error: DeepInfra: {too_long}");
            assert_eq!(routed(raw), (ModelErrorKind::ContextTooLong, message));
        }
        for raw in [json!(""), Value::Null] {
            assert_eq!(routed(raw), (ModelErrorKind::BadRequest, "Provider returned error".to_owned()));
        }
    }

    #[test]
    fn event_named_error_shows_the_words_of_the_server() {
        for (data, words, kind) in [
            (r#"{"message":"overloaded","code":503}"#, "overloaded", ModelErrorKind::Server),
            (r#"{"type":"rate_limit_error","message":"slow down"}"#, "slow down", ModelErrorKind::RateLimited),
            (r#"{"error":{"message":"a","type":"overloaded_error"}}"#, "a", ModelErrorKind::Server),
            (r#"{"reason":"gone"}"#, r#"{"reason":"gone"}"#, ModelErrorKind::Server),
            ("upstream is full\n", "upstream is full", ModelErrorKind::Server),
        ] {
            let error = named_error(data);
            assert_eq!((error.message.as_str(), error.kind), (words, kind), "{data}");
        }
        let body = "event: error\ndata: {\"error\":{\"message\":\"full\",\"code\":\"insufficient_quota\"}}\n\n";
        let error = http_error(429, body, None, None);
        assert_eq!((error.message.as_str(), error.kind), ("full", ModelErrorKind::QuotaExhausted));
    }

    #[test]
    fn every_form_of_an_error_object_is_read() {
        let sentence = |document: Value| ServerFault::read(&document).map(|fault| fault.into_error().message);

        assert_eq!(sentence(json!({"error": {"message": "a"}})).as_deref(), Some("a"));
        assert_eq!(sentence(json!({"error": "b"})).as_deref(), Some("b"));
        assert_eq!(sentence(json!({"object": "error", "message": "c"})).as_deref(), Some("c"));
        assert_eq!(sentence(json!({"detail": "d"})).as_deref(), Some("d"));
        assert_eq!(sentence(json!({"type": "error", "message": "f", "code": "server_error"})).as_deref(), Some("f"));
        assert_eq!(sentence(json!({"message": "g", "code": 503})).as_deref(), Some("g"));
        assert_eq!(sentence(json!({"error": null, "choices": []})), None);
        assert_eq!(sentence(json!({"message": "text", "status": "completed", "output": []})), None);
        assert_eq!(http_error(400, r#"[{"error":{"message":"e"}}]"#, None, None).message, "e");
    }
}
