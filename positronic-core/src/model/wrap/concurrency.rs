//! Concurrency limit for model requests.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::{after, wraps};
use crate::model::{DeltaSink, Model};
use crate::record::encoding::micros::whole;
use crate::record::{ModelError, ModelErrorKind, ModelRequest, ModelResponse, RoutingStep, WaitReason};

/// Limits the number of concurrent requests, over all runs; further requests wait in order of arrival.
///
/// A local server processes requests one after the other, and requests that wait in it may time out. Here they do not: an
/// adapter's timeouts begin when the request is sent.
///
/// ```
/// # use positronic_core::model::scripted::{Reply, ScriptedModel};
/// # let local = ScriptedModel::from_fn(|_| Reply::text("Yes."));
/// use positronic_core::model::wrap::Concurrency;
///
/// let model = Concurrency::new(local, 4);
/// ```
pub struct Concurrency<M> {
    model: M,
    slots: Slots,
}

/// The slots of several models with a common limit. Clones share them.
#[derive(Debug, Clone)]
pub struct Slots(Arc<Semaphore>);

impl Slots {
    /// Creates `most` slots.
    ///
    /// # Panics
    ///
    /// If `most` is 0: no request could ever be sent.
    #[must_use]
    #[track_caller]
    #[expect(clippy::panic, reason = "an author's mistake, reported at its source before anything runs")]
    pub fn new(most: usize) -> Self {
        if most == 0 {
            panic!("a limit of 0 concurrent requests would block every request; use 1 or more");
        }
        Self(Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))))
    }

    /// Waits for a slot, and returns how long it waited.
    async fn take(&self) -> Result<(SemaphorePermit<'_>, Option<Duration>), ModelError> {
        if let Ok(slot) = self.0.try_acquire() {
            return Ok((slot, None));
        }
        let began = Instant::now();
        match self.0.acquire().await {
            Ok(slot) => Ok((slot, Some(whole(began.elapsed())))),
            // The semaphore is never closed.
            Err(_) => Err(ModelError::new(ModelErrorKind::BadRequest, "the slots for requests are closed")),
        }
    }
}

impl<M: Model> Concurrency<M> {
    /// Limits a model to `most` concurrent requests.
    ///
    /// # Panics
    ///
    /// See [`Slots::new`].
    #[must_use]
    #[track_caller]
    pub fn new(model: M, most: usize) -> Self {
        Self::sharing(model, &Slots::new(most))
    }

    /// Limits a model by slots that it shares with others, such as those of the same server.
    #[must_use]
    pub fn sharing(model: M, slots: &Slots) -> Self {
        Self { model, slots: slots.clone() }
    }

    async fn ask(&self, request: &ModelRequest, deltas: &dyn DeltaSink) -> Result<ModelResponse, ModelError> {
        let (_slot, waited) = self.slots.take().await?;
        let outcome = self.model.call(request, deltas).await;
        let waited = waited.map(|time| RoutingStep::Waited { reason: WaitReason::Slots, time });
        after(waited.into_iter().collect(), outcome)
    }
}

wraps!(Concurrency, slots: slots);
