//! Contexts of spans for the author's code, to propagate them to other services.

use std::sync::Arc;

use opentelemetry::Context;
use opentelemetry::trace::TraceContextExt as _;
use positronic_core::record::{Path, RunId};

use super::Traces;
use crate::monitor::Monitor;
use crate::spans::{SpanRef, TraceId};

/// Finds the span in which the author's code runs, so that a tool's requests to other services belong to its trace. Clones
/// are cheap; give one to the brain's services.
///
/// ```no_run
/// use opentelemetry::trace::FutureExt as _;
/// use positronic_core::prelude::*;
/// use positronic_opentelemetry::traces::SpanContexts;
///
/// struct Shop {
///     contexts: SpanContexts,
/// }
///
/// async fn order(shop: &Shop, cx: &ToolContext<(), (), Shop>) {
///     // For libraries that use OpenTelemetry:
///     let span = shop.contexts.of(cx.run_id(), cx.path()).await;
///     async { /* requests */ }.with_context(span).await;
///     // For any other HTTP client:
///     for (name, value) in shop.contexts.headers(cx.run_id(), cx.path()).await {
///         println!("{name}: {value}");
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct SpanContexts {
    monitor: Monitor,
    traces: Arc<Traces>,
}

impl SpanContexts {
    /// Creates a finder for the runs of a monitor whose spans `traces` exports.
    #[must_use]
    pub const fn new(monitor: Monitor, traces: Arc<Traces>) -> Self {
        Self { monitor, traces }
    }

    /// Returns the context with the span of the tool, the step or the loop at a path; without a span if this process does not
    /// work on the run. It takes about a millisecond, because the monitor first reads that the work has begun.
    pub async fn of(&self, run: &RunId, path: &Path) -> Context {
        match self.monitor.current(run, path).await {
            Some((segment, span)) => {
                Context::current().with_remote_span_context(self.traces.context_of(&segment, span))
            }
            None => Context::current(),
        }
    }

    /// Returns the headers `traceparent` and `tracestate` for a request to another service; none without a span.
    pub async fn headers(&self, run: &RunId, path: &Path) -> Vec<(&'static str, String)> {
        let Some((segment, span)) = self.monitor.current(run, path).await else { return Vec::new() };
        let context = self.traces.context_of(&segment, span);
        let trace = TraceId(u128::from_be_bytes(context.trace_id().to_bytes()));
        let own = SpanRef { trace, span, sampled: context.is_sampled(), state: None };
        let mut headers = vec![("traceparent", own.traceparent())];
        let state = context.trace_state().header();
        if !state.is_empty() {
            headers.push(("tracestate", state));
        }
        headers
    }
}
