//! Exports runs as OpenTelemetry traces and metrics.
