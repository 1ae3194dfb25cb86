//! Export of spans as OpenTelemetry traces, with the names of the semantic conventions for generative AI.

mod attributes;
mod content;
mod contexts;
mod names;

use std::fmt;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    Link, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Context, InstrumentationScope, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, Sampler, SamplingDecision, ShouldSample, SpanData, SpanEvents, SpanExporter, SpanLinks,
    SpanProcessor,
};
use positronic_core::record::Timestamp;

use crate::monitor::Observer;
use crate::spans::{Operation, Outcome, Segment, Span, SpanRef};

pub use contexts::SpanContexts;

/// Exports spans. Ids, names and times are those of the log, so the same log gives the same spans in every process.
///
/// The messages to and from models, the arguments and results of tools, and the texts of errors are left out, unless
/// [`with_content`](Self::with_content) is called: those who read traces are seldom those who may read conversations.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use opentelemetry_sdk::trace::SpanExporter;
/// use positronic_core::store::EventStore;
/// use positronic_opentelemetry::Monitor;
/// use positronic_opentelemetry::traces::Traces;
///
/// fn monitor(store: impl EventStore, exporter: impl SpanExporter + 'static) -> (Monitor, Arc<Traces>) {
///     let traces = Arc::new(Traces::new(exporter));
///     // Before the process ends: `traces.shutdown()`.
///     (Monitor::new(store).observer(Arc::clone(&traces)), traces)
/// }
/// ```
pub struct Traces {
    processor: Box<dyn SpanProcessor>,
    sampler: Box<dyn ShouldSample>,
    scope: InstrumentationScope,
    with_content: bool,
}

impl Traces {
    /// Creates an exporter in batches, which a thread of its own sends; the variables `OTEL_BSP_…` set their sizes. The
    /// resource is the default one: `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`.
    pub fn new(exporter: impl SpanExporter + 'static) -> Self {
        Self::with_processor(BatchSpanProcessor::builder(exporter).build())
    }

    /// Creates an exporter with a processor, which gets spans that have ended. [`SpanProcessor::on_start`] is not called.
    pub fn with_processor(processor: impl SpanProcessor + 'static) -> Self {
        let scope = InstrumentationScope::builder("positronic").with_version(env!("CARGO_PKG_VERSION")).build();
        let sampler = Box::new(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)));
        let traces = Self { processor: Box::new(processor), sampler, scope, with_content: false };
        traces.resource(&Resource::builder().build())
    }

    /// Sets the resource: the service that the spans are of.
    #[must_use]
    pub fn resource(mut self, resource: &Resource) -> Self {
        self.processor.set_resource(resource);
        self
    }

    /// Sets the sampler, which is asked with the first span of a segment: a trace is exported whole or not at all. By
    /// default, a segment with a parent follows its parent's decision, and each other one is exported.
    #[must_use]
    pub fn sampler(self, sampler: impl ShouldSample + 'static) -> Self {
        Self { sampler: Box::new(sampler), ..self }
    }

    /// Exports the content, too: system prompts, answers, arguments and results of tools, reasons, texts of errors.
    #[must_use]
    pub fn with_content(self) -> Self {
        Self { with_content: true, ..self }
    }

    /// Exports what has ended, and waits for it. It blocks.
    ///
    /// # Errors
    ///
    /// Those of the processor.
    pub fn flush(&self) -> OTelSdkResult {
        self.processor.force_flush()
    }

    /// Exports what has ended, and stops. It blocks.
    ///
    /// # Errors
    ///
    /// Those of the processor.
    pub fn shutdown(&self) -> OTelSdkResult {
        self.processor.shutdown()
    }

    /// Returns the context of a span of a segment.
    fn context_of(&self, segment: &Segment, span: crate::spans::SpanId) -> SpanContext {
        let parent = segment.parent.as_ref().map(|parent| Context::new().with_remote_span_context(context(parent)));
        let name = format!("invoke_agent {}", segment.brain);
        let trace = TraceId::from(segment.trace.0);
        let sampled = self.sampler.should_sample(parent.as_ref(), trace, &name, &SpanKind::Internal, &[], &[]);
        let is_sampled = sampled.decision == SamplingDecision::RecordAndSample;
        let flags = TraceFlags::default().with_sampled(is_sampled);
        SpanContext::new(trace, SpanId::from(span.0), flags, false, sampled.trace_state)
    }
}

impl Observer for Traces {
    fn ended(&self, span: &Span) {
        let context = self.context_of(&span.segment, span.id);
        if context.is_sampled() {
            self.processor.on_end(self.data(span, context));
        }
    }
}

impl Traces {
    fn data(&self, span: &Span, span_context: SpanContext) -> SpanData {
        let remote = span.segment.parent.as_ref().filter(|_| span.parent.is_none());
        let parent = span.parent.or_else(|| remote.map(|remote| remote.span));
        let mut links = SpanLinks::default();
        links.links.extend(span.links.iter().map(|link| {
            let attributes = vec![KeyValue::new(names::RELATION, link.relation)];
            Link::new(context(&link.to), attributes, 0)
        }));
        let mut attributes = attributes::of(span);
        if self.with_content {
            content::add(span, &mut attributes);
        }
        SpanData {
            span_context,
            parent_span_id: parent.map_or(SpanId::INVALID, |parent| SpanId::from(parent.0)),
            parent_span_is_remote: remote.is_some(),
            span_kind: match span.operation {
                Operation::Chat(_) => SpanKind::Client,
                _ => SpanKind::Internal,
            },
            name: attributes::name(&span.operation).into(),
            start_time: time(span.started),
            end_time: time(span.ended),
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links,
            status: match &span.outcome {
                Outcome::Failed { message, .. } => {
                    Status::error(message.clone().filter(|_| self.with_content).unwrap_or_default())
                }
                Outcome::Done | Outcome::Suspended => Status::Unset,
            },
            instrumentation_scope: self.scope.clone(),
        }
    }
}

/// Returns the context of a span of another system.
fn context(span: &SpanRef) -> SpanContext {
    let flags = TraceFlags::default().with_sampled(span.sampled);
    let state = span.state.as_deref().and_then(|state| state.parse::<TraceState>().ok()).unwrap_or_default();
    SpanContext::new(TraceId::from(span.trace.0), SpanId::from(span.span.0), flags, true, state)
}

fn time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(at.0).unwrap_or(0))
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces")
            .field("processor", &self.processor)
            .field("sampler", &self.sampler)
            .field("with_content", &self.with_content)
            .finish_non_exhaustive()
    }
}
