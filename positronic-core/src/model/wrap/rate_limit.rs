//! At most so many requests and tokens a minute.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::{Mutex as Gate, Notify};
use tokio::time::Instant;

use super::window::{Most, Window};
use super::{after, estimate_tokens, lock, micros};
use crate::model::{DeltaSink, Model};
use crate::record::{ModelError, ModelErrorKind, ModelRequest, ModelResponse, RoutingStep, WaitReason};

/// Sends a model at most so many requests and tokens in any minute, of all runs together; the others wait their turn, first
/// come first served.
///
/// ```
/// # use positronic_core::model::scripted::{Reply, ScriptedModel};
/// # let model = ScriptedModel::from_fn(|_| Reply::text("Yes."));
/// use positronic_core::model::wrap::{RateLimit, RateLimits};
///
/// let model = RateLimit::new(model, RateLimits::builder().requests(500).tokens(200_000).build());
/// ```
///
/// **Tokens** are estimated before a request is sent ([`estimate_tokens`], and the answer as long as its settings allow or
/// [`RateLimits::answer`] says), and counted as they were used once the answer is there. A request that failed goes on to count as
/// it was estimated, since nobody says what it used; one that is dropped while it waits counts for nothing. A single request
/// that is larger than a minute's tokens is sent alone.
///
/// **What a provider asks for** (`Retry-After`, with too many requests or an overloaded server) holds back the requests of all runs, not only
/// the one that was refused.
///
/// **A wait that is too long** ([`RateLimits::patience`]) fails, as too many requests: a [`Fallback`](super::Fallback)
/// around it asks the next model, and without one the runner tries again or the loop fails, rather than to stand still for hours. The
/// request whose turn is next knows how long it has to wait, and fails at once; those behind it fail when their patience ends.
///
/// The minute is a sliding one, so no 60 seconds see more than the limits. It is this process's: divide by the number of processes.
pub struct RateLimit<M> {
    model: M,
    pace: Pace,
}

/// How much may be sent in any minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, typed_builder::TypedBuilder)]
pub struct RateLimits {
    /// How many requests; any number where it is not given.
    #[builder(default, setter(strip_option))]
    pub requests: Option<u32>,
    /// How many tokens, of requests and answers together; any number where it is not given.
    #[builder(default, setter(strip_option))]
    pub tokens: Option<u64>,
    /// How many tokens an answer is thought to have whose settings give no limit; 1,000.
    #[builder(default = 1000)]
    pub answer: u32,
    /// How long a request waits at most; 10 minutes.
    #[builder(default = Duration::from_mins(10))]
    pub patience: Duration,
}

/// The minute that several models share. Clones are the same minute.
#[derive(Debug, Clone)]
pub struct Pace(Arc<Minute>);

#[derive(Debug)]
struct Minute {
    limits: RateLimits,
    began: Instant,
    window: Mutex<Window>,
    /// Whoever holds it is the next to be sent; those after wait for it in order.
    gate: Gate<()>,
    changed: Notify,
}

/// A request that may be sent.
struct Turn {
    id: u64,
    waited: Option<RoutingStep>,
}

impl Pace {
    /// Makes a minute in which nothing was sent yet.
    ///
    /// # Panics
    ///
    /// For a limit of 0: no request could ever be sent.
    #[must_use]
    #[track_caller]
    #[expect(clippy::panic, reason = "an author's mistake is told where it was written, before anything runs")]
    pub fn new(limits: RateLimits) -> Self {
        if limits.requests == Some(0) || limits.tokens == Some(0) {
            panic!("a limit of 0 a minute would send nothing; say 1 or more, or leave it out");
        }
        let (window, gate, changed) = (Mutex::default(), Gate::new(()), Notify::new());
        Self(Arc::new(Minute { limits, began: Instant::now(), window, gate, changed }))
    }

