//! One request to a model, with its answer streamed to the readers of its run, or outside of a run to its sender.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::FutureExt as _;

use super::files::{load_files, store_made};
use crate::error::panicked;
use crate::model::{DeltaSink, Model, Piece};
use crate::record::{Delta, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Path, Seq};
use crate::runner::Runner;
use crate::runner::worker::shared::Shared;

/// Sends a request to a model, with the stored files of its messages, and checks that its answer can be recorded. The files
/// that the model made are stored. The pieces of the answer are streamed as
/// deltas that follow the events before `after`; `None` streams nothing. `through` wraps the sink of the pieces.
pub(super) async fn ask<'a>(
    shared: &'a Shared,
    model: &dyn Model,
    request: &'a ModelRequest,
    after: Option<Seq>,
    through: impl FnOnce(Box<dyn DeltaSink + 'a>) -> Box<dyn DeltaSink + 'a>,
) -> Result<ModelResponse, ModelError> {
    load_files(&*shared.runner.store, request).await?;
    let show = Show {
        shared,
        path: &request.path,
        attempt: request.attempt,
        after,
        n: AtomicU32::new(0),
        take: AtomicU32::new(0),
    };
    let show = through(Box::new(show));
    let answer = answer(&shared.runner, model, request, &*show).await?;
    store_made(shared, &answer).await?;
    Ok(answer)
}

/// Sends a request to the runner's model of its tier, outside of a run.
pub(in crate::runner) async fn ask_once(
    runner: &Runner,
    request: &ModelRequest,
    deltas: &dyn DeltaSink,
) -> Result<ModelResponse, ModelError> {
    if request.settings.in_code {
        let kind = ModelErrorKind::BadRequest;
        return Err(ModelError::new(kind, "the loop's code answers this request instead of a model"));
    }
    load_files(&*runner.store, request).await?;
    answer(runner, &**runner.model_of(request.settings.tier), request, deltas).await
}

/// Sends a request and checks that its answer can be recorded.
async fn answer(
    runner: &Runner,
    model: &dyn Model,
    request: &ModelRequest,
    deltas: &dyn DeltaSink,
) -> Result<ModelResponse, ModelError> {
    // The block also catches an adapter that panics before it returns a future.
    let answer = async { model.call(request, deltas).await };
    let answer = AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|panic| {
        let kind = ModelErrorKind::BadRequest;
        Err(ModelError::new(kind, format!("the model's adapter failed: {}", panicked(&*panic))))
    })?;
    answer.check(runner.settings.max_document_bytes).map_err(|error| {
        let kind = ModelErrorKind::Malformed;
        ModelError::new(kind, format!("the model's answer cannot be recorded: {error}"))
    })?;
    Ok(answer)
}

struct Show<'a> {
    shared: &'a Shared,
    path: &'a Path,
    attempt: u32,
    after: Option<Seq>,
    n: AtomicU32,
    take: AtomicU32,
}

impl DeltaSink for Show<'_> {
    fn piece(&self, piece: Piece) {
        // Counts without readers, too: a reader that joins later sees the gap.
        let n = self.n.fetch_add(1, Ordering::Relaxed);
        let Some(after) = self.after else { return };
        let delta = Delta {
            path: self.path.clone(),
            attempt: self.attempt,
            generation: self.take.load(Ordering::Relaxed),
            part: piece.part,
            kind: piece.kind,
            call: piece.call,
            tool: piece.tool,
            n,
            text: piece.text,
        };
        self.shared.live.send(after, &delta);
    }

    fn restart(&self) {
        if self.n.swap(0, Ordering::Relaxed) > 0 {
            self.take.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn has_reader(&self) -> bool {
        self.after.is_some() && self.shared.live.is_read()
    }
}
