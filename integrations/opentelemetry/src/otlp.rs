//! Export over OTLP (HTTP, protobuf), as the standard environment variables say.
//!
//! | variable | meaning |
//! |---|---|
//! | `OTEL_EXPORTER_OTLP_ENDPOINT`, `…_TRACES_ENDPOINT`, `…_METRICS_ENDPOINT` | Where to; without them, nothing is exported |
//! | `OTEL_EXPORTER_OTLP_HEADERS`, `…_TIMEOUT`, `…_COMPRESSION` and their forms per signal | As the specification says |
//! | `OTEL_TRACES_EXPORTER`, `OTEL_METRICS_EXPORTER` | `none` switches one of the two off |
//! | `OTEL_SDK_DISABLED` | `true` switches both off |
//! | `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG` | Which traces are exported: `parentbased_always_on` by default |
//! | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | The service; `positronic` by default |
//! | `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` | `true` exports content, too |
//! | `OTEL_BSP_…`, `OTEL_METRIC_EXPORT_INTERVAL` | Sizes and intervals |

use std::fmt;
use std::sync::Arc;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_otlp::{ExporterBuildError, MetricExporter, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::Sampler;
use positronic_core::store::EventStore;

use crate::metrics::Instruments;
use crate::monitor::Monitor;
use crate::traces::Traces;

/// What the environment says about the export; nothing is exported by default.
#[derive(Debug, Clone, Default)]
pub struct OtlpOptions {
    traces: bool,
    metrics: bool,
    content: bool,
    sampler: Option<Sampler>,
    service: Option<String>,
    problem: Option<String>,
}

/// The reason why nothing can be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// A variable has a value that is not supported.
    #[error("{0}")]
    Variable(String),
    /// An exporter cannot be made.
    #[error("cannot export to the OTLP endpoint: {0}")]
    Exporter(#[from] ExporterBuildError),
}

impl OtlpOptions {
    /// Reads variables; an empty one counts as unset. The exporters read those that begin with `OTEL_EXPORTER_OTLP_` from the
    /// process's environment.
    #[must_use]
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let is_true = |name| variable(name).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
        let (disabled, all) = (is_true("OTEL_SDK_DISABLED"), variable("OTEL_EXPORTER_OTLP_ENDPOINT").is_some());
        let exports = |endpoint, exporter| {
            let is_off = variable(exporter).is_some_and(|value| value.trim() == "none");
            !disabled && !is_off && (all || variable(endpoint).is_some())
        };
        let named = variable("OTEL_SERVICE_NAME").is_some()
            || variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| all.contains("service.name="));
        let (sampler, unknown) = match sampler(&variable) {
            Ok(sampler) => (sampler, None),
            Err(problem) => (None, Some(problem)),
        };
        let protocol = variable("OTEL_EXPORTER_OTLP_PROTOCOL").filter(|protocol| protocol.trim() != "http/protobuf");
        let unsupported = protocol.map(|protocol| {
            format!("OTEL_EXPORTER_OTLP_PROTOCOL is `{protocol}`, and only `http/protobuf` is supported")
        });
        Self {
            traces: exports("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER"),
            metrics: exports("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_METRICS_EXPORTER"),
            content: is_true("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
            sampler,
            service: (!named).then(|| "positronic".to_owned()),
            problem: unsupported.or(unknown),
        }
    }

    /// Begins the export; `None` if the environment does not ask for it.
    ///
    /// # Errors
    ///
    /// [`OtlpError`] if a variable has a value that is not supported, or is not an address.
    pub fn start(&self) -> Result<Option<Otlp>, OtlpError> {
        if !self.traces && !self.metrics {
            return Ok(None);
        }
        if let Some(problem) = &self.problem {
            return Err(OtlpError::Variable(problem.clone()));
        }
        let resource = Resource::builder();
        let resource = match &self.service {
            Some(service) => resource.with_service_name(service.clone()),
            None => resource,
        };
        let resource = resource.build();
        let traces = self.traces.then(|| self.traces(&resource)).transpose()?;
        let metrics = self.metrics.then(|| metrics(resource)).transpose()?;
        Ok(Some(Otlp { traces, metrics }))
    }

    fn traces(&self, resource: &Resource) -> Result<Arc<Traces>, OtlpError> {
        let traces = Traces::new(SpanExporter::builder().with_http().build()?).resource(resource);
        let traces = if self.content { traces.with_content() } else { traces };
        Ok(Arc::new(match self.sampler.clone() {
            Some(sampler) => traces.sampler(sampler),
            None => traces,
        }))
    }
}

fn metrics(resource: Resource) -> Result<(Arc<Instruments>, SdkMeterProvider), OtlpError> {
    let reader = PeriodicReader::builder(MetricExporter::builder().with_http().build()?).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).with_resource(resource).build();
    Ok((Arc::new(Instruments::new(&provider.meter("positronic"))), provider))
}

