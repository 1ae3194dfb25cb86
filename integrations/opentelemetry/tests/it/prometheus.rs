//! Metrics as text for Prometheus.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use positronic_core::store::StoreError;
use positronic_opentelemetry::Monitor;
use positronic_opentelemetry::metrics::Metrics;
use positronic_store_suite::FaultyStore;

use crate::machines::Bench;
use crate::metrics::two_runs;

/// The values that are not buckets, without comments.
fn values(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.contains("_bucket{"));
    let mut lines: Vec<_> = lines.collect();
    lines.sort_unstable();
    lines.join("\n")
}

#[tokio::test(start_paused = true)]
async fn text_has_the_counters_of_this_process_and_the_gauges_of_the_store() {
    let bench = Bench::new();
    let metrics = Metrics::new();
    two_runs(&bench, Monitor::new(Arc::clone(&bench.store)).observer(metrics.clone())).await;

    let text = metrics.endpoint(Arc::clone(&bench.store))().await;

    lint(&text);
    insta::assert_snapshot!(values(&text), @r#"
    positronic_cached_tokens_total{provider="scripted",model="scripted"} 192.0
    positronic_cost_total{provider="scripted",model="scripted",currency="EUR"} 0.003
    positronic_model_request_duration_seconds_count{provider="scripted",model="scripted",error=""} 3
    positronic_model_request_duration_seconds_sum{provider="scripted",model="scripted",error=""} 0.0
    positronic_pending_oldest_timestamp_seconds{kind="approval"} 1767225690.0
    positronic_pending{kind="approval"} 1
    positronic_pending{kind="budget"} 0
    positronic_pending{kind="reply"} 0
    positronic_pending{kind="webhook"} 0
    positronic_runs_ended_total{brain="Shop",status="completed"} 1.0
    positronic_runs_refused{} 0
    positronic_runs{status="paused"} 0
    positronic_runs{status="running"} 0
    positronic_runs{status="waiting"} 1
    positronic_store_counts_complete{} 1
    positronic_store_up 1
    positronic_tokens_total{provider="scripted",model="scripted",type="input"} 300.0
    positronic_tokens_total{provider="scripted",model="scripted",type="output"} 60.0
    positronic_tool_duration_seconds_count{tool="pay",error=""} 1
    positronic_tool_duration_seconds_sum{tool="pay",error=""} 0.0
    positronic_unpriced_answers_total{provider="scripted",model="scripted"} 1.0
    positronic_wait_duration_seconds_count{kind="approval",verdict="approved"} 1
    positronic_wait_duration_seconds_sum{kind="approval",verdict="approved"} 90.0
    "#);
    // Another machine, or this one after a restart, has the same gauges and no counters.
    let restarted = Metrics::new().text(&bench.store).await;
    lint(&restarted);
    let gauges = |text: &str| {
        values(text)
            .lines()
            .filter(|line| line.contains("positronic_runs{") || line.contains("pending"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(gauges(&restarted), gauges(&text));
    assert!(!restarted.contains("positronic_tokens_total{"));
}

#[tokio::test(start_paused = true)]
async fn text_has_neither_runs_nor_users_as_labels() {
    let bench = Bench::new();
    let metrics = Metrics::new();
    two_runs(&bench, Monitor::new(Arc::clone(&bench.store)).observer(metrics.clone())).await;

    let text = metrics.text(&bench.store).await;

    let rows = positronic_core::store::RunIndex::runs(&*bench.store, &Default::default()).await.unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert!(!text.contains(row.run.as_str()), "{text}");
    }
    assert!(!text.contains("ann"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn unreachable_store_leaves_its_numbers_out() {
    let failed = |_: &'static str| Some(StoreError::Failed { message: "no disk".to_owned() });
    let bench = Bench::new();
    let metrics = Metrics::new();
    let up = metrics.text(&bench.store).await;
    let broken = FaultyStore::new(Arc::clone(&bench.store), |_, _| None).reading(failed);

    let down = metrics.text(&broken).await;

    assert!(up.contains("positronic_store_up 1\n") && up.contains("positronic_runs{"), "{up}");
    assert!(down.contains("positronic_store_up 0\n") && !down.contains("positronic_runs{"), "{down}");
    lint(&down);
}

/// Checks the rules of OpenMetrics and those of `promtool check metrics`: a type and a help text before the first value, units
/// in names, `_total` for counters, no value twice, buckets that do not decrease and end with `+Inf`.
fn lint(text: &str) {
    assert!(text.ends_with("# EOF\n"), "{text}");
    let mut types = HashMap::new();
    let mut helps = HashSet::new();
    let mut seen = HashSet::new();
    let mut buckets: HashMap<String, (f64, bool)> = HashMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(!help.is_empty() && helps.insert(name.to_owned()), "{line}");
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(seen.insert(series.to_owned()), "twice: {series}");
            let value: f64 = value.parse().unwrap();
            let full = series.split('{').next().unwrap();
            let suffixes = ["_total", "_bucket", "_sum", "_count"];
            let suffix = suffixes.into_iter().find(|suffix| full.ends_with(suffix)).unwrap_or("");
            let name = full.strip_suffix(suffix).filter(|name| types.contains_key(*name)).unwrap_or(full);
            let kind = types.get(name).unwrap_or_else(|| panic!("no type: {line}"));
            assert!(helps.contains(name), "no help: {line}");
            assert!(name.starts_with("positronic_"), "{line}");
            assert_eq!(kind == "counter", suffix == "_total", "{line}");
            assert_eq!(kind == "histogram", matches!(suffix, "_bucket" | "_sum" | "_count"), "{line}");
            if suffix == "_bucket" {
                let (labels, le) = series.split_once("le=\"").unwrap();
                let (before, ended) = buckets.entry(labels.to_owned()).or_insert((0.0, false));
                assert!(value >= *before && !*ended, "{line}");
                (*before, *ended) = (value, le.starts_with("+Inf"));
            }
        }
    }
    assert!(buckets.values().all(|(_, ended)| *ended));
}
