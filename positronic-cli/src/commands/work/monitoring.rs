//! Monitoring of `positronic serve`: metrics for Prometheus, and the export over OTLP with the feature `otel`.

use std::sync::Arc;

use futures::future::BoxFuture;
use positronic_core::runner::Runner;
use positronic_opentelemetry::Monitor;
use positronic_opentelemetry::metrics::Metrics;
#[cfg(feature = "otel")]
use positronic_opentelemetry::otlp::Otlp;
#[cfg(feature = "otel")]
use tokio::task::JoinHandle;

use crate::app::{Failure, ProjectStore, Ui};

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

    /// Exports the rest.
    pub(super) async fn end(self, ui: &mut Ui) -> Result<(), Failure> {
        #[cfg(feature = "otel")]
        if let Some((otlp, watching)) = self.export {
            watching.abort();
            let ended = tokio::task::spawn_blocking(move || otlp.shutdown()).await;
            if let Ok(Err(error)) = ended {
                ui.notice(&format!("not all traces and metrics were exported: {error}"))?;
            }
        }
        #[cfg(not(feature = "otel"))]
        std::future::ready(ui).await;
        Ok(())
    }
}
