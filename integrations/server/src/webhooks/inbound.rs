//! Inbound webhooks: which senders may deliver, and how a request becomes a signal or starts a run.
//!
//! ```text
//! raw body ─▶ signature ─▶ payload ─▶ id, identifier ─▶ Runner::deliver ─▶ the run that waits, a new run, or the mailbox
//! ```
//!
//! The signature is the authentication. The id of the delivery becomes the signal's id, under which the mailbox recognises
//! a repeated delivery for seven days, over restarts and by every server of the store.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};
use positronic_core::record::{Actor, RunId, SignalId, Timestamp, first_hidden};
use positronic_core::runner::{Client, Delivered, DeliveryError, SignalError};
use positronic_core::store::StoreError;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::bodies::cut;
use crate::brains::Brains;

use super::signature::{
    HookAnswer, MAX_ID_BYTES, PayloadError, SignatureError, SignatureScheme, SignedRequest, Unsigned,
};

/// The channel in the log of what a webhook delivers.
const CHANNEL: &str = "webhook";

/// A sender's webhook: how its requests are signed, and where they name the wait that they answer.
///
/// ```
/// use positronic_server::webhooks::{Hook, Slack, StandardWebhooks};
///
/// # fn main() -> Result<(), positronic_server::webhooks::SecretError> {
/// // POST /api/v1/hooks/orders/{identifier}
/// let orders = Hook::new(StandardWebhooks::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?);
/// // POST /api/v1/hooks/slack
/// let slack = Hook::new(Slack::new("8f742231b10e8888abcd99yyyzzz85a5")?).identifier_pointer("/event/thread_ts");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Hook {
    scheme: Arc<dyn SignatureScheme>,
    identifier: Identifier,
}

type FindIdentifier = dyn Fn(&Value) -> Option<String> + Send + Sync;

#[derive(Clone)]
enum Identifier {
    Path,
    Header(HeaderName),
    Pointer(String),
    Payload(Arc<FindIdentifier>),
}

impl Hook {
    /// Creates a webhook with signed requests, whose identifier is the last segment of the URL's path.
    #[must_use]
    pub fn new(scheme: impl SignatureScheme) -> Self {
        Self { scheme: Arc::new(scheme), identifier: Identifier::Path }
    }

    /// Creates a webhook without signatures: the server accepts a request from every sender that reaches it.
    #[must_use]
    pub fn unsigned() -> Self {
        Self::new(Unsigned)
    }

    /// Takes the identifier from a header, which most schemes do not sign.
    #[must_use]
    pub fn identifier_header(self, name: HeaderName) -> Self {
        Self { identifier: Identifier::Header(name), ..self }
    }

    /// Takes the identifier from a text or a number in the payload, by its JSON pointer: `/event/thread_ts`.
    #[must_use]
    pub fn identifier_pointer(self, pointer: impl Into<String>) -> Self {
        Self { identifier: Identifier::Pointer(pointer.into()), ..self }
    }

    /// Computes the identifier from the payload.
    #[must_use]
    pub fn identifier(self, find: impl Fn(&Value) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { identifier: Identifier::Payload(Arc::new(find)), ..self }
    }

    /// Returns whether the identifier is a segment of the URL's path.
    const fn is_in_path(&self) -> bool {
        matches!(self.identifier, Identifier::Path)
    }

    /// Checks a request and decodes it. One that may start a run needs no identifier; no wait has an empty one.
    fn open(&self, request: &SignedRequest<'_>, in_path: Option<&str>, may_start: bool) -> Result<Opened, HookError> {
        self.scheme.verify(request)?;
        let payload = self.scheme.payload(request)?;
        if let Some(answer) = self.scheme.answer(request, &payload) {
            return Ok(Opened::Answer(answer));
        }
        let identifier = match &self.identifier {
            Identifier::Path => in_path.map(str::to_owned),
            Identifier::Header(name) => {
                request.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
            }
            Identifier::Pointer(pointer) => payload.pointer(pointer).and_then(text_of),
            Identifier::Payload(find) => find(&payload),
        };
        let identifier = identifier.filter(|identifier| !identifier.is_empty());
        let identifier = identifier.or_else(|| may_start.then(String::new));
        let identifier = identifier.ok_or_else(|| PayloadError::Missing { what: self.identifier.to_string() })?;
        let id = self.scheme.id(request, &payload)?;
        for (what, text) in [("the identifier", &identifier), ("the id of the delivery", &id)] {
            if text.len() > MAX_ID_BYTES {
                return Err(PayloadError::TooLong { what }.into());
            }
            if first_hidden(text).is_some() {
                return Err(PayloadError::Unprintable { what }.into());
            }
        }
        Ok(Opened::Delivery { id, identifier, payload })
    }
}

/// Returns a text or a number as text.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Describes where the identifier is.
impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path => f.write_str("the identifier at the end of the URL's path"),
            Self::Header(name) => write!(f, "the identifier in the header `{name}`"),
            Self::Pointer(pointer) => write!(f, "the identifier at `{pointer}` of the payload"),
            Self::Payload(_) => f.write_str("the identifier in the payload"),
        }
    }
}

impl<S: SignatureScheme> From<S> for Hook {
    fn from(scheme: S) -> Self {
        Self::new(scheme)
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").field("identifier", &self.identifier.to_string()).finish_non_exhaustive()
    }
}

enum Opened {
    Answer(HookAnswer),
    Delivery { id: String, identifier: String, payload: Value },
}

