//! A store that fails on demand.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use positronic_core::record::RunId;
use positronic_core::store::{Append, BoxFuture, EventStore, StoreError, StoreWrapper};

/// A fault of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It writes nothing and fails.
    Refused(StoreError),
    /// It writes everything and fails, as if the reply were lost.
    Unanswered(StoreError),
    /// It takes this long and succeeds.
    Slow(Duration),
    /// It writes everything at once, and the reply takes this long.
    Late(Duration),
}

type Plan = Arc<dyn Fn(&RunId, &Append) -> Option<Fault> + Send + Sync>;
type Failures = Arc<dyn Fn(&'static str) -> Option<StoreError> + Send + Sync>;
type Pauses = Arc<dyn Fn(&'static str) -> Option<Duration> + Send + Sync>;

/// Wraps a store, whose methods fail or take long on demand.
///
/// ```
/// use positronic_core::store::{MemoryStore, StoreError};
/// use positronic_store_suite::{Fault, FaultyStore};
///
/// let full = StoreError::Failed { message: "the disk is full".to_owned() };
/// let store = FaultyStore::new(MemoryStore::new(), move |_, append| {
///     (append.expected.0 >= 10).then(|| Fault::Refused(full.clone()))
/// });
/// ```
#[derive(Clone)]
pub struct FaultyStore<S> {
    inner: S,
    plan: Plan,
    failures: Failures,
    pauses: Pauses,
}

impl<S: EventStore> FaultyStore<S> {
    /// Wraps a store; `plan` chooses the fault of each append.
    pub fn new(inner: S, plan: impl Fn(&RunId, &Append) -> Option<Fault> + Send + Sync + 'static) -> Self {
        Self { inner, plan: Arc::new(plan), failures: Arc::new(|_| None), pauses: Arc::new(|_| None) }
    }

    /// Makes the other methods fail, too: `failures` gets the name of the method, such as `"mail"`.
    #[must_use]
    pub fn reading(self, failures: impl Fn(&'static str) -> Option<StoreError> + Send + Sync + 'static) -> Self {
        Self { failures: Arc::new(failures), ..self }
    }

    /// Delays the answers of the other methods: `pauses` gets the name of the method.
    #[must_use]
    pub fn slowly(self, pauses: impl Fn(&'static str) -> Option<Duration> + Send + Sync + 'static) -> Self {
        Self { pauses: Arc::new(pauses), ..self }
    }
}

impl<S: EventStore> StoreWrapper for FaultyStore<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    fn intercept<'a, T: Send + 'a>(
        &'a self,
        method: &'static str,
        operation: impl FnOnce(&'a S) -> BoxFuture<'a, Result<T, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        let answer = match (self.failures)(method) {
            Some(error) => Box::pin(std::future::ready(Err(error))),
            None => operation(&self.inner),
        };
        match (self.pauses)(method) {
            Some(pause) => Box::pin(async move {
                let answer = answer.await;
                tokio::time::sleep(pause).await;
                answer
            }),
            None => answer,
        }
    }

    fn append<'a>(&'a self, run: &'a RunId, append: Append) -> BoxFuture<'a, Result<(), StoreError>> {
        match (self.plan)(run, &append) {
            None => self.inner.append(run, append),
            Some(Fault::Refused(error)) => Box::pin(std::future::ready(Err(error))),
            Some(Fault::Unanswered(error)) => Box::pin(async move {
                self.inner.append(run, append).await?;
                Err(error)
            }),
            Some(Fault::Late(pause)) => Box::pin(async move {
                self.inner.append(run, append).await?;
                tokio::time::sleep(pause).await;
                Ok(())
            }),
            Some(Fault::Slow(pause)) => Box::pin(async move {
                tokio::time::sleep(pause).await;
                self.inner.append(run, append).await
            }),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for FaultyStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FaultyStore").field(&self.inner).finish()
    }
}