    /// Waits until a request of so many tokens may be sent, and counts it then.
    async fn turn(&self, tokens: u64) -> Result<Turn, ModelError> {
        let minute = &*self.0;
        let came = Instant::now();
        let deadline = came.checked_add(minute.limits.patience);
        let entering = minute.gate.lock();
        let _first = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, entering).await.map_err(|_| minute.too_long(None))?,
            None => entering.await,
        };
        let most = Most { requests: minute.limits.requests, tokens: minute.limits.tokens };
        let mut reason = None;
        loop {
            let admitted = lock(&minute.window).admit(minute.began.elapsed(), tokens, most);
            let blocked = match admitted {
                Ok(id) => {
                    let micros = micros(came.elapsed());
                    // Those before it have waited for the same.
                    let reason = reason.or((micros > 1000).then_some(WaitReason::Requests));
                    return Ok(Turn { id, waited: reason.map(|reason| RoutingStep::Waited { reason, micros }) });
                }
                Err(blocked) => blocked,
            };
            reason = Some(blocked.reason);
            let until = minute.began.checked_add(blocked.until);
            let Some(until) = until.filter(|until| deadline.is_none_or(|deadline| *until <= deadline)) else {
                return Err(minute.too_long(Some(blocked.until.saturating_sub(minute.began.elapsed()))));
            };
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                () = minute.changed.notified() => {}
            }
        }
    }

    fn settle(&self, id: u64, outcome: &Result<ModelResponse, ModelError>) {
        let minute = &*self.0;
        match outcome {
            Ok(response) if response.metadata.usage.total() > 0 => {
                lock(&minute.window).correct(id, response.metadata.usage.total());
            }
            Err(error) => {
                let asks = matches!(error.kind, ModelErrorKind::RateLimited | ModelErrorKind::Server);
                let Some(wait) = error.wait().filter(|_| asks) else { return };
                lock(&minute.window).close(minute.began.elapsed().saturating_add(wait));
            }
            Ok(_) => return,
        }
        minute.changed.notify_one();
    }
}

impl Minute {
    fn too_long(&self, wait: Option<Duration>) -> ModelError {
        let patience = self.limits.patience;
        let sentence = format!(
            "the request would wait for its limit of requests or tokens a minute longer than {patience:?}, which is as long as it may"
        );
        let retry_after = wait.map(micros);
        ModelError { retry_after, ..ModelError::new(ModelErrorKind::RateLimited, sentence) }
    }
}

impl<M: Model> RateLimit<M> {
    /// Limits what a model is sent.
    ///
    /// # Panics
    ///
    /// As [`Pace::new`].
    #[must_use]
    #[track_caller]
    pub fn new(model: M, limits: RateLimits) -> Self {
        Self::sharing(model, &Pace::new(limits))
    }

    /// Limits what a model is sent together with others, such as those of the same account.
    #[must_use]
    pub fn sharing(model: M, pace: &Pace) -> Self {
        Self { model, pace: pace.clone() }
    }

    async fn ask(&self, request: &ModelRequest, deltas: &dyn DeltaSink) -> Result<ModelResponse, ModelError> {
        let limits = &self.pace.0.limits;
        let answer = u64::from(request.settings.max_output_tokens.unwrap_or(limits.answer));
        let tokens = limits.tokens.map_or(0, |_| estimate_tokens(request).saturating_add(answer));
        let turn = self.pace.turn(tokens).await?;
        let outcome = self.model.call(request, deltas).await;
        self.pace.settle(turn.id, &outcome);
        after(turn.waited.into_iter().collect(), outcome)
    }
}

impl<M: Model> fmt::Debug for RateLimit<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("model", &self.model.name()).field("limits", &self.pace.0.limits).finish()
    }
}

impl<M: Model> Model for RateLimit<M> {
    fn name(&self) -> String {
        self.model.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        self.ask(request, deltas).boxed()
    }

    fn inner(&self) -> Option<&dyn Model> {
        Some(&self.model)
    }

    fn wire(&self, request: &ModelRequest) -> String {
        self.model.wire(request)
    }
}
