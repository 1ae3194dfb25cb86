//! Metrics: what is measured of spans, and what a store counts.
//!
//! [`Metrics`] counts for Prometheus, `Instruments` with the instruments of OpenTelemetry. [`StoreCounts`] reads from a store how
//! many runs are open and what is pending, so these numbers are right after a restart and on several machines.

mod catalog;
#[cfg(feature = "otel")]
mod instruments;
mod measure;
mod prometheus;
mod store_counts;

#[cfg(feature = "otel")]
pub use instruments::Instruments;
#[cfg(feature = "otel")]
pub(crate) use measure::provider;
pub use prometheus::{CONTENT_TYPE, Metrics};
pub use store_counts::{PENDING_KINDS, StoreCounts};
