//! A sink that logs events to `tracing`.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::{EventSink, SinkError};
use crate::record::{Event, EventKind, RunId};

/// Logs each event to `tracing`: its name, path and number at level `info`, failures at `warn`. It omits the content of models
/// and tools, since logs may be read by people without access to it.
#[derive(Debug, Clone, Copy, Default)]
pub struct TracingSink;

impl EventSink for TracingSink {
    fn name(&self) -> &'static str {
        "tracing"
    }

    fn event<'a>(&'a self, run: &'a RunId, event: &'a Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>> {
        let (name, path, seq) = (event.kind.name(), &event.path, event.seq);
        match &event.kind {
            EventKind::BrainError(failure) => {
                tracing::warn!(%run, %seq, %path, event = name, error = %failure, "the brain failed");
            }
            EventKind::UndoFailed { message } => {
                tracing::warn!(%run, %seq, %path, event = name, error = %message, "a stage was not undone");
            }
            EventKind::LoopModelRetry { error, attempt, .. } => {
                tracing::warn!(%run, %seq, %path, event = name, %error, attempt, "retrying the model request");
            }
            EventKind::LoopAnswerRefused { attempt, .. } => {
                tracing::warn!(%run, %seq, %path, event = name, attempt, "rejected the answer");
            }
            EventKind::StepRetry { attempt, .. } | EventKind::LoopToolRetry { attempt, .. } => {
                tracing::warn!(%run, %seq, %path, event = name, attempt, "retrying");
            }
            _ => tracing::info!(%run, %seq, %path, event = name),
        }
        Box::pin(std::future::ready(Ok(())))
    }
}
