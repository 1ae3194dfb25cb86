//! Monitoring of `positronic serve`: metrics for Prometheus, and the export over OTLP with the feature `otel`.

use std::sync::Arc;
#[cfg(feature = "otel")]
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::runner::Runner;
use positronic_opentelemetry::Monitor;
use positronic_opentelemetry::metrics::Metrics;
#[cfg(feature = "otel")]
use positronic_opentelemetry::otlp::Otlp;
#[cfg(feature = "otel")]
use tokio::task::JoinHandle;

use crate::app::{Failure, ProjectStore, Ui};

/// The maximum wait for the last export.
#[cfg(feature = "otel")]
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Monitoring {
    monitor: Monitor,
    metrics: Metrics,
    #[cfg(feature = "otel")]
    export: Option<(Arc<Otlp>, JoinHandle<()>)>,
}

impl Monitoring {
    pub(super) fn start(store: &ProjectStore, ui: &Ui) -> Result<Self, Failure> {
        let metrics = Metrics::new();
        let monitor = Monitor::new(Arc::clone(&store.backend)).observer(metrics.clone());
        #[cfg(feature = "otel")]
        {
            let otlp = ui.settings.otlp.start().map_err(Failure::usage)?.map(Arc::new);
            let monitor = otlp.iter().fold(monitor, |monitor, otlp| otlp.observe(monitor));
            let export = otlp.map(|otlp| {
                let watching = tokio::spawn(otlp.watch(Arc::clone(&store.backend)));
                (otlp, watching)
            });
            Ok(Self { monitor, metrics, export })
        }
        #[cfg(not(feature = "otel"))]
        {
            _ = ui;
            Ok(Self { monitor, metrics })
        }
    }

    /// Returns the text of `/metrics`.
    pub(super) fn text(
        &self,
        store: &ProjectStore,
    ) -> impl Fn() -> BoxFuture<'static, String> + Send + Sync + use<> + 'static {
        self.metrics.endpoint(Arc::clone(&store.backend))
    }

    /// Adds the monitor to the runners.
    pub(super) fn watches(&self) -> impl Fn(Runner) -> Runner + Send + Sync + use<> + 'static {
        let monitor = self.monitor.clone();
        move |runner| runner.sink(monitor.clone())
    }

    /// Exports the rest, unless that takes long.
    #[cfg_attr(
        not(feature = "otel"),
        expect(clippy::unused_async, reason = "with the feature `otel` it waits for the export")
    )]
    pub(super) async fn end(self) {
        #[cfg(feature = "otel")]
        if let Some((otlp, watching)) = self.export {
            watching.abort();
            let shutdown = tokio::task::spawn_blocking(move || otlp.shutdown());
            match tokio::time::timeout(PATIENCE, shutdown).await {
                Ok(Ok(Err(error))) => tracing::warn!(%error, "not all traces and metrics were exported"),
                Ok(_) => {}
                Err(_) => tracing::warn!(patience = ?PATIENCE, "not all traces and metrics were exported in time"),
            }
        }
    }
}
