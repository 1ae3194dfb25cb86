//! Answers of a model: content, usage, cost and errors.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::model_error_kind::ModelErrorKind;
use crate::record::encoding::document::{self, DocumentError, check_document};
use crate::record::encoding::skip::is_default;
use crate::record::event::routing::RoutingStep;
use crate::record::money::Charge;
use crate::record::prompt::file::Attachment;
use crate::record::prompt::made_by::MadeBy;
use crate::record::prompt::part::{Citation, Part};

/// The model and provider of an answer that is scripted in code.
pub const CODE: &str = "code";

/// Counts the tokens of one model call, or of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the request.
    #[serde(skip_serializing_if = "is_default")]
    pub input: u64,
    /// Tokens of the answer, reasoning included.
    #[serde(skip_serializing_if = "is_default")]
    pub output: u64,
    /// The part of `input` that the provider read from its cache.
    #[serde(skip_serializing_if = "is_default")]
    pub cached: u64,
    /// The part of `input` that the provider wrote to its cache, which may cost more.
    #[serde(skip_serializing_if = "is_default")]
    pub cache_write: u64,
    /// The part of `cache_write` that stays in the cache for an hour, which may cost even more.
    #[serde(skip_serializing_if = "is_default")]
    pub cache_write_1h: u64,
    /// The part of `output` that was reasoning.
    #[serde(skip_serializing_if = "is_default")]
    pub reasoning: u64,
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
        self.cache_write_1h = self.cache_write_1h.saturating_add(other.cache_write_1h);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// The finish reason of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// It completed its answer.
    #[default]
    Stop,
    /// It waits for the results of its calls.
    Calls,
    /// It reached the token limit.
    Length,
    /// The provider's filter stopped it.
    Filtered,
    /// It refused to answer.
    Refused,
    /// It goes on in its next answer: the provider interrupts long work of its own tools. The loop asks it again with the
    /// same messages and this answer.
    Paused,
    /// Another reason, as named by the provider.
    Other(String),
}

/// The metadata of a model's answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResponseMetadata {
    /// The provider or adapter.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The requested model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The model that answered, as reported by the provider, if the name differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// The server that was asked, as host and port. Data that is private to a model goes back only to the same server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The provider's id of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The finish reason.
    pub finish: Finish,
    /// The time from the request to the first chunk of the answer, stored in microseconds.
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::record::encoding::micros::optional")]
    pub first_chunk: Option<Duration>,
    /// The tokens.
    pub usage: Usage,
    /// The cost of the answer, by the runner's prices at that time or as reported by the provider; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Box<Charge>>,
    /// What model wrappers did with the request, in order: earlier failures, waits, the origin of the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<RoutingStep>,
}

impl ResponseMetadata {
    /// Returns the model that made the answer.
    #[must_use]
    pub fn made_by(&self) -> MadeBy {
        MadeBy::new(&self.provider, &self.model, self.server.as_deref())
    }

    /// Returns whether the answer is scripted in code or from a development cache, and so costs nothing.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.provider == CODE || self.via.iter().any(|hop| matches!(hop, RoutingStep::Cached { .. }))
    }
}

/// A call as the model requested it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProposedCall {
    /// The provider's id, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them, which may be invalid JSON.
    pub arguments: String,
    /// Provider data that is sent back unchanged with this call, such as a thought signature.
    #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
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
    /// The metadata of the answer.
    #[serde(default)]
    pub metadata: ResponseMetadata,
}

impl ModelResponse {
    /// Checks that a log can store the answer: its texts and arguments together do not exceed the size limit, and the
    /// provider data is within the limits of documents.
    ///
    /// # Errors
    ///
    /// [`DocumentError`] if it does not.
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
                Part::File { file, data } => spend(&file.file().name, data.as_ref())?,
                Part::Citations { citations, data } => {
                    citations.iter().try_for_each(|citation| spend_citation(&mut spend, citation))?;
                    spend("", data.as_ref())?;
                }
                Part::ProviderTool(used) => {
                    for text in [&used.input, &used.output, &used.error].into_iter().flatten() {
                        spend(text, None)?;
                    }
                    used.sources.iter().try_for_each(|source| spend_citation(&mut spend, source))?;
                    spend(&used.tool, used.data.as_ref())?;
                }
                Part::Call { .. } => {}
            }
        }
        for ProposedCall { name, arguments, data, .. } in &self.calls {
            spend(name, None)?;
            spend(arguments, data.as_ref())?;
        }
        Ok(())
    }

    /// Returns the files that the model made.
    pub fn files(&self) -> impl Iterator<Item = &Attachment> {
        self.parts.iter().filter_map(|part| match part {
            Part::File { file, .. } => Some(file),
            _ => None,
        })
    }

    /// Returns the answer's text, its parts joined.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                _ => None,
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

/// Counts the texts of a citation.
fn spend_citation(
    spend: &mut impl FnMut(&str, Option<&Value>) -> Result<(), DocumentError>,
    citation: &Citation,
) -> Result<(), DocumentError> {
    let Citation { url, title, quote, supports } = citation;
    [url, title, quote, supports].into_iter().flatten().try_for_each(|text| spend(text, None))
}

/// The failure of a model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}{}", http(self))]
pub struct ModelError {
    /// The kind of failure.
    pub kind: ModelErrorKind,
    /// A message for people.
    pub message: String,
    /// The wait that the provider requests, stored in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::record::encoding::micros::optional")]
    pub retry_after: Option<Duration>,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's own code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_code: Option<String>,
    /// The provider's id of the request, for its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What model wrappers did with the request, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<RoutingStep>,
}

/// Returns the HTTP status if the message does not contain it.
fn http(error: &ModelError) -> String {
    match error.status {
        Some(status) if !error.message.contains(&status.to_string()) => format!(" (HTTP {status})"),
        _ => String::new(),
    }
}

impl ModelError {
    /// Creates an error.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message, retry_after: None, status: None, provider_code: None, request_id: None, via: Vec::new() }
    }

    /// Returns whether a retry of the same request can succeed.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        self.kind.is_retryable()
    }
}
