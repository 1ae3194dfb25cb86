//! GitHub: `X-Hub-Signature-256` over the raw body.

use axum::http::HeaderMap;
use positronic_core::record::Timestamp;
use serde_json::Value;

use super::digest::digest;
use super::secret::TextSecret;
use super::{HookAnswer, PayloadError, SecretError, SignatureError, SignatureScheme, SignedRequest};

const SIGNATURE: &str = "x-hub-signature-256";
const DELIVERY: &str = "x-github-delivery";
const EVENT: &str = "x-github-event";

/// The signatures of [GitHub](https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries), also
/// those of Gitea and Forgejo.
///
/// GitHub signs no time and not the id of the delivery, so only TLS protects a request from being sent again by others.
/// The ping that GitHub sends for a new webhook is answered.
#[derive(Debug, Clone)]
pub struct GitHub {
    secrets: Vec<TextSecret>,
}

impl GitHub {
    /// Creates the scheme with the webhook's secret.
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

fn signature<'a>(request: &SignedRequest<'a>) -> Result<&'a str, SignatureError> {
    request.header(SIGNATURE)?.strip_prefix("sha256=").ok_or(SignatureError::Header { name: SIGNATURE })
}

impl SignatureScheme for GitHub {
    fn check_headers(&self, headers: &HeaderMap, now: Timestamp) -> Result<(), SignatureError> {
        signature(&SignedRequest::headers(headers, now)).map(drop)
    }

    fn verify(&self, request: &SignedRequest<'_>) -> Result<(), SignatureError> {
        let signature = signature(request)?;
        let expected: Vec<_> = self.secrets.iter().map(|secret| digest(secret.key(), &[request.body])).collect();
        request.check_digest(&expected, signature)
    }

    fn payload(&self, request: &SignedRequest<'_>) -> Result<Value, PayloadError> {
        request.json_or_form()
    }

    fn id(&self, request: &SignedRequest<'_>, _payload: &Value) -> Result<String, PayloadError> {
        let missing = |_| PayloadError::Missing { what: format!("the header `{DELIVERY}`") };
        request.header(DELIVERY).map(str::to_owned).map_err(missing)
    }

    fn answer(&self, request: &SignedRequest<'_>, _payload: &Value) -> Option<HookAnswer> {
        (request.header(EVENT) == Ok("ping")).then(HookAnswer::default)
    }
}
