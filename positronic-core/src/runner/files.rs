//! Files of a run's requests and answers: loaded from the event store, and stored in it.

use std::sync::Arc;

use backon::Retryable as _;

use super::clock::pauses;
use super::shared::Shared;
use crate::record::{Attachment, ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use crate::store::StoreError;

/// Stores a file and returns its hash, as often as the append that would fail next.
pub(super) async fn store_file(shared: &Shared, bytes: &[u8]) -> Result<String, StoreError> {
    let now = shared.now();
    (|| shared.runner.store.put_blob(bytes.to_vec(), now)).retry(pauses()).when(is_temporary).await
}

/// Stores the files that a model made.
pub(super) async fn store_made(shared: &Shared, answer: &ModelResponse) -> Result<(), ModelError> {
    for file in answer.files() {
        if let Some(bytes) = file.bytes() {
            store_file(shared, bytes).await.map_err(|error| failed("store", file, &error.to_string()))?;
        }
    }
    Ok(())
}

/// Loads the stored files of a request's messages.
pub(super) async fn load_files(shared: &Shared, request: &ModelRequest) -> Result<(), ModelError> {
    if !request.messages.has_files() {
        return Ok(());
    }
    let is_missing = |file: &&Attachment| file.bytes().is_none() && file.file().blob().is_some();
    let missing: Vec<Attachment> = {
        let messages = request.messages.read();
        messages.iter().flat_map(|entry| entry.message.files()).filter(is_missing).cloned().collect()
    };
    for file in missing {
        let Some(hash) = file.file().blob() else { continue };
        let loaded = (|| shared.runner.store.blob(hash)).retry(pauses()).when(is_temporary).await;
        let bytes = match loaded {
            Ok(Some(bytes)) => Arc::from(bytes),
            Ok(None) => return Err(failed("read", &file, "the event store does not have it")),
            Err(error) => return Err(failed("read", &file, &error.to_string())),
        };
        let messages = request.messages.read();
        let same = messages.iter().flat_map(|entry| entry.message.files()).filter(|other| **other == file);
        same.for_each(|other| other.load(Arc::clone(&bytes)));
    }
    Ok(())
}

const fn is_temporary(error: &StoreError) -> bool {
    matches!(error, StoreError::Failed { .. })
}

fn failed(verb: &str, file: &Attachment, reason: &str) -> ModelError {
    ModelError::new(ModelErrorKind::BadRequest, format!("cannot {verb} the file `{}`: {reason}", file.file().name))
}
