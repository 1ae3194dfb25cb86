//! Keys of messages in conversations. The run of a message is stored under its key, because a repeated request may come when the
//! conversation has further runs.

use positronic_core::record::{RunId, Seq, Timestamp};
use positronic_core::store::StoreError;
use serde::{Deserialize, Serialize};

use crate::api::idempotency::{counts, sweep_keys};
use crate::app::App;
use crate::problem::{Problem, ProblemType};

/// A message that was sent under a key.
#[derive(Serialize, Deserialize)]
struct KeyedMessage {
    at: Timestamp,
    run: RunId,
    /// The event from which on its answer is followed.
    from: Seq,
    /// The hash of the request.
    request: String,
}

fn kind(conversation: &str) -> String {
    format!("message_key/{conversation}")
}

/// Finds the run that an earlier request with the same key has sent its message to, and the event from which on its answer is
/// followed.
pub(crate) async fn find(
    app: &App,
    conversation: &str,
    key: &str,
    request: &str,
) -> Result<Option<(RunId, Seq)>, Problem> {
    let (store, kind) = (app.client.store(), kind(conversation));
    let Some(known) = store.entry(&kind, key).await? else { return Ok(None) };
    if !counts(&known, app.now()) {
        store.remove_entry(&kind, key, known.revision).await?;
        return Ok(None);
    }
    match serde_json::from_value(known.value) {
        Ok(KeyedMessage { run, from, request: first, .. }) if first == request => Ok(Some((run, from))),
        Ok(_) => Err(ProblemType::KeyReused.into()),
        Err(error) => Err(Problem::new(ProblemType::Internal).detail(error)),
    }
}

/// Stores the run of a message under its key.
pub(crate) async fn store(
    app: &App,
    conversation: &str,
    key: &str,
    request: String,
    (run, from): (&RunId, Seq),
) -> Result<(), Problem> {
    let (store, at, kind) = (app.client.store(), app.now(), kind(conversation));
    let value = serde_json::to_value(KeyedMessage { at, run: run.clone(), from, request });
    let value = value.map_err(|error| Problem::new(ProblemType::Internal).detail(error))?;
    match store.put_entry(&kind, key, &value, None).await {
        Ok(_) | Err(StoreError::EntryChanged { .. }) => sweep_keys(store, &kind, key, at).await,
        Err(error) => Err(error.into()),
    }
}
