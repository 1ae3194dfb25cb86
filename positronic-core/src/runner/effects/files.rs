//! Files of a run's requests and answers: loaded from the event store, and stored in it.

use std::sync::Arc;

use backon::Retryable as _;

use crate::record::{Attachment, Message, ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use crate::runner::clock::pauses;
use crate::runner::worker::shared::Shared;
use crate::store::{EventStore, StoreError};

/// Stores a file and returns its hash, as often as the append that would fail next.
pub(super) async fn store_file(shared: &Shared, bytes: &[u8]) -> Result<String, StoreError> {
    let now = shared.now();
    (|| shared.runner.store.put_blob(bytes.to_vec(), now)).retry(pauses()).when(is_temporary).await
}

/// Stores the files that a model made.
pub(super) async fn store_made(shared: &Shared, answer: &ModelResponse) -> Result<(), ModelError> {
    for file in answer.files() {
        if let Some(bytes) = file.bytes() {
            store_file(shared, bytes).await.map_err(|error| failed("store", file, &error))?;
        }
    }
    Ok(())
}

/// Loads the stored files of a request's messages.
pub(super) async fn load_files(store: &dyn EventStore, request: &ModelRequest) -> Result<(), ModelError> {
    if !request.messages.has_files() {
        return Ok(());
    }
    // Each file, and whether the request is useless without it: of the others, the model gets a line.
    let files: Vec<(Attachment, bool)> = {
        let messages = request.messages.read();
        let of_message = |message: &Message| {
            let is_needed = matches!(message, Message::User { .. });
            message.files().map(move |file| (file.clone(), is_needed)).collect::<Vec<_>>()
        };
        messages.iter().flat_map(|entry| of_message(&entry.message)).collect()
    };
    for (file, is_needed) in files {
        let Some(hash) = file.file().blob().filter(|_| file.bytes().is_none()) else { continue };
        match (|| store.blob(hash)).retry(pauses()).when(is_temporary).await {
            Ok(Some(bytes)) => file.load(Arc::from(bytes)),
            Ok(None) if !is_needed => {}
            Ok(None) => {
                let sentence = format!("cannot read the file `{}`: the event store does not have it", file.file().name);
                return Err(ModelError::new(ModelErrorKind::BadRequest, sentence));
            }
            Err(error) => return Err(failed("read", &file, &error)),
        }
    }
    Ok(())
}

const fn is_temporary(error: &StoreError) -> bool {
    matches!(error, StoreError::Failed { .. } | StoreError::Unknown { .. })
}

/// Returns the failure of a request whose files the store cannot read or write. A later try can succeed if the store recovers.
fn failed(verb: &str, file: &Attachment, error: &StoreError) -> ModelError {
    let kind = if is_temporary(error) { ModelErrorKind::Server } else { ModelErrorKind::BadRequest };
    ModelError::new(kind, format!("cannot {verb} the file `{}`: {error}", file.file().name))
}
