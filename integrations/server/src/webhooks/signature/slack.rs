//! Slack: `X-Slack-Signature` over `v0:time:body`.

use axum::http::HeaderMap;
use positronic_core::record::Timestamp;
use serde_json::Value;

use super::digest::digest;
use super::secret::TextSecret;
use super::{HookAnswer, PayloadError, SecretError, SignatureError, SignatureScheme, SignedRequest};

const SIGNATURE: &str = "x-slack-signature";
const TIMESTAMP: &str = "x-slack-request-timestamp";
const VERSION: &str = "v0=";

/// The signatures of [Slack](https://docs.slack.dev/authentication/verifying-requests-from-slack/): events, interactive
/// payloads and slash commands.
///
/// A delivery's id is `event_id` of an event and `trigger_id` of an interaction. Slack's check of the URL is answered. An
/// accepted delivery gets an empty answer with status 200, since Slack shows other answers to its user.
#[derive(Debug, Clone)]
pub struct Slack {
    secrets: Vec<TextSecret>,
}

impl Slack {
    /// Creates the scheme with the app's signing secret.
    ///
    /// # Errors
    ///
    /// [`SecretError::TooShort`].
    pub fn new(secret: impl Into<String>) -> Result<Self, SecretError> {
        Ok(Self { secrets: vec![TextSecret::parse(secret)?] })
    }

    /// Accepts another secret as well, while the secret is being rotated.
    ///
    /// # Errors
    ///
    /// [`SecretError::TooShort`].
    pub fn also(mut self, secret: impl Into<String>) -> Result<Self, SecretError> {
        self.secrets.push(TextSecret::parse(secret)?);
        Ok(self)
    }
}

/// What the headers of a request say: its time and its signature.
fn of_headers<'a>(request: &SignedRequest<'a>) -> Result<(&'a str, &'a str), SignatureError> {
    let (seconds, signature) = (request.header(TIMESTAMP)?, request.header(SIGNATURE)?);
    let signature = signature.strip_prefix(VERSION).ok_or(SignatureError::Header { name: SIGNATURE })?;
    request.check_time(seconds, TIMESTAMP)?;
    Ok((seconds, signature))
}

impl SignatureScheme for Slack {
    fn check_headers(&self, headers: &HeaderMap, now: Timestamp) -> Result<(), SignatureError> {
        of_headers(&SignedRequest::headers(headers, now)).map(drop)
    }

    fn verify(&self, request: &SignedRequest<'_>) -> Result<(), SignatureError> {
        let (seconds, signature) = of_headers(request)?;
        let parts = [b"v0:".as_slice(), seconds.as_bytes(), b":", request.body];
        let expected: Vec<_> = self.secrets.iter().map(|secret| digest(secret.key(), &parts)).collect();
        request.check_digest(&expected, signature)
    }

    fn payload(&self, request: &SignedRequest<'_>) -> Result<Value, PayloadError> {
        request.json_or_form()
    }

    fn id(&self, request: &SignedRequest<'_>, payload: &Value) -> Result<String, PayloadError> {
        let field = |name: &str| payload.get(name).and_then(Value::as_str).filter(|id| !id.is_empty());
        match field("event_id").or_else(|| field("trigger_id")) {
            Some(id) => Ok(id.to_owned()),
            // Slack does not send such a payload twice; a copy of the request has the same signature.
            None => Ok(request.header(SIGNATURE).unwrap_or_default().to_owned()),
        }
    }

    fn answer(&self, _request: &SignedRequest<'_>, payload: &Value) -> Option<HookAnswer> {
        let field = |name: &str| payload.get(name).and_then(Value::as_str);
        if field("type") == Some("url_verification") {
            return Some(HookAnswer { text: field("challenge").unwrap_or_default().to_owned() });
        }
        (field("ssl_check") == Some("1")).then(HookAnswer::default)
    }

    fn accepted(&self) -> Option<HookAnswer> {
        Some(HookAnswer::default())
    }
}
