//! Client of brains that Restate serves: starts runs, sends signals, waits for outcomes.

use positronic_core::dsl::Runnable;
use positronic_core::record::{Actor, Path, RunId, Seq, Signal, SignalId, SignalKind, Start};
use positronic_core::runner::{Delivered, Ids as _, UuidIds};
use serde_json::Value;

use crate::ingress::Ingress;
use crate::names;
use crate::payloads::{Begin, DeliverRequest, DeliveryOutput, RunOutcome, RunRequest, Signalled};

/// Starts and signals the runs of served brains through Restate's ingress, without the store.
///
/// A method that returns an answer of the run waits until a service is alive. Those with `send` in their names return when
/// Restate has accepted the request, and Restate hands it to a service once one is alive; the log decides then whether it
/// fits the run.
///
/// Reads, lists and live updates come from the store: [`positronic_core::runner::Client`]. Decisions can be sent through
/// that client, too; an endpoint finds them within a second.
#[derive(Debug, Clone)]
pub struct Client {
    ingress: Ingress,
}

/// The reason why a request has failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The request cannot be made.
    #[error("cannot make the request: {reason}")]
    Input {
        /// What is wrong with it.
        reason: String,
    },
    /// Restate did not answer, or refused the request.
    #[error("Restate did not accept the request: {reason}")]
    Ingress {
        /// What happened.
        reason: String,
    },
    /// Restate knows no such service, or no such run.
    #[error("Restate does not know the service or the run; is the endpoint registered? {reason}")]
    NoService {
        /// Restate's answer.
        reason: String,
    },
    /// The invocation failed.
    #[error("the invocation failed ({status}): {reason}")]
    Failed {
        /// The status of HTTP.
        status: u16,
        /// The error.
        reason: String,
    },
    /// The log refused a signal.
    #[error("{reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// The answer has another form than expected.
    #[error("cannot decode the answer: {reason}")]
    Output {
        /// What is wrong with it.
        reason: String,
    },
}

impl Client {
    /// Creates a client of the ingress at a URL, such as `http://restate:8080`.
    #[must_use]
    pub fn new(ingress: &str) -> Self {
        Self { ingress: Ingress::new(ingress) }
    }

    /// Sets the bearer token for the ingress.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        Self { ingress: self.ingress.token(token.into()) }
    }

    /// Starts a run under an id. A second start with the same id changes nothing, also if its options differ. Returns
    /// when Restate has accepted it, whether or not a service is alive.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn start<B: Runnable>(
        &self,
        brain: B,
        options: B::Options,
        run: impl Into<RunId> + Send,
    ) -> Result<(), ClientError> {
        let title = brain.definition().title.clone();
        let options =
            serde_json::to_value(options).map_err(|error| ClientError::Input { reason: error.to_string() })?;
        self.start_with(&title, options, &run.into(), Start::default()).await
    }

    /// Starts a run of the brain with a title and records who started it.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn start_with(&self, brain: &str, options: Value, run: &RunId, start: Start) -> Result<(), ClientError> {
        let request = RunRequest { begin: Some(Begin { options, start }) };
        self.send_run(brain, run, &request).await
    }

    async fn send_run(&self, brain: &str, run: &RunId, request: &RunRequest) -> Result<(), ClientError> {
        let path = [&*names::workflow(brain), run.as_str(), "run", "send"];
        match self.ingress.call::<_, Value>(&path, request, None).await {
            // The workflow has ended, and Restate still remembers it.
            Err(ClientError::Failed { status: 409, .. }) => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// Waits until a run has ended.
    ///
    /// # Errors
    ///
    /// [`ClientError::NoService`] if there is no such run, or if it ended more than a day ago, when Restate has forgotten
    /// it; the store remembers it. Other variants of [`ClientError`].
    pub async fn outcome(&self, brain: &str, run: impl Into<RunId> + Send) -> Result<RunOutcome, ClientError> {
        let run = run.into();
        self.ingress.get(&["restate", "workflow", &names::workflow(brain), run.as_str(), "attach"]).await
    }

    /// Approves a pending call, and returns the number of the event that records it.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] if the call is not pending, also because of an earlier decision. Other variants of
    /// [`ClientError`].
    pub async fn approve(&self, brain: &str, run: &RunId, call: &Path, actor: Actor) -> Result<Seq, ClientError> {
        self.signal(brain, run, SignalKind::Approve { call: call.clone(), arguments: None }, actor).await
    }

    /// Rejects a pending call.
    ///
    /// # Errors
    ///
    /// As [`Client::approve`].
    pub async fn reject(
        &self,
        brain: &str,
        run: &RunId,
        call: &Path,
        reason: &str,
        actor: Actor,
    ) -> Result<Seq, ClientError> {
        let kind = SignalKind::Reject { call: call.clone(), reason: Some(reason.to_owned()) };
        self.signal(brain, run, kind, actor).await
    }

    /// Sends a signal to a run, and returns the number of the event that records it.
    ///
    /// # Errors
    ///
    /// As [`Client::approve`].
    pub async fn signal(&self, brain: &str, run: &RunId, kind: SignalKind, actor: Actor) -> Result<Seq, ClientError> {
        let signal = Signal { id: UuidIds.signal(), actor, kind };
        let path = [&*names::workflow(brain), run.as_str(), "signal"];
        match self.ingress.call(&path, &signal, Some(&names::signal_key(&signal.id))).await? {
            Signalled::Accepted { seq } => Ok(seq),
            Signalled::Refused { reason } => Err(ClientError::Refused { reason }),
        }
    }

    /// Sends a signal to a run without waiting for a service. The same signal id counts once.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if Restate does not accept it. The log may still refuse it later.
    pub async fn send_signal(&self, brain: &str, run: &RunId, signal: &Signal) -> Result<(), ClientError> {
        let path = [&*names::workflow(brain), run.as_str(), "signal", "send"];
        self.ingress.call::<_, Value>(&path, signal, Some(&names::signal_key(&signal.id))).await.map(drop)
    }

    /// Delivers a webhook to the run that waits for it, of any brain over the same store. The same id counts once.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] if the payload does not fit; other variants of [`ClientError`].
    pub async fn deliver(
        &self,
        brain: &str,
        id: SignalId,
        webhook: &str,
        identifier: &str,
        payload: Value,
        actor: Actor,
    ) -> Result<Delivered, ClientError> {
        let (webhook, identifier) = (webhook.to_owned(), identifier.to_owned());
        let key = names::signal_key(&id);
        let request = DeliverRequest { id, webhook, identifier, payload, actor };
        match self.ingress.call(&[&names::webhook(brain), "deliver"], &request, Some(&key)).await? {
            DeliveryOutput::To { run, seq } => Ok(Delivered::To { run, seq }),
            DeliveryOutput::Kept => Ok(Delivered::Kept),
            DeliveryOutput::Refused { reason } => Err(ClientError::Refused { reason }),
        }
    }
}
