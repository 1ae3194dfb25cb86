//! Secrets of Standard Webhooks: `whsec_` and the key in base64.

use std::fmt;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose};
use serde::{Deserialize, Serialize};

/// Begins every secret.
const PREFIX: &str = "whsec_";
/// The lengths of a key in bytes that the specification allows.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// The length of a generated key in bytes.
const GENERATED: usize = 32;
/// The least length in bytes of a secret that another scheme uses as it is.
pub(super) const MIN_TEXT_BYTES: usize = 16;

/// Standard base64, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A secret of Standard Webhooks. Its debug output is redacted.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WebhookSecret(Vec<u8>);

/// Error from parsing a [`WebhookSecret`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The prefix is missing.
    #[error("a webhook secret must begin with `{PREFIX}`")]
    Prefix,
    /// The key is not base64.
    #[error("the part of a webhook secret after `{PREFIX}` must be standard base64")]
    Base64,
    /// The key is too short or too long.
    #[error("the key of a webhook secret has {} to {} bytes, not {bytes}", BYTES.start(), BYTES.end())]
    Length {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The secret is too short.
    #[error("a signing secret has at least {MIN_TEXT_BYTES} bytes, not {bytes}")]
    TooShort {
        /// Its length in bytes.
        bytes: usize,
    },
    /// There is no secret.
    #[error("there is no secret")]
    Missing,
    /// The system has no random numbers.
    #[error("cannot generate a secret: {reason}")]
    Random {
        /// The reason.
        reason: String,
    },
}

impl WebhookSecret {
    /// Parses a secret.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it does not begin with `whsec_`, is not base64, or has fewer than 24 or more than 64 bytes.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let key = text.trim().strip_prefix(PREFIX).ok_or(SecretError::Prefix)?;
        let key = BASE64.decode(key).map_err(|_| SecretError::Base64)?;
        if !BYTES.contains(&key.len()) {
            return Err(SecretError::Length { bytes: key.len() });
        }
        Ok(Self(key))
    }

    /// Generates a secret of 32 random bytes.
    ///
    /// # Errors
    ///
    /// [`SecretError::Random`].
    pub fn generate() -> Result<Self, SecretError> {
        let mut key = vec![0; GENERATED];
        getrandom::fill(&mut key).map_err(|error| SecretError::Random { reason: error.to_string() })?;
        Ok(Self(key))
    }

    /// Returns the secret as text, to give it to the receiver.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", general_purpose::STANDARD.encode(&self.0))
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

impl TryFrom<String> for WebhookSecret {
    type Error = SecretError;

    fn try_from(text: String) -> Result<Self, SecretError> {
        Self::parse(&text)
    }
}

impl From<WebhookSecret> for String {
    fn from(secret: WebhookSecret) -> Self {
        secret.reveal()
    }
}

/// A secret that is used as a key as it is. Its debug output is redacted.
#[derive(Clone)]
pub(super) struct TextSecret(String);

impl TextSecret {
    pub(super) fn parse(text: impl Into<String>) -> Result<Self, SecretError> {
        let text = text.into();
        match text.trim().len() {
            bytes if bytes < MIN_TEXT_BYTES => Err(SecretError::TooShort { bytes }),
            _ => Ok(Self(text)),
        }
    }

    pub(super) fn key(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for TextSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TextSecret(…)")
    }
}
