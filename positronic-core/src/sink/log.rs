//! A sink that tells `tracing`.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::{EventSink, SinkError};
use crate::record::{Event, EventKind, RunId};

/// Tells `tracing` of each event: its name, path and number at the level `info`, failures at `warn`. What models and
/// tools say is left out, since logs travel further than the people who may read it.
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
            EventKind::LoopModelRetry { error, attempt, .. } => {
                tracing::warn!(%run, %seq, %path, event = name, %error, attempt, "the model is asked again");
            }
            EventKind::LoopAnswerRefused { attempt, .. } => {
                tracing::warn!(%run, %seq, %path, event = name, attempt, "the answer is refused");
            }
            EventKind::StepRetry { attempt, .. } | EventKind::LoopToolRetry { attempt, .. } => {
                tracing::warn!(%run, %seq, %path, event = name, attempt, "tried again");
            }
            _ => tracing::info!(%run, %seq, %path, event = name),
        }
        Box::pin(std::future::ready(Ok(())))
    }
}
