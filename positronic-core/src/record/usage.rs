//! What a model answered, what it cost, and how it fails.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::{DocumentError, check_document};
use super::price::Charge;
use super::request::CODE;
use super::routing::RoutingStep;

/// Counts the tokens of one model call, or of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the request.
    #[serde(skip_serializing_if = "is_zero")]
    pub input: u64,
    /// Tokens of the answer, reasoning included.
    #[serde(skip_serializing_if = "is_zero")]
    pub output: u64,
    /// The part of `input` that the provider read from its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// The part of `input` that the provider wrote to its cache, which some charge more for.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// The part of `output` that was reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Returns the tokens of requests and answers together.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// It had said everything.
    #[default]
    Stop,
    /// It wants its calls answered.
    Calls,
    /// It reached the number of tokens it may write.
    Length,
    /// The provider's filter stopped it.
    Filtered,
    /// It refused to answer.
    Refused,
    /// Another reason, in the provider's word.
    Other(String),
}

/// What is known about a model's answer beside its content.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResponseMetadata {
    /// The provider or adapter that was asked.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The model that was asked for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The model that says it answered, where that is another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// The provider's id of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// Why the model stopped.
    pub finish: Finish,
    /// Microseconds from the request to the first chunk of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_chunk: Option<u64>,
    /// The tokens.
    pub usage: Usage,
    /// What the answer cost, by the runner's prices of then or by what the provider said; absent where it was unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Box<Charge>>,
    /// What wrappers of models did with the request, in order: who failed before, what it waited for, where the answer comes
    /// from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<RoutingStep>,
}

impl ResponseMetadata {
    /// Says whether no provider was asked: code has decided, or a development cache has answered. Such an answer costs
    /// nothing.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.provider == CODE || self.via.iter().any(|hop| matches!(hop, RoutingStep::Cached { .. }))
    }
}

/// One part of a model's answer, in the order the model gave them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Natural language.
    Text {
        /// The text.
        text: String,
    },
    /// Why the model does not answer, in its words. It goes back as a text, which every provider takes.
    Refusal {
        /// The words.
        text: String,
    },
    /// What the model thought before it answered.
    Reasoning {
        /// The thoughts, or their summary, as far as the provider shows them.
        text: String,
        /// What the provider wants back unchanged: an encrypted item, a signature.
        #[serde(default, deserialize_with = "super::canonical::present", skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// A call; its arguments stand in its `LOOP_TOOL_CALL`.
    Call {
        /// The call's place among the calls of this answer, from 0.
        index: u32,
    },
    /// An item only the provider understands; it goes back unchanged.
    Opaque {
        /// The item.
        data: Value,
    },
}

impl Part {
    /// Says whether it says something to people: thoughts, empty texts and the marks of providers do not.
    #[must_use]
    pub fn says_something(&self) -> bool {
        match self {
            Self::Text { text } => !text.trim().is_empty(),
            Self::Refusal { .. } => true,
            Self::Opaque { data } => data.get("type").is_some(),
            Self::Reasoning { .. } | Self::Call { .. } => false,
        }
    }
}

/// A call as the model asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProposedCall {
    /// The provider's id, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them; JSON, if the model was right.
    pub arguments: String,
    /// What the provider wants back unchanged with this call, such as a thought signature.
    #[serde(default, deserialize_with = "super::canonical::present", skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// A model's complete answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ModelResponse {
    /// The parts in order; [`Part::Call`] refers to `calls`.
    pub parts: Vec<Part>,
    /// The calls in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ProposedCall>,
    /// What is known about the answer.
    #[serde(default)]
    pub metadata: ResponseMetadata,
}

impl ModelResponse {
    /// Checks that a log can hold the answer: its texts and arguments together are no larger than a document may be, and
    /// what the provider wants back is within the limits of documents.
    ///
    /// # Errors
    ///
    /// [`DocumentError`].
    pub fn check(&self, max_bytes: usize) -> Result<(), DocumentError> {
        let too_large = DocumentError::TooLarge { max_bytes };
        let mut left = max_bytes;
        let mut spend = |text: &str, data: Option<&Value>| {
            left = left.checked_sub(text.len()).ok_or_else(|| too_large.clone())?;
            data.map_or(Ok(()), |data| check_document(data, max_bytes))
        };
        for part in &self.parts {
            match part {
                Part::Text { text } | Part::Refusal { text } => spend(text, None)?,
                Part::Reasoning { text, data } => spend(text, data.as_ref())?,
                Part::Opaque { data } => spend("", Some(data))?,
                Part::Call { .. } => {}
            }
        }
        for ProposedCall { name, arguments, data, .. } in &self.calls {
            spend(name, None)?;
            spend(arguments, data.as_ref())?;
        }
        Ok(())
    }

    /// Returns the answer's text, its parts joined.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Refusal { .. } | Part::Reasoning { .. } | Part::Call { .. } | Part::Opaque { .. } => None,
            })
            .collect()
    }

    /// Returns the words with which the model refuses to answer, if it does.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let words = self.parts.iter().filter_map(|part| match part {
            Part::Refusal { text } => Some(text.as_str()),
            _ => None,
        });
        Some(words.collect::<String>()).filter(|words| !words.is_empty())
    }
}

/// Says why a model call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}{}", http(self))]
pub struct ModelError {
    /// What kind of failure it is.
    pub kind: ModelErrorKind,
    /// A sentence for people.
    pub message: String,
    /// How long the provider asks to wait, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's own code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_code: Option<String>,
    /// The provider's id of the request, for its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What wrappers of models did with the request, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<RoutingStep>,
}

/// The kinds of model failures. Whether trying again can help follows from the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// Too many requests (429).
    RateLimited,
    /// The account's quota is used up (429 with a quota code).
    QuotaExhausted,
    /// The provider failed (5xx).
    Server,
    /// No answer in time.
    Timeout,
    /// The connection could not be made or broke.
    Connection,
    /// The stream ended before the answer was finished.
    Truncated,
    /// The answer could not be understood.
    Malformed,
    /// The key is missing, wrong, or not allowed (401, 403).
    Auth,
    /// The model or the address does not exist (404).
    NotFound,
    /// The request does not fit into the model's context.
    ContextTooLong,
    /// The provider refused the request (other 4xx).
    BadRequest,
    /// The provider's filter refused the content.
    Filtered,
    /// A scripted model or a cassette has no answer for this request.
    Unscripted,
}

impl ModelErrorKind {
    /// Says whether the same request can succeed when it is sent again.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::RateLimited | Self::Server | Self::Timeout | Self::Connection | Self::Truncated | Self::Malformed => {
                true
            }
            Self::QuotaExhausted
            | Self::Auth
            | Self::NotFound
            | Self::ContextTooLong
            | Self::BadRequest
            | Self::Filtered
            | Self::Unscripted => false,
        }
    }
}

/// Says the HTTP status where the sentence does not.
fn http(error: &ModelError) -> String {
    match error.status {
        Some(status) if !error.message.contains(&status.to_string()) => format!(" (HTTP {status})"),
        _ => String::new(),
    }
}

impl ModelError {
    /// Makes an error of a kind with a sentence.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message, retry_after: None, status: None, provider_code: None, request_id: None, via: Vec::new() }
    }

    /// Says whether the same request can succeed when it is sent again.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        self.kind.is_retryable()
    }

    /// Returns how long the provider asks to wait.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.retry_after.map(Duration::from_micros)
    }
}
