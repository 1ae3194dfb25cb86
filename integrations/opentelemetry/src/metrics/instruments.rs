//! Metrics with the instruments of OpenTelemetry.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};
use parking_lot::Mutex;
use positronic_core::record::Status;
use positronic_core::store::EventStore;

use super::catalog::{Aggregation, Metric};
use super::measure::{Labels, measure};
use super::store_counts::{PENDING_KINDS, StoreCounts};
use crate::monitor::Observer;
use crate::spans::{Span, WaitKind};

/// How often the store is asked how many runs are open.
const REFRESH: Duration = Duration::from_secs(15);

enum Instrument {
    Counter(Counter<f64>),
    Histogram(Histogram<f64>),
}

/// Counts what runs use with the instruments of a meter: those of the GenAI conventions, and Positronic's own.
pub struct Instruments {
    instruments: HashMap<Metric, Instrument>,
    counts: Arc<Mutex<StoreCounts>>,
}

impl Instruments {
    /// Creates the instruments.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        let made = |metric: Metric| {
            let (name, unit, help) = (metric.otel(), metric.unit(), metric.help());
            match metric.otel_shape() {
                Aggregation::Counter => {
                    Instrument::Counter(meter.f64_counter(name).with_unit(unit).with_description(help).build())
                }
                Aggregation::Histogram(buckets) => {
                    let histogram = meter.f64_histogram(name).with_unit(unit).with_description(help);
                    Instrument::Histogram(histogram.with_boundaries(buckets.to_vec()).build())
                }
            }
        };
        let counts = Arc::<Mutex<StoreCounts>>::default();
        gauges(meter, &counts);
        Self { instruments: Metric::ALL.into_iter().map(|metric| (metric, made(metric))).collect(), counts }
    }

    /// Reads now and every 15 seconds how many runs are open and what is pending, for the gauges `positronic.runs` and
    /// `positronic.pending`. It ends when the future is dropped; a failed read keeps the last numbers.
    pub fn watch<S: EventStore>(&self, store: S) -> impl Future<Output = ()> + Send + use<S> + 'static {
        let counts = Arc::clone(&self.counts);
        async move {
            loop {
                match StoreCounts::read(&store).await {
                    Ok(read) => *counts.lock() = read,
                    Err(error) => tracing::warn!(%error, "cannot count the runs of the store for the metrics"),
                }
                tokio::time::sleep(REFRESH).await;
            }
        }
    }
}

fn gauges(meter: &Meter, counts: &Arc<Mutex<StoreCounts>>) {
    let shared = Arc::clone(counts);
    _ = meter
        .u64_observable_gauge("positronic.runs")
        .with_unit("{run}")
        .with_description("Runs that have not ended")
        .with_callback(move |observer| {
            for (status, count) in &shared.lock().runs {
                observer.observe(*count, &[KeyValue::new("positronic.status", Status::as_str(*status))]);
            }
        })
        .build();
    let shared = Arc::clone(counts);
    _ = meter
        .u64_observable_gauge("positronic.pending")
        .with_unit("{item}")
        .with_description("Pending items, by what they wait for")
        .with_callback(move |observer| {
            let counts = shared.lock();
            // Nothing is known before the first read.
            for kind in PENDING_KINDS.iter().filter(|_| !counts.runs.is_empty()) {
                let count = counts.pending.get(kind).map_or(0, |item| item.count);
                observer.observe(count, &[KeyValue::new("positronic.kind", WaitKind::as_str(*kind))]);
            }
        })
        .build();
}

impl Observer for Instruments {
    fn ended(&self, span: &Span) {
        measure(span, |metric, value, labels| {
            let attributes = attributes(metric, labels);
            match self.instruments.get(&metric) {
                Some(Instrument::Counter(counter)) => counter.add(value, &attributes),
                Some(Instrument::Histogram(histogram)) => histogram.record(value, &attributes),
                None => {}
            }
        });
    }
}

/// Returns the attributes of a value; empty ones are left out.
fn attributes(metric: Metric, labels: Labels) -> Vec<KeyValue> {
    let operation = metric.otel().starts_with("gen_ai.client").then(|| KeyValue::new("gen_ai.operation.name", "chat"));
    let labels = labels.into_iter().filter(|(_, value)| !value.is_empty());
    labels.map(|(label, value)| KeyValue::new(label.otel(), value)).chain(operation).collect()
}

impl fmt::Debug for Instruments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instruments").finish_non_exhaustive()
    }
}
