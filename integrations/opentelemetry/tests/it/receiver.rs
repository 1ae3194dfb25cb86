//! A receiver of OTLP over HTTP, on a thread of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_otlp::{Protocol, WithExportConfig as _};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// What arrived.
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) spans: Vec<Span>,
    pub(crate) metrics: Vec<Metric>,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Clone)]
pub(crate) struct Receiver {
    url: String,
    received: Arc<Mutex<Received>>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let received = Arc::<Mutex<Received>>::default();
        let (bound, address) = std::sync::mpsc::channel();
        let shared = Arc::clone(&received);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            runtime.block_on(async move {
                let router = Router::new().route("/v1/traces", post(traces)).route("/v1/metrics", post(metrics));
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                bound.send(listener.local_addr().unwrap()).unwrap();
                axum::serve(listener, router.with_state(shared)).await.unwrap();
            });
        });
        Self { url: format!("http://{}", address.recv().unwrap()), received }
    }

    pub(crate) fn spans_exporter(&self) -> opentelemetry_otlp::SpanExporter {
        let exporter = opentelemetry_otlp::SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
        exporter.with_endpoint(format!("{}/v1/traces", self.url)).build().unwrap()
    }

    pub(crate) fn metrics_exporter(&self) -> opentelemetry_otlp::MetricExporter {
        let exporter = opentelemetry_otlp::MetricExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
        exporter.with_endpoint(format!("{}/v1/metrics", self.url)).build().unwrap()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.received.lock().unwrap().spans.clone()
    }

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        self.received.lock().unwrap().metrics.clone()
    }

    /// Returns whether a text is anywhere in what arrived.
    pub(crate) fn has(&self, text: &str) -> bool {
        let received = self.received.lock().unwrap();
        received.bytes.windows(text.len()).any(|bytes| bytes == text.as_bytes())
    }
}

async fn traces(State(received): State<Arc<Mutex<Received>>>, body: Bytes) -> Vec<u8> {
    let request = ExportTraceServiceRequest::decode(body.clone()).unwrap();
    let mut received = received.lock().unwrap();
    received.bytes.extend_from_slice(&body);
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    received.spans.extend(scopes.flat_map(|scope| scope.spans));
    Vec::new()
}

async fn metrics(State(received): State<Arc<Mutex<Received>>>, body: Bytes) -> Vec<u8> {
    let request = ExportMetricsServiceRequest::decode(body).unwrap();
    let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
    received.lock().unwrap().metrics.extend(scopes.flat_map(|scope| scope.metrics));
    Vec::new()
}

/// Returns attributes as text.
pub(crate) fn texts(attributes: &[KeyValue]) -> HashMap<String, String> {
    attributes.iter().map(|pair| (pair.key.clone(), text(pair.value.as_ref()))).collect()
}

fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(value)) => value.to_string(),
        Some(Value::ArrayValue(values)) => {
            let values: Vec<_> = values.values.iter().map(|value| text(Some(value))).collect();
            format!("[{}]", values.join(", "))
        }
        other => format!("{other:?}"),
    }
}
