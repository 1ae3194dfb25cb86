//! Delivery of spans: crashes, other machines, repeated events, and memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Event, RunId, Seq};
use positronic_core::runner::Settled;
use positronic_core::sink::EventSink as _;
use positronic_core::store::prelude::*;
use positronic_core::testing::Story;
use positronic_opentelemetry::spans::Span;
use positronic_opentelemetry::{Monitor, Observer};
use serde_json::json;

use crate::machines::{Bench, gated, path, pays};

/// Collects spans.
#[derive(Clone, Default)]
pub(crate) struct Collected(pub(crate) Arc<Mutex<Vec<Span>>>);

impl Observer for Collected {
    fn ended(&self, span: &Span) {
        self.0.lock().unwrap().push(span.clone());
    }
}

impl Collected {
    /// Returns the spans by id.
    fn by_id(&self) -> BTreeMap<String, Span> {
        self.0.lock().unwrap().iter().map(|span| (span.id.to_string(), span.clone())).collect()
    }
}

async fn deliver(monitor: &Monitor, run: &RunId, events: &[Arc<Event>]) {
    for event in events {
        monitor.event(run, event).await.unwrap();
    }
}

/// A run with approvals, waits and nested brains in several segments, and its store.
pub(crate) async fn support_log() -> (Bench, RunId, Vec<Arc<Event>>) {
    use positronic_core::model::cassette::Cassette;
    use positronic_examples::acme::Acme;
    use positronic_examples::support::{CASSETTE, SupportOptions, support};
    let bench = Bench::new();
    let cassette = Arc::new(Cassette::replay(CASSETTE).unwrap());
    let machine = bench.machine(Arc::clone(&cassette));
    machine.test.play_with(&cassette, support().bind(Acme::example()), SupportOptions::default()).await;
    let run = bench.store.runs(&positronic_core::store::RunFilter::default()).await.unwrap().remove(0).run;
    let log = bench.store.read(&run, Seq(0), usize::MAX).await.unwrap();
    (bench, run, log)
}

#[tokio::test(start_paused = true)]
async fn every_place_of_a_crash_gives_the_same_spans() {
    let (bench, run, log) = support_log().await;
    let whole = Collected::default();
    deliver(&Monitor::new(Arc::clone(&bench.store)).observer(whole.clone()), &run, &log).await;
    let whole = whole.by_id();
    assert!(whole.len() > 30, "{}", whole.len());

    for at in 0..log.len() {
        let parts = Collected::default();
        let machine = || Monitor::new(Arc::clone(&bench.store)).observer(parts.clone());
        deliver(&machine(), &run, &log[..at]).await;
        // The next process gets some of the events again.
        deliver(&machine(), &run, &log[at.saturating_sub(3)..]).await;

        assert_eq!(parts.by_id(), whole, "crash before event {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn repeated_event_ends_no_span_twice() {
    let (bench, run, log) = support_log().await;
    let collected = Collected::default();
    let monitor = Monitor::new(Arc::clone(&bench.store)).observer(collected.clone());

    for event in &log[..log.len() - 1] {
        monitor.event(&run, event).await.unwrap();
        monitor.event(&run, event).await.unwrap();
    }

    let ended = collected.0.lock().unwrap().len();
    assert_eq!(ended, collected.by_id().len());
}

#[tokio::test(start_paused = true)]
async fn ended_run_is_dropped_from_memory() {
    let (bench, run, log) = support_log().await;
    let monitor = Monitor::new(Arc::clone(&bench.store));

    deliver(&monitor, &run, &log[..log.len() - 1]).await;
    let open = format!("{monitor:?}");
    deliver(&monitor, &run, &log[log.len() - 1..]).await;

    assert_eq!(
        (open.as_str(), format!("{monitor:?}").as_str()),
        ("Monitor { runs: 1, .. }", "Monitor { runs: 0, .. }")
    );
}

#[tokio::test(start_paused = true)]
async fn spans_that_a_dead_worker_left_open_end_with_the_next_claim() {
    let bench = Bench::new();
    let model = || {
        ScriptedModel::from_fn(|request| match request.path.as_str() {
            "Work/0" => Reply::call("send", json!({})),
            _ => Reply::text("Done."),
        })
    };
    let sends = |works: bool| {
        brain("Shop").r#loop("Work", move |cx| {
            cx.system("Sell.").input("Go.").tool("send", move |t| {
                t.idempotent().retries(3).execute(move |_: NoArgs, _| async move {
                    match works {
                        true => Ok("sent"),
                        false => std::future::pending().await,
                    }
                })
            })
        })
    };
    let first = bench.machine(model());
    let run = first.test.start(sends(false), ()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    first.die(&bench).await;
    let id = run.id().clone();
    let second = bench.machine(model());
    let runner = second.test.runner().clone().brain(sends(true));

    let resumed = runner.resume(&id).await.unwrap();
    assert!(matches!(resumed.settled().await, Settled::Completed(_)));
    Story::of(&resumed).await;
    second.flush().await;

    insta::assert_snapshot!(bench.tree(), @"
    trace
      1 invoke_agent Shop error=interrupted
        2 loop Work error=interrupted
          3 iteration error=interrupted n=0
            4 chat scripted
            5 execute_tool send error=interrupted
    trace
      6 invoke_agent Shop status=completed [previous_segment: 1 invoke_agent Shop]
        7 loop Work outcome=answered
          8 iteration n=0
            9 execute_tool send attempt=1
          10 iteration n=1
            11 chat scripted
    ");
}

#[tokio::test(start_paused = true)]
async fn wait_that_another_process_decides_is_exported_by_the_next_worker() {
    let bench = Bench::new();
    let first = bench.machine(pays());
    let run = first.test.start(gated(), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    Story::of(&run).await;
    let id = run.id().clone();
    drop(run);
    tokio::time::sleep(Duration::from_secs(60)).await;
    first.die(&bench).await;
    let client = positronic_core::runner::Client::new(Arc::clone(&bench.store));
    let ann = positronic_core::record::Actor::builder().by("ann").build();
    client.approve(&id, &path("Work/0.0"), ann).await.unwrap();

    let second = bench.machine(pays());
    let resumed = second.test.runner().clone().brain(gated()).resume(&id).await.unwrap();
    Story::of(&resumed).await;
    second.flush().await;

    insta::assert_snapshot!(bench.tree(), @"
    trace
      1 invoke_agent Shop suspended=true
        2 loop Work suspended=true
          3 iteration suspended=true n=0
            4 chat scripted
            5 wait approval verdict=approved by=ann
    trace
      6 invoke_agent Shop status=completed [previous_segment: 1 invoke_agent Shop] [wait: 5 wait approval]
        7 loop Work outcome=answered
          8 iteration n=0
            9 execute_tool pay [wait: 5 wait approval]
          10 iteration n=1
            11 chat scripted
    ");
}
