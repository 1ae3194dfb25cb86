//! Monitoring of runs: OpenTelemetry traces and metrics, and metrics for Prometheus.
//!
//! A [`Monitor`] is a durable event sink. It folds each run's events into [`spans`] and passes those that have ended to its
//! [`Observer`]s: [`Traces`](traces::Traces) exports them, [`Metrics`](metrics::Metrics) counts them for `/metrics`, and
//! [`Instruments`](metrics::Instruments) counts them with the instruments of OpenTelemetry.
//!
//! ```
//! use std::sync::Arc;
//!
//! use positronic_core::prelude::*;
//! use positronic_core::store::MemoryStore;
//! use positronic_opentelemetry::Monitor;
//! use positronic_opentelemetry::metrics::Metrics;
//!
//! # fn example(model: impl positronic_core::model::Model) {
//! let store = Arc::new(MemoryStore::new());
//! let metrics = Metrics::new();
//! let monitor = Monitor::new(Arc::clone(&store)).observer(metrics.clone());
//! let runner = Runner::new(model).store(store).sink(monitor);
//! # }
//! ```
//!
//! The modules that need OpenTelemetry are behind the feature `otel`, which is on by default. The feature `otlp` adds
//! `otlp`, which exports as the standard environment variables of OpenTelemetry say.

pub mod metrics;
mod monitor;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod spans;
#[cfg(feature = "otel")]
pub mod traces;

pub use monitor::{Monitor, Observer};
