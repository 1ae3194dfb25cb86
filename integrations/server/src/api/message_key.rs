//! Keys of repeated messages: where a message was said is stored under its key, since the conversation goes on in other runs.

use positronic_core::record::{RunId, Seq, sha256};
use positronic_core::store::StoreError;
use serde::{Deserialize, Serialize};

use super::idempotency::sweep_keys;
use crate::problem::{Problem, ProblemType};
use crate::routes::Call;

/// Where a message was said.
#[derive(Serialize, Deserialize)]
struct Said {
    at: positronic_core::record::Timestamp,
    run: RunId,
    from: Seq,
    /// The hash of the request's body.
    request: String,
}

fn kind(conversation: &str) -> String {
    format!("message_key/{conversation}")
}

/// Finds the run of an earlier request with the same key, and the event from which on its answer is followed.
pub(super) async fn said(call: &Call, conversation: &str, id: &str) -> Result<Option<(RunId, Seq)>, Problem> {
    let Some(known) = call.app.client.store().entry(&kind(conversation), id).await? else { return Ok(None) };
    let Ok(Said { run, from, request, .. }) = serde_json::from_value(known.value) else { return Ok(None) };
    if request == request_hash(call) { Ok(Some((run, from))) } else { Err(ProblemType::KeyReused.into()) }
}

/// Notes where the message of a request was said.
pub(super) async fn note(call: &Call, conversation: &str, id: &str, run: &RunId, from: Seq) -> Result<(), Problem> {
    let (store, at, kind) = (call.app.client.store(), call.app.now(), kind(conversation));
    let said = Said { at, run: run.clone(), from, request: request_hash(call) };
    let value = serde_json::to_value(said).map_err(|error| Problem::new(ProblemType::Internal).detail(error))?;
    match store.put_entry(&kind, id, &value, None).await {
        Ok(_) | Err(StoreError::EntryChanged { .. }) => sweep_keys(store, &kind, at).await,
        Err(error) => Err(error.into()),
    }
}

fn request_hash(call: &Call) -> String {
    sha256(call.value.to_string().as_bytes())
}