/// The webhooks that a server accepts, by name. The name is that of the wait, as in `webhook("slack")`.
#[derive(Debug, Clone, Default)]
pub struct Hooks(BTreeMap<String, Hook>);

/// The answer to an inbound webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookOutcome {
    /// It is delivered or stored, or has started a run.
    Accepted {
        /// What it led to.
        accepted: HookAcceptance,
        /// The run that it has started.
        run: Option<RunId>,
    },
    /// It is delivered or stored, has started a run, or is not a delivery, and its sender expects this answer.
    Answer(HookAnswer),
}

/// What an accepted webhook led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "HookAcceptance")]
pub enum HookAcceptance {
    /// A run received it, now or earlier.
    Matched,
    /// It has started a run, now or earlier.
    Started,
    /// No run waits for it yet; the mailbox keeps it for seven days.
    Kept,
}

/// The reason why an inbound webhook was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// There is no webhook at this address. It is answered as [`HookError::Signature`] is.
    #[error("there is no webhook at this address")]
    Unknown,
    /// The request is not genuine.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The payload is not usable.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The payload does not fit what a run waits for or what it would start, or cannot be stored.
    #[error("{0}")]
    Misfit(String),
    /// The server cannot start the run now; the sender may try again.
    #[error("{0}")]
    NotStarted(String),
    /// The store failed; the sender may try again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Hooks {
    /// Adds a webhook. One of the same name is replaced.
    #[must_use]
    pub fn add(mut self, name: impl Into<String>, hook: impl Into<Hook>) -> Self {
        self.0.insert(name.into(), hook.into());
        self
    }

    /// Returns the names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Finds the webhook of a request.
    fn find(&self, name: &str, identifier: Option<&str>) -> Result<&Hook, HookError> {
        let hook = self.0.get(name).filter(|hook| identifier.is_none() || hook.is_in_path());
        hook.ok_or(HookError::Unknown).inspect_err(|_| {
            // The sender, who is not authenticated, chooses the name.
            tracing::warn!(
                webhook = cut(name),
                "refused a webhook: it is unknown, or its identifier is not in the path"
            );
        })
    }

    /// Refuses a request whose headers alone show that it is not genuine, before its body is read.
    pub(crate) fn check_headers(
        &self,
        name: &str,
        identifier: Option<&str>,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Result<(), HookError> {
        self.find(name, identifier)?.scheme.check_headers(headers, now).map_err(HookError::from).inspect_err(|error| {
            tracing::warn!(webhook = name, %error, "refused a webhook");
        })
    }

    /// Checks a request and delivers its payload, or starts a run of one of these brains with it. `identifier` is the segment of
    /// the URL's path after the name.
    ///
    /// The same delivery again gets the same answer, and changes nothing.
    ///
    /// # Errors
    ///
    /// [`HookError`]; nothing is delivered or started then.
    pub async fn receive(
        &self,
        client: &Client,
        brains: &dyn Brains,
        name: &str,
        identifier: Option<&str>,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<HookOutcome, HookError> {
        let hook = self.find(name, identifier)?;
        let request = SignedRequest::new(headers, body, client.now());
        let starts = brains.starts().into_iter().find(|start| start.webhook == name);
        let opened = hook.open(&request, identifier, starts.is_some()).inspect_err(|error| {
            tracing::warn!(webhook = name, %error, "refused a webhook");
        })?;
        let (id, identifier, payload) = match opened {
            Opened::Answer(answer) => return Ok(HookOutcome::Answer(answer)),
            Opened::Delivery { id, identifier, payload } => (id, identifier, payload),
        };
        // One sender must not use up another one's ids.
        let id = SignalId::from(format!("{name}:{id}"));
        let actor = Actor::builder().by(name).channel(CHANNEL).build();
        let actor = match request.header("traceparent") {
            Ok(trace) => actor.traced(trace, request.header("tracestate").ok()),
            Err(_) => actor,
        };
        let delivered = match starts {
            None => match brains.webhooks().iter().find(|known| known.name() == name) {
                Some(known) => known.deliver(client, id, &identifier, payload, actor).await?,
                None => client.deliver(id, name, &identifier, payload, actor).await.map_err(DeliveryError::Signal)?,
            },
            Some(start) => {
                let found = brains.runner(&start.brain).await;
                let runner = found.map_err(|none| HookError::NotStarted(none.to_string()))?;
                runner.start_on_definition(start).deliver(id, name, &identifier, payload, actor).await?
            }
        };
        if let Some(answer) = hook.scheme.accepted() {
            return Ok(HookOutcome::Answer(answer));
        }
        let is_start = delivered.is_start();
        Ok(match delivered {
            Delivered::To { run, .. } if is_start => accepted(HookAcceptance::Started, Some(run)),
            Delivered::To { .. } => accepted(HookAcceptance::Matched, None),
            Delivered::Kept => accepted(HookAcceptance::Kept, None),
        })
    }
}

const fn accepted(accepted: HookAcceptance, run: Option<RunId>) -> HookOutcome {
    HookOutcome::Accepted { accepted, run }
}

impl From<DeliveryError> for HookError {
    fn from(error: DeliveryError) -> Self {
        match error {
            DeliveryError::Signal(SignalError::Store(error)) => Self::Store(error),
            error @ DeliveryError::Start { .. } => Self::NotStarted(error.to_string()),
            refused => Self::Misfit(refused.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
