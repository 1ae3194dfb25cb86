//! Metrics over OTLP.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_proto::tonic::metrics::v1::{metric::Data, number_data_point::Value};
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Charge, Money, Usage};
use positronic_core::runner::Settled;
use positronic_core::testing::{Lockstep as _, Story, Test};
use positronic_opentelemetry::Monitor;
use positronic_opentelemetry::metrics::Instruments;
use serde_json::json;

use crate::machines::{Bench, gated, path};
use crate::receiver::texts;

/// A run that has ended after an approval, and one that waits for one.
pub(crate) async fn two_runs(bench: &Bench, monitor: Monitor) {
    let usage = Usage { input: 100, output: 20, cached: 64, ..Usage::default() };
    let cost = Charge { amount: Money::of_nanos(1_500_000), currency: "EUR".to_owned(), as_of: None };
    let model = ScriptedModel::from_fn(move |request| match request.path.as_str() {
        "Work/0" => Reply::call("pay", json!({})).usage(usage).cost(cost.clone()),
        _ => Reply::text("It is paid.").usage(usage),
    });
    let runner = Runner::new(model)
        .store(Arc::clone(&bench.store))
        .clock(bench.clock.clone())
        .lockstep(true)
        .linger(Duration::ZERO)
        .sink(monitor);
    let test = Test::with(runner);
    let run = test.start(gated(), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    tokio::time::sleep(Duration::from_secs(90)).await;
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    Story::of(&run).await;
    let waiting = test.start(gated(), ()).await;
    Story::of(&waiting).await;
}

#[tokio::test(start_paused = true)]
async fn instruments_arrive_with_the_names_of_the_conventions() {
    let bench = Bench::new();
    let reader = PeriodicReader::builder(bench.receiver.metrics_exporter()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let instruments = Arc::new(Instruments::new(&provider.meter("positronic")));

    two_runs(&bench, Monitor::new(Arc::clone(&bench.store)).observer(Arc::clone(&instruments))).await;
    let watch = tokio::spawn(instruments.watch(Arc::clone(&bench.store)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    watch.abort();
    tokio::task::spawn_blocking(move || provider.force_flush()).await.unwrap().unwrap();

    let mut lines = Vec::new();
    for metric in bench.receiver.metrics() {
        let name = format!("{} ({})", metric.name, metric.unit);
        let point = |attributes: &[_], value: String| {
            let mut labels: Vec<_> =
                texts(attributes).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
            labels.sort();
            format!("{name} {} = {value}", labels.join(" "))
        };
        let number = |value: &Option<Value>| match value {
            Some(Value::AsDouble(number)) => number.to_string(),
            Some(Value::AsInt(number)) => number.to_string(),
            None => "none".to_owned(),
        };
        match metric.data.unwrap() {
            Data::Sum(sum) => {
                lines.extend(sum.data_points.iter().map(|at| point(&at.attributes, number(&at.value))));
            }
            Data::Gauge(gauge) => {
                lines.extend(gauge.data_points.iter().map(|at| point(&at.attributes, number(&at.value))));
            }
            Data::Histogram(histogram) => lines.extend(
                histogram
                    .data_points
                    .iter()
                    .map(|at| point(&at.attributes, format!("{} values, sum {}", at.count, at.sum.unwrap()))),
            ),
            other => panic!("{other:?}"),
        }
    }
    lines.sort();
    // The provider exports once more when it is dropped.
    lines.dedup();
    insta::assert_snapshot!(lines.join("\n"), @"
    gen_ai.client.operation.duration (s) gen_ai.operation.name=chat gen_ai.provider.name=scripted gen_ai.request.model=scripted = 3 values, sum 0
    gen_ai.client.token.usage ({token}) gen_ai.operation.name=chat gen_ai.provider.name=scripted gen_ai.request.model=scripted gen_ai.token.type=input = 3 values, sum 300
    gen_ai.client.token.usage ({token}) gen_ai.operation.name=chat gen_ai.provider.name=scripted gen_ai.request.model=scripted gen_ai.token.type=output = 3 values, sum 60
    positronic.answers.unpriced ({answer}) gen_ai.provider.name=scripted gen_ai.request.model=scripted = 1
    positronic.cost ({money}) gen_ai.provider.name=scripted gen_ai.request.model=scripted positronic.currency=EUR = 0.003
    positronic.pending ({item}) positronic.kind=approval = 1
    positronic.pending ({item}) positronic.kind=budget = 0
    positronic.pending ({item}) positronic.kind=reply = 0
    positronic.pending ({item}) positronic.kind=webhook = 0
    positronic.runs ({run}) positronic.status=paused = 0
    positronic.runs ({run}) positronic.status=running = 0
    positronic.runs ({run}) positronic.status=waiting = 1
    positronic.runs.ended ({run}) gen_ai.agent.name=Shop positronic.status=completed = 1
    positronic.tokens.cached ({token}) gen_ai.provider.name=scripted gen_ai.request.model=scripted = 192
    positronic.tool.duration (s) gen_ai.tool.name=pay = 1 values, sum 0
    positronic.wait.duration (s) positronic.kind=approval positronic.verdict=approved = 1 values, sum 90
    ");
}
