//! What a monitor costs; run by hand: `cargo test --release -p positronic-opentelemetry --test it -- --ignored --nocapture cost`.

use std::time::Instant;

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanProcessor};
use positronic_core::record::RunId;
use positronic_opentelemetry::metrics::Metrics;
use positronic_opentelemetry::spans::RunSpans;
use positronic_opentelemetry::{Observer as _, traces::Traces};

use crate::delivery::support_log;

#[tokio::test]
#[ignore = "measures"]
#[expect(clippy::disallowed_methods, clippy::print_stderr, reason = "a measurement")]
async fn cost_per_event() {
    let (_, _, log) = support_log().await;
    let (rounds, run) = (2_000, RunId::new("run-1"));
    let metrics = Metrics::new();
    let traces = Traces::with_processor(Dropped);
    let measure = |what: &str, observe: &dyn Fn(&positronic_opentelemetry::spans::Span)| {
        let begun = Instant::now();
        for _ in 0..rounds {
            let mut spans = RunSpans::new(run.clone());
            log.iter().for_each(|event| spans.apply(event).iter().for_each(observe));
        }
        let each = begun.elapsed() / u32::try_from(rounds * log.len()).unwrap();
        eprintln!("{what}: {each:?} per event, {} events", log.len());
    };
    measure("fold", &|_| {});
    measure("fold and metrics", &|span| metrics.ended(span));
    measure("fold and traces", &|span| traces.ended(span));
}

/// A processor that drops spans.
#[derive(Debug)]
struct Dropped;

impl SpanProcessor for Dropped {
    fn on_start(&self, _: &mut opentelemetry_sdk::trace::Span, _: &opentelemetry::Context) {}

    fn on_end(&self, span: SpanData) {
        drop(std::hint::black_box(span));
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: std::time::Duration) -> OTelSdkResult {
        Ok(())
    }
}
