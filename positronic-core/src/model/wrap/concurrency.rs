//! At most so many requests at once.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::{after, micros};
use crate::model::{DeltaSink, Model};
use crate::record::{ModelError, ModelErrorKind, ModelRequest, ModelResponse, RoutingStep, WaitReason};

/// Lets at most so many requests be under way at once, of all runs together; the others wait their turn, first come first
/// served.
///
/// A local server answers one request after the other, whatever it is sent; those that wait in it use up their time-out. Here
/// they do not: the time-outs of an adapter begin when the request is sent.
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

/// The places that several models share. Clones are the same places.
#[derive(Debug, Clone)]
pub struct Slots(Arc<Semaphore>);

impl Slots {
    /// Makes places for so many requests.
    ///
    /// # Panics
    ///
    /// For none: no request could ever be sent.
    #[must_use]
    #[track_caller]
    #[expect(clippy::panic, reason = "an author's mistake is told where it was written, before anything runs")]
    pub fn new(most: usize) -> Self {
        if most == 0 {
            panic!("at most 0 requests at once would send none; say 1 or more");
        }
        Self(Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))))
    }

    /// Waits for a place, and says for how long it did.
    async fn take(&self) -> Result<(SemaphorePermit<'_>, Option<u64>), ModelError> {
        if let Ok(place) = self.0.try_acquire() {
            return Ok((place, None));
        }
        let began = Instant::now();
        match self.0.acquire().await {
            Ok(place) => Ok((place, Some(micros(began.elapsed())))),
            // Nobody closes them.
            Err(_) => Err(ModelError::new(ModelErrorKind::BadRequest, "the places for requests are closed")),
        }
    }
}

impl<M: Model> Concurrency<M> {
    /// Lets a model have at most so many requests at once.
    ///
    /// # Panics
    ///
    /// As [`Slots::new`].
    #[must_use]
    #[track_caller]
    pub fn new(model: M, most: usize) -> Self {
        Self::sharing(model, &Slots::new(most))
    }

    /// Lets a model take places that others take as well, such as those of the same server.
    #[must_use]
    pub fn sharing(model: M, slots: &Slots) -> Self {
        Self { model, slots: slots.clone() }
    }

    async fn ask(&self, request: &ModelRequest, deltas: &dyn DeltaSink) -> Result<ModelResponse, ModelError> {
        let (_place, waited) = self.slots.take().await?;
        let outcome = self.model.call(request, deltas).await;
        let waited = waited.map(|micros| RoutingStep::Waited { reason: WaitReason::Slots, micros });
        after(waited.into_iter().collect(), outcome)
    }
}

impl<M: Model> fmt::Debug for Concurrency<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Concurrency").field("model", &self.model.name()).field("slots", &self.slots).finish()
    }
}

impl<M: Model> Model for Concurrency<M> {
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
