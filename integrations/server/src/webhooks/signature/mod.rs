//! Signatures of webhooks: what a sender's scheme signs, and how a received request is checked.
//!
//! A scheme gets the raw body and the current time, does no input or output, and answers three questions: is the request
//! genuine, what is its payload, and what is its id, by which a repeated delivery is recognised.

mod digest;
mod form;
mod github;
mod secret;
mod slack;
mod standard;
mod unsigned;

use std::time::Duration;

use axum::http::HeaderMap;
use positronic_core::record::{InexactNumber, Timestamp, check_numbers};
use serde_json::Value;

pub use github::GitHub;
pub use secret::{SecretError, WebhookSecret};
pub use slack::Slack;
pub use standard::StandardWebhooks;
pub(crate) use standard::{ID, SIGNATURE, TIMESTAMP, sign};
pub use unsigned::Unsigned;

/// How far the time of a signature may differ from the clock, into the past and into the future: five minutes, as the
/// specification of Standard Webhooks and Slack recommend.
pub const TOLERANCE: Duration = Duration::from_mins(5);

/// The greatest length of a delivery's id and of an identifier, in bytes.
pub(crate) const MAX_ID_BYTES: usize = 512;

/// A received request.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SignedRequest<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its body, byte for byte.
    pub body: &'a [u8],
    /// The current time.
    pub now: Timestamp,
}

/// A way to sign webhooks.
///
/// ```
/// use hmac::{Hmac, Mac as _};
/// use positronic_server::webhooks::{PayloadError, SignatureError, SignatureScheme, SignedRequest};
/// use serde_json::Value;
/// use sha2::Sha256;
///
/// /// Stripe: `Stripe-Signature: t=<seconds>,v1=<hexadecimal HMAC of "seconds.body">`.
/// struct Stripe(String);
///
/// impl SignatureScheme for Stripe {
///     fn verify(&self, request: &SignedRequest<'_>) -> Result<(), SignatureError> {
///         let header = request.header("stripe-signature")?;
///         let field = |name: &str| header.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
///         let invalid = || SignatureError::Header { name: "stripe-signature" };
///         let (seconds, signature) = (field("t").ok_or_else(invalid)?, field("v1").ok_or_else(invalid)?);
///         request.check_time(seconds, "stripe-signature")?;
///         let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).map_err(|_| invalid())?;
///         mac.update(format!("{seconds}.").as_bytes());
///         mac.update(request.body);
///         request.check_digest(&[mac.finalize().into_bytes().into()], signature)
///     }
///
///     fn id(&self, _: &SignedRequest<'_>, payload: &Value) -> Result<String, PayloadError> {
///         payload["id"].as_str().map(str::to_owned).ok_or(PayloadError::Missing { what: "the field `id`".to_owned() })
///     }
/// }
/// ```
pub trait SignatureScheme: Send + Sync + 'static {
    /// Checks what the headers alone show, before the body is read: that those of the signature are there, and the time. By default,
    /// it accepts all.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the headers alone show that the request is not genuine.
    fn check_headers(&self, _headers: &HeaderMap, _now: Timestamp) -> Result<(), SignatureError> {
        Ok(())
    }

    /// Checks that the sender has signed the raw body, and when.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if the request is not genuine, too old, or too new.
    fn verify(&self, request: &SignedRequest<'_>) -> Result<(), SignatureError>;

    /// Decodes the payload of a genuine request; JSON by default.
    ///
    /// # Errors
    ///
    /// [`PayloadError`] if the body cannot be decoded.
    fn payload(&self, request: &SignedRequest<'_>) -> Result<Value, PayloadError> {
        request.json()
    }

    /// Returns the delivery's id: the same for each attempt of the sender to deliver it.
    ///
    /// # Errors
    ///
    /// [`PayloadError`] if the request has no id.
    fn id(&self, request: &SignedRequest<'_>, payload: &Value) -> Result<String, PayloadError>;

    /// Returns the answer to a genuine request that is not a delivery, such as the check of a URL; `None` for a delivery.
    fn answer(&self, _request: &SignedRequest<'_>, _payload: &Value) -> Option<HookAnswer> {
        None
    }

    /// Returns what the sender expects as the answer to an accepted delivery. By default, it gets 202 and
    /// `{"accepted": "matched"}`, `{"accepted": "kept"}`, or `{"accepted": "started", "run": "…"}`.
    fn accepted(&self) -> Option<HookAnswer> {
        None
    }
}

/// The answer to a request of a webhook's sender, with status 200.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookAnswer {
    /// The text, as `text/plain`.
    pub text: String,
}

