//! Readiness probe: whether the store can be read and written.

use std::time::Duration;

use positronic_core::store::{EventStore, RunFilter, StoreError};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The entry that a check writes; all servers of a store share it.
const KIND: &str = "readiness";
const KEY: &str = "probe";
/// How long the outcome of a check is reused, since callers without authentication may ask and each check writes.
const VALID_FOR: Duration = Duration::from_secs(5);
/// How long a failure is reused, so that a repaired store is ready soon.
const FAILURE_VALID_FOR: Duration = Duration::from_secs(1);

/// The last check of the store. Requests during a check wait for it.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<(Instant, Result<(), StoreError>)>>);

impl Readiness {
    /// Returns the outcome of the last check, or checks again if it is old.
    pub(crate) async fn check(&self, store: &dyn EventStore) -> Result<(), StoreError> {
        let mut last = self.0.lock().await;
        if let Some((at, outcome)) = &*last
            && at.elapsed() < if outcome.is_ok() { VALID_FOR } else { FAILURE_VALID_FOR }
        {
            return outcome.clone();
        }
        let outcome = probe(store).await;
        if let Err(error) = &outcome {
            tracing::warn!(%error, "not ready: the store cannot be used");
        }
        *last = Some((Instant::now(), outcome.clone()));
        outcome
    }
}

async fn probe(store: &dyn EventStore) -> Result<(), StoreError> {
    store.runs(&RunFilter::builder().limit(1).build()).await?;
    let known = store.entry(KIND, KEY).await?.map(|entry| entry.revision);
    match store.put_entry(KIND, KEY, &Value::Null, known).await {
        // Another server has written it meanwhile.
        Ok(_) | Err(StoreError::EntryChanged { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