fn sampler(variable: &impl Fn(&str) -> Option<String>) -> Result<Option<Sampler>, String> {
    let Some(name) = variable("OTEL_TRACES_SAMPLER") else { return Ok(None) };
    let ratio = || match variable("OTEL_TRACES_SAMPLER_ARG") {
        None => Ok(Sampler::TraceIdRatioBased(1.0)),
        Some(text) => match text.trim().parse() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(Sampler::TraceIdRatioBased(ratio)),
            _ => Err(format!("OTEL_TRACES_SAMPLER_ARG is `{text}`, and not a number from 0 to 1")),
        },
    };
    let based = |sampler| Sampler::ParentBased(Box::new(sampler));
    Ok(Some(match name.trim() {
        "always_on" => Sampler::AlwaysOn,
        "always_off" => Sampler::AlwaysOff,
        "traceidratio" => ratio()?,
        "parentbased_always_on" => based(Sampler::AlwaysOn),
        "parentbased_always_off" => based(Sampler::AlwaysOff),
        "parentbased_traceidratio" => based(ratio()?),
        _ => {
            return Err(format!(
                "OTEL_TRACES_SAMPLER is `{name}`; use always_on, always_off, traceidratio, parentbased_always_on, \
                 parentbased_always_off or parentbased_traceidratio"
            ));
        }
    }))
}

/// A running export.
pub struct Otlp {
    traces: Option<Arc<Traces>>,
    metrics: Option<(Arc<Instruments>, SdkMeterProvider)>,
}

impl Otlp {
    /// Adds the exporters to a monitor's observers.
    #[must_use]
    pub fn observe(&self, monitor: Monitor) -> Monitor {
        let monitor = match &self.traces {
            Some(traces) => monitor.observer(Arc::clone(traces)),
            None => monitor,
        };
        match &self.metrics {
            Some((instruments, _)) => monitor.observer(Arc::clone(instruments)),
            None => monitor,
        }
    }

    /// Returns the exported traces, for [`SpanContexts`](crate::traces::SpanContexts).
    #[must_use]
    pub const fn traces(&self) -> Option<&Arc<Traces>> {
        self.traces.as_ref()
    }

    /// Keeps the gauges of a store up to date, until the future is dropped; see [`Instruments::watch`].
    pub fn watch<S: EventStore>(&self, store: S) -> impl Future<Output = ()> + Send + use<S> + 'static {
        let watching = self.metrics.as_ref().map(|(instruments, _)| instruments.watch(store));
        async {
            if let Some(watching) = watching {
                watching.await;
            }
        }
    }

    /// Exports the rest and stops. It blocks: call it in `spawn_blocking`.
    ///
    /// # Errors
    ///
    /// The first error of an exporter.
    pub fn shutdown(&self) -> Result<(), OTelSdkError> {
        let traces = self.traces.as_ref().map_or(Ok(()), |traces| traces.shutdown());
        let metrics = self.metrics.as_ref().map_or(Ok(()), |(_, provider)| provider.shutdown());
        traces.and(metrics)
    }
}

impl fmt::Debug for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otlp")
            .field("traces", &self.traces.is_some())
            .field("metrics", &self.metrics.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(variables: &[(&str, &str)]) -> OtlpOptions {
        OtlpOptions::from_variables(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");

    #[test]
    fn variables_say_what_is_exported() {
        let exports = |variables: &[_]| {
            let OtlpOptions { traces, metrics, .. } = options(variables);
            (traces, metrics)
        };

        assert_eq!(exports(&[]), (false, false));
        assert_eq!(exports(&[ENDPOINT]), (true, true));
        assert_eq!(exports(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t")]), (true, false));
        assert_eq!(exports(&[ENDPOINT, ("OTEL_METRICS_EXPORTER", "none")]), (true, false));
        assert_eq!(exports(&[ENDPOINT, ("OTEL_SDK_DISABLED", "true")]), (false, false));
        assert_eq!(exports(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), (false, false));
    }

    #[test]
    fn content_and_service_have_safe_defaults() {
        let plain = options(&[ENDPOINT]);
        let set = options(&[
            ENDPOINT,
            ("OTEL_SERVICE_NAME", "shop"),
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
        ]);

        assert_eq!((plain.content, plain.service.as_deref()), (false, Some("positronic")));
        assert_eq!((set.content, set.service), (true, None));
    }

    #[test]
    fn unsupported_values_are_errors_only_where_something_is_exported() {
        let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
        let sampler = ("OTEL_TRACES_SAMPLER", "xray");
        let ratio = [ENDPOINT, ("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "7")];

        assert!(options(&[grpc, sampler]).start().unwrap().is_none());
        let said = |variables: &[_]| options(variables).start().unwrap_err().to_string();
        assert_eq!(
            said(&[ENDPOINT, grpc]),
            "OTEL_EXPORTER_OTLP_PROTOCOL is `grpc`, and only `http/protobuf` is supported"
        );
        assert!(said(&[ENDPOINT, sampler]).starts_with("OTEL_TRACES_SAMPLER is `xray`; use always_on"));
        assert_eq!(said(&ratio), "OTEL_TRACES_SAMPLER_ARG is `7`, and not a number from 0 to 1");
    }
}
