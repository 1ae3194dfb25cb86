//! Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use positronic_core::record::Timestamp;
use serde_json::Value;

use super::digest::{Digest, digest, is_among};
use super::{PayloadError, SecretError, SignatureError, SignatureScheme, SignedRequest, WebhookSecret};

/// The headers.
pub(crate) const ID: &str = "webhook-id";
pub(crate) const TIMESTAMP: &str = "webhook-timestamp";
pub(crate) const SIGNATURE: &str = "webhook-signature";
/// The only supported version of a signature: HMAC-SHA256.
const VERSION: &str = "v1,";

/// The signatures of [Standard Webhooks](https://www.standardwebhooks.com): HMAC-SHA256 over id, time and raw body.
#[derive(Debug, Clone)]
pub struct StandardWebhooks {
    secrets: Vec<WebhookSecret>,
}

impl StandardWebhooks {
    /// Creates the scheme with a secret, `whsec_…`.
    ///
    /// # Errors
    ///
    /// As [`WebhookSecret::parse`].
    pub fn new(secret: &str) -> Result<Self, SecretError> {
        Ok(Self { secrets: vec![WebhookSecret::parse(secret)?] })
    }

    /// Accepts another secret as well, while the sender's secret is being rotated.
    ///
    /// # Errors
    ///
    /// As [`WebhookSecret::parse`].
    pub fn also(mut self, secret: &str) -> Result<Self, SecretError> {
        self.secrets.push(WebhookSecret::parse(secret)?);
        Ok(self)
    }
}

/// What the headers of a request say: its id, its time and its signatures.
fn of_headers<'a>(request: &SignedRequest<'a>) -> Result<(&'a str, &'a str, &'a str), SignatureError> {
    let (id, seconds, signatures) = (request.header(ID)?, request.header(TIMESTAMP)?, request.header(SIGNATURE)?);
    request.check_time(seconds, TIMESTAMP)?;
    Ok((id, seconds, signatures))
}

impl SignatureScheme for StandardWebhooks {
    fn check_headers(&self, headers: &HeaderMap, now: Timestamp) -> Result<(), SignatureError> {
        of_headers(&SignedRequest::headers(headers, now)).map(drop)
    }

    fn verify(&self, request: &SignedRequest<'_>) -> Result<(), SignatureError> {
        let (id, seconds, signatures) = of_headers(request)?;
        let given: Vec<_> = signatures.split(' ').filter_map(signature).collect();
        let expected: Vec<_> = self.secrets.iter().map(|secret| signed(secret, id, seconds, request.body)).collect();
        if is_among(&expected, &given) { Ok(()) } else { Err(SignatureError::Mismatch) }
    }

    fn id(&self, request: &SignedRequest<'_>, _payload: &Value) -> Result<String, PayloadError> {
        let missing = |_| PayloadError::Missing { what: format!("the header `{ID}`") };
        request.header(ID).map(str::to_owned).map_err(missing)
    }
}

/// Decodes one signature of the list; `None` if it has another version or is malformed.
fn signature(text: &str) -> Option<Digest> {
    STANDARD.decode(text.strip_prefix(VERSION)?).ok()?.try_into().ok()
}

fn signed(secret: &WebhookSecret, id: &str, seconds: &str, body: &[u8]) -> Digest {
    digest(secret.key(), &[id.as_bytes(), b".", seconds.as_bytes(), b".", body])
}

/// Returns the value of `webhook-signature`, with one signature for each secret.
pub(crate) fn sign(secrets: &[WebhookSecret], id: &str, seconds: &str, body: &[u8]) -> String {
    let signatures = secrets.iter().map(|secret| signed(secret, id, seconds, body));
    let encoded: Vec<_> = signatures.map(|digest| format!("{VERSION}{}", STANDARD.encode(digest))).collect();
    encoded.join(" ")
}