/// The reason why a request is not genuine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// A header is missing, repeated or malformed.
    #[error("the header `{name}` is missing or malformed")]
    Header {
        /// The header.
        name: &'static str,
    },
    /// The request was signed too long ago.
    #[error("the request was signed {} s ago, more than {} s", age.as_secs(), TOLERANCE.as_secs())]
    TooOld {
        /// How long ago.
        age: Duration,
    },
    /// The request was signed too far in the future.
    #[error("the request was signed {} s in the future, more than {} s; compare the clocks", ahead.as_secs(), TOLERANCE.as_secs())]
    TooNew {
        /// How far in the future.
        ahead: Duration,
    },
    /// No signature of the request matches one of the keys.
    #[error("no signature matches the raw body under one of the keys")]
    Mismatch,
}

/// The reason why the payload of a genuine request is not usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The body is not JSON.
    #[error("the body is not JSON: {reason}")]
    Json {
        /// What is wrong, and where.
        reason: String,
    },
    /// The body has a number that would be rounded.
    #[error("the body has {0}")]
    Number(#[from] InexactNumber),
    /// Something is missing.
    #[error("{what} is missing")]
    Missing {
        /// What is missing.
        what: String,
    },
    /// An id or identifier is too long.
    #[error("{what} is longer than {MAX_ID_BYTES} bytes")]
    TooLong {
        /// What is too long.
        what: &'static str,
    },
    /// An id or identifier has characters that lists do not show.
    #[error("{what} has a control character or an invisible character")]
    Unprintable {
        /// What has them.
        what: &'static str,
    },
}

impl<'a> SignedRequest<'a> {
    /// Creates a request of which only the headers are there.
    pub(crate) const fn headers(headers: &'a HeaderMap, now: Timestamp) -> Self {
        Self { headers, body: &[], now }
    }

    /// Creates a request, for a route or a test.
    #[must_use]
    pub const fn new(headers: &'a HeaderMap, body: &'a [u8], now: Timestamp) -> Self {
        Self { headers, body, now }
    }

    /// Returns the only value of a header.
    ///
    /// # Errors
    ///
    /// [`SignatureError::Header`] if there is not exactly one value, or it has other characters than visible ASCII.
    pub fn header(&self, name: &'static str) -> Result<&'a str, SignatureError> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().filter(|_| values.next().is_none()).and_then(|value| value.to_str().ok());
        value.filter(|value| !value.is_empty()).ok_or(SignatureError::Header { name })
    }

    /// Decodes the body as JSON.
    ///
    /// # Errors
    ///
    /// [`PayloadError::Json`], [`PayloadError::Number`].
    pub fn json(&self) -> Result<Value, PayloadError> {
        json(self.body)
    }

    /// Checks the time of a signature, in seconds since 1970, against the clock.
    ///
    /// # Errors
    ///
    /// [`SignatureError::TooOld`], [`SignatureError::TooNew`]; [`SignatureError::Header`] with the name if it is not a number.
    pub fn check_time(&self, seconds: &str, header: &'static str) -> Result<(), SignatureError> {
        let digits = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit());
        let seconds = digits.then(|| seconds.parse().ok()).flatten().and_then(|it: i64| it.checked_mul(1_000_000));
        let signed = Timestamp(seconds.ok_or(SignatureError::Header { name: header })?);
        let (age, ahead) = (self.now.since(signed), signed.since(self.now));
        if age > TOLERANCE {
            return Err(SignatureError::TooOld { age });
        }
        if ahead > TOLERANCE {
            return Err(SignatureError::TooNew { ahead });
        }
        Ok(())
    }

    /// Compares a hexadecimal signature with the digests under all keys, in a time that does not depend on their content.
    ///
    /// # Errors
    ///
    /// [`SignatureError::Mismatch`].
    pub fn check_digest(&self, digests: &[[u8; 32]], hexadecimal: &str) -> Result<(), SignatureError> {
        let given = digest::from_hex(hexadecimal).ok_or(SignatureError::Mismatch)?;
        if digest::is_among(digests, &[given]) { Ok(()) } else { Err(SignatureError::Mismatch) }
    }
}

/// Decodes JSON, and refuses numbers that would be rounded.
fn json(text: &[u8]) -> Result<Value, PayloadError> {
    let value = serde_json::from_slice(text).map_err(|error| PayloadError::Json { reason: error.to_string() })?;
    check_numbers(&String::from_utf8_lossy(text))?;
    Ok(value)
}

#[cfg(test)]
mod tests;
