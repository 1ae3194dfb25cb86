//! Metrics in the text format of Prometheus.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::store::EventStore;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::catalog::{Aggregation, Metric};
use super::measure::measure;
use super::store_counts::StoreCounts;
use crate::monitor::Observer;
use crate::spans::Span;

/// The media type of [`Metrics::text`]: OpenMetrics, which Prometheus reads.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How long the store may take to count.
const PATIENCE: Duration = Duration::from_secs(5);

type SeriesLabels = Vec<(&'static str, String)>;
type Gauges<N, A> = Family<SeriesLabels, Gauge<N, A>>;

#[derive(Clone)]
enum Series {
    Counter(Family<SeriesLabels, Counter<f64, AtomicU64>>),
    Histogram(Family<SeriesLabels, Histogram, Buckets>),
}

#[derive(Clone, Copy)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// Counts what runs use, for Prometheus. Clones share the numbers.
///
/// Counters begin at zero with the process, as Prometheus expects, and each machine counts the work of its own workers.
/// The gauges come from the store at each scrape, so every machine shows the same.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    series: HashMap<Metric, Series>,
    runs: Gauges<i64, std::sync::atomic::AtomicI64>,
    refused: Gauges<i64, std::sync::atomic::AtomicI64>,
    pending: Gauges<i64, std::sync::atomic::AtomicI64>,
    oldest: Gauges<f64, AtomicU64>,
    complete: Gauges<i64, std::sync::atomic::AtomicI64>,
    up: Gauge,
}

impl Metrics {
    /// Creates metrics at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let mut series = HashMap::new();
        for metric in Metric::ALL {
            let (name, help) = (metric.prometheus(), metric.help());
            let made = match metric.shape() {
                Aggregation::Counter => {
                    let family = Family::default();
                    registry.register(name, help, Family::clone(&family));
                    Series::Counter(family)
                }
                Aggregation::Histogram(buckets) => {
                    let family = Family::new_with_constructor(Buckets(buckets));
                    registry.register(name, help, family.clone());
                    Series::Histogram(family)
                }
            };
            series.insert(metric, made);
        }
        let (runs, refused, pending, complete) = Default::default();
        let (oldest, up) = (Gauges::<f64, AtomicU64>::default(), Gauge::default());
        registry.register("positronic_runs", "Runs that have not ended", Gauges::clone(&runs));
        registry.register(
            "positronic_runs_refused",
            "Runs with work that no worker can claim, for instance because their brain is unknown",
            Gauges::clone(&refused),
        );
        registry.register("positronic_pending", "Pending items, by what they wait for", Gauges::clone(&pending));
        registry.register(
            "positronic_pending_oldest_timestamp_seconds",
            "When the oldest pending item of its kind began to wait",
            oldest.clone(),
        );
        registry.register(
            "positronic_store_counts_complete",
            "Whether all open runs and pending items were counted; if 0, there are more",
            Gauges::clone(&complete),
        );
        registry.register("positronic_store_up", "Whether the store answered", up.clone());
        Self(Arc::new(Inner { registry, series, runs, refused, pending, oldest, complete, up }))
    }

    /// Returns all metrics as text, with the numbers of open runs and pending items of a store. If the store does not answer
    /// within five seconds, `positronic_store_up` is 0, and its numbers are left out.
    pub async fn text(&self, store: &dyn EventStore) -> String {
        let counted = tokio::time::timeout(PATIENCE, StoreCounts::read(store)).await;
        match counted {
            Ok(Ok(counts)) => self.set(&counts),
            Ok(Err(error)) => self.unset(&error),
            Err(slow) => self.unset(&slow),
        }
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.0.registry) {
            tracing::warn!(%error, "cannot encode the metrics");
        }
        text
    }

    /// Returns a function that answers a scrape, for a server's route.
    pub fn endpoint<S: EventStore>(
        &self,
        store: S,
    ) -> impl Fn() -> BoxFuture<'static, String> + Clone + Send + Sync + use<S> + 'static {
        let (metrics, store) = (self.clone(), Arc::new(store));
        move || {
            let (metrics, store) = (metrics.clone(), Arc::clone(&store));
            Box::pin(async move { metrics.text(&*store).await })
        }
    }

    fn set(&self, counts: &StoreCounts) {
        let Inner { runs, refused, pending, oldest, complete, up, .. } = &*self.0;
        up.set(1);
        for (status, count) in &counts.runs {
            runs.get_or_create(&vec![("status", status.as_str().to_owned())]).set(signed(*count));
        }
        refused.get_or_create(&SeriesLabels::new()).set(signed(counts.refused));
        complete.get_or_create(&SeriesLabels::new()).set(i64::from(counts.is_complete));
        oldest.clear();
        for (kind, item) in &counts.pending {
            let labels = vec![("kind", kind.as_str().to_owned())];
            pending.get_or_create(&labels).set(signed(item.count));
            if let Some(since) = item.oldest {
                oldest.get_or_create(&labels).set(seconds(since.0));
            }
        }
    }

    fn unset(&self, error: &dyn fmt::Display) {
        tracing::warn!(%error, "cannot count the runs of the store for the metrics");
        let Inner { runs, refused, pending, oldest, complete, up, .. } = &*self.0;
        up.set(0);
        runs.clear();
        refused.clear();
        pending.clear();
        oldest.clear();
        complete.clear();
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of this century have an exact representation")]
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

impl Observer for Metrics {
    fn ended(&self, span: &Span) {
        measure(span, |metric, value, labels| {
            let labels: SeriesLabels = labels.into_iter().map(|(label, value)| (label.prometheus(), value)).collect();
            match self.0.series.get(&metric) {
                Some(Series::Counter(family)) => {
                    family.get_or_create(&labels).inc_by(value);
                }
                Some(Series::Histogram(family)) => family.get_or_create(&labels).observe(value),
                None => {}
            }
        });
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
