//! Rate limiter for model requests.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Mutex as Gate, Notify};
use tokio::time::Instant;

use super::rate_limit_window::{Ceiling, Window};
use super::{after, estimate_tokens, wraps};
use crate::model::{DeltaSink, Model};
use crate::record::encoding::micros::whole;
use crate::record::{ModelError, ModelErrorKind, ModelRequest, ModelResponse, RoutingStep, WaitReason};

/// Limits the requests and tokens per minute, over all runs; further requests wait in order of arrival.
///
/// ```
/// # use positronic_core::model::scripted::{Reply, ScriptedModel};
/// # let model = ScriptedModel::from_fn(|_| Reply::text("Yes."));
/// use positronic_core::model::wrap::{RateLimit, RateLimits};
///
/// let model = RateLimit::new(model, RateLimits::builder().requests(500).tokens(200_000).build());
/// ```
///
/// **Tokens** are estimated before a request is sent ([`estimate_tokens`], plus the answer's limit or
/// [`RateLimits::answer`]), and corrected to the real usage after the answer. A failed request keeps its estimate, since its
/// usage is unknown; one that is dropped while it waits does not count. A single request that exceeds the limit of a minute
/// is sent alone.
///
/// **A provider's requested wait** (`Retry-After`, with a rate limit or an overloaded server) delays the requests of all runs.
///
/// **A wait that is too long** ([`RateLimits::max_wait`]) fails as a rate limit: a [`Fallback`](super::Fallback)
/// around it asks the next model, and without one the runner retries or the loop fails instead of blocking for hours. The
/// next request in line knows its wait, and fails at once; those behind it fail when their own wait ends.
///
/// The minute is a sliding window, so no 60 seconds exceed the limits. It is per process: divide by the number of processes.
pub struct RateLimit<M> {
    model: M,
    pace: Pace,
}

/// Limits per minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct RateLimits {
    /// The number of requests; unlimited if not set.
    #[builder(default, setter(strip_option))]
    pub requests: Option<u32>,
    /// The number of tokens, of requests and answers together; unlimited if not set.
    #[builder(default, setter(strip_option))]
    pub tokens: Option<u64>,
    /// The estimated tokens of an answer whose settings have no limit; 1,000.
    #[builder(default = 1000)]
    pub answer: u32,
    /// How long a request waits at most; 10 minutes.
    #[builder(default = Duration::from_mins(10))]
    pub max_wait: Duration,
}

/// The window of several models with common limits. Clones share it.
#[derive(Debug, Clone)]
pub struct Pace(Arc<Minute>);

#[derive(Debug)]
struct Minute {
    limits: RateLimits,
    began: Instant,
    window: Mutex<Window>,
    /// The lock holder is the next request to be sent; later ones wait for the lock in order.
    gate: Gate<()>,
    changed: Notify,
}

/// The permission to send a request.
struct Admission {
    id: u64,
    waited: Option<RoutingStep>,
}

impl Pace {
    /// Creates an empty window.
    ///
    /// # Panics
    ///
    /// If a limit is 0: no request could ever be sent.
    #[must_use]
    #[track_caller]
    #[expect(clippy::panic, reason = "an author's mistake, reported at its source before anything runs")]
    pub fn new(limits: RateLimits) -> Self {
        if limits.requests == Some(0) || limits.tokens == Some(0) {
            panic!("a limit of 0 per minute would block every request; use 1 or more, or omit the limit");
        }
        let (window, gate, changed) = (Mutex::default(), Gate::new(()), Notify::new());
        Self(Arc::new(Minute { limits, began: Instant::now(), window, gate, changed }))
    }

    /// Waits until a request of so many tokens may be sent, and counts it.
    async fn admit(&self, tokens: u64) -> Result<Admission, ModelError> {
        let minute = &*self.0;
        let arrived = Instant::now();
        let deadline = arrived.checked_add(minute.limits.max_wait);
        let entering = minute.gate.lock();
        let _first = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, entering).await.map_err(|_| minute.too_long(None))?,
            None => entering.await,
        };
        let most = Ceiling { requests: minute.limits.requests, tokens: minute.limits.tokens };
        let mut reason = None;
        loop {
            let admitted = minute.window.lock().admit(minute.began.elapsed(), tokens, most);
            let blocked = match admitted {
                Ok(id) => {
                    let time = whole(arrived.elapsed());
                    // It waited behind requests that were blocked for the same reason.
                    let reason = reason.or((time > Duration::from_millis(1)).then_some(WaitReason::Requests));
                    return Ok(Admission { id, waited: reason.map(|reason| RoutingStep::Waited { reason, time }) });
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

    fn record_usage(&self, id: u64, outcome: &Result<ModelResponse, ModelError>) {
        let minute = &*self.0;
        match outcome {
            Ok(response) if response.metadata.usage.total() > 0 => {
                minute.window.lock().correct(id, response.metadata.usage.total());
            }
            Err(error) => {
                let asks = matches!(error.kind, ModelErrorKind::RateLimited | ModelErrorKind::Server);
                let Some(wait) = error.retry_after.filter(|_| asks) else { return };
                minute.window.lock().close(minute.began.elapsed().saturating_add(wait));
            }
            Ok(_) => return,
        }
        minute.changed.notify_one();
    }
}

impl Minute {
    fn too_long(&self, wait: Option<Duration>) -> ModelError {
        let max_wait = self.limits.max_wait;
        let sentence = format!("rate limit reached: the request would wait for more than {max_wait:?}");
        ModelError { retry_after: wait, ..ModelError::new(ModelErrorKind::RateLimited, sentence) }
    }
}

impl<M: Model> RateLimit<M> {
    /// Limits a model.
    ///
    /// # Panics
    ///
    /// See [`Pace::new`].
    #[must_use]
    #[track_caller]
    pub fn new(model: M, limits: RateLimits) -> Self {
        Self::sharing(model, &Pace::new(limits))
    }

    /// Limits a model together with others, such as those of the same account.
    #[must_use]
    pub fn sharing(model: M, pace: &Pace) -> Self {
        Self { model, pace: pace.clone() }
    }

    async fn ask(&self, request: &ModelRequest, deltas: &dyn DeltaSink) -> Result<ModelResponse, ModelError> {
        let limits = &self.pace.0.limits;
        let answer = u64::from(request.settings.max_output_tokens.unwrap_or(limits.answer));
        let tokens = limits.tokens.map_or(0, |_| estimate_tokens(request).saturating_add(answer));
        let admission = self.pace.admit(tokens).await?;
        let outcome = self.model.call(request, deltas).await;
        self.pace.record_usage(admission.id, &outcome);
        after(admission.waited.into_iter().collect(), outcome)
    }
}

wraps!(RateLimit, limits: pace.0.limits);
