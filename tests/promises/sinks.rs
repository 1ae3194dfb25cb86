//! Delivery of events to sinks: promise 17.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Delta, Event, RunId, Seq};
use positronic_core::runner::{ResumeError, Settled};
use positronic_core::sink::{EventSink, Recorder, SinkError};
use positronic_core::store::{MemoryStore, StoreError};
use positronic_store_suite::FaultyStore;

use crate::bench::{Bench, by, named, run_id};
use crate::stores::{Fresh, on_both_stores};
use crate::support::{Journal, batch, done, path, settled, slow_batch, tools, waits, workshop};

on_both_stores! {
    promise_17_events_are_reread_from_any_number_without_a_gap
    promise_17_sink_of_another_process_continues_at_the_end_of_the_log
    promise_17_lagging_sink_of_a_dead_process_receives_the_missed_events
}

/// Delays each event, and fails now and then.
#[derive(Clone, Default)]
struct Slow {
    seen: Arc<Mutex<Vec<Seq>>>,
    takes: Duration,
    offered: Arc<AtomicU64>,
    fails_every: u64,
}

impl EventSink for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn position(&self, _: &RunId) -> Option<Seq> {
        Some(self.seen.lock().unwrap().last().map_or(Seq(0), |last| last.next()))
    }

    fn event<'a>(&'a self, _: &'a RunId, event: &'a Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(async move {
            tokio::time::sleep(self.takes).await;
            let offered = self.offered.fetch_add(1, Ordering::SeqCst) + 1;
            if self.fails_every > 0 && offered.is_multiple_of(self.fails_every) {
                return Err(SinkError("not now".to_owned()));
            }
            self.seen.lock().unwrap().push(event.seq);
            Ok(())
        })
    }
}

fn says(place: &str) -> Reply {
    match place {
        "Work/0" => batch([("safe", "a"), ("gated", "b")]),
        "Work/1" => batch([("safe", "c")]),
        _ => done(),
    }
}

fn all(until: u64) -> Vec<Seq> {
    (0..until).map(Seq).collect()
}

#[tokio::test(start_paused = true)]
async fn promise_17_slow_and_failing_sink_sees_every_event_once_and_blocks_no_run() {
    let bench = Bench::new();
    let slow = Slow { takes: Duration::from_secs(7), fails_every: 3, ..Slow::default() };
    let never = Slow { fails_every: 1, ..Slow::default() };
    let fast = Recorder::new();
    let process = bench.process("work", says).sink(slow.clone()).sink(never.clone()).sink(fast.clone());
    let began = tokio::time::Instant::now();
    let run = bench.start(&process, &workshop(&Journal::default(), tools)).await;
    waits(&run).await;
    run.approve(&path("Work/0.1"), "ann").await.unwrap();
    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(began.elapsed(), Duration::ZERO, "the run waits for no sink");

    let began = tokio::time::Instant::now();
    assert!(!run.flushed(Duration::from_secs(10_000)).await, "one sink has received nothing");
    assert!(began.elapsed() < Duration::from_secs(10_000), "abandoned sinks are not waited for");

    let log = bench.checked().await;
    assert_eq!(*slow.seen.lock().unwrap(), all(log.len() as u64));
    assert_eq!(*fast.events(), log);
    assert_eq!(*never.seen.lock().unwrap(), []);
}

async fn promise_17_events_are_reread_from_any_number_without_a_gap<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let process = bench.process("work", says);
    let run = bench.start(&process, &workshop(&Journal::default(), tools)).await;
    waits(&run).await;
    run.approve(&path("Work/0.1"), "ann").await.unwrap();
    settled(&run).await;
    let log = bench.log().await;
    let client = bench.client("reader");
    for from in 0..=log.len() {
        assert_eq!(client.events(&run_id(), Seq(from as u64)).await.unwrap(), log[from..]);
    }
    assert_eq!(client.events(&run_id(), Seq(log.len() as u64 + 9)).await.unwrap(), []);
}

async fn promise_17_sink_of_another_process_continues_at_the_end_of_the_log<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let shop = workshop(&Journal::default(), tools);
    let first = Recorder::new();
    let process = bench.process("first", says).sink(first.clone());
    let run = bench.start(&process, &shop).await;
    waits(&run).await;
    run.flushed(Duration::from_secs(9)).await;
    let cut = bench.cut(bench.log().await.len()).await;
    let second = Recorder::new();
    let run = cut.process("second", says).sink(second.clone()).brain(shop).resume(&run_id()).await.unwrap();
    run.approve(&path("Work/0.1"), "ann").await.unwrap();
    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    run.flushed(Duration::from_secs(9)).await;

    let seen = [first.events(), second.events()].concat();

    assert_eq!(seen, cut.checked().await);
}

async fn promise_17_lagging_sink_of_a_dead_process_receives_the_missed_events<S: Fresh>() {
    let bench = Bench::<S>::fresh();
    let shop = workshop(&Journal::default(), tools);
    let sink = Slow { takes: Duration::from_secs(3), ..Slow::default() };
    let process = bench.process("first", says).sink(sink.clone());
    let run = bench.start(&process, &shop).await;
    waits(&run).await;
    assert!(sink.seen.lock().unwrap().is_empty(), "it lags behind");
    let cut = bench.cut(bench.log().await.len()).await;
    let after = Slow { takes: Duration::ZERO, ..sink };
    after.seen.lock().unwrap().clear();
    let run = cut.process("second", says).sink(after.clone()).brain(shop).resume(&run_id()).await.unwrap();
    run.approve(&path("Work/0.1"), "ann").await.unwrap();
    settled(&run).await;
    run.flushed(Duration::from_secs(9)).await;

    let seen = after.seen.lock().unwrap().clone();
    assert_eq!(seen, all(cut.log().await.len() as u64));
}

#[tokio::test(start_paused = true)]
async fn promise_17_sink_sees_events_appended_while_the_run_was_unclaimed() {
    let (bench, sink) = (Bench::new(), Recorder::new());
    let shop = workshop(&Journal::default(), tools);
    let process = bench.lingering("work", Duration::ZERO, says).sink(sink.clone()).brain(shop.clone());
    let run = bench.start(&process, &shop).await;
    waits(&run).await;
    drop(run);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let service = process.serve();

    bench.client("people").approve(&run_id(), &path("Work/0.1"), by("ann")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;

    assert_eq!(sink.events(), bench.checked().await);
    assert_eq!(named(&sink.events(), "BRAIN_COMPLETE").len(), 1);
    drop(service);
}

/// Panics in one of its methods.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Panics {
    Position,
    Event,
    Delta,
    Name,
}

impl EventSink for Panics {
    fn name(&self) -> &str {
        assert_ne!(*self, Self::Name, "it has no name");
        "panics"
    }

    fn position(&self, _: &RunId) -> Option<Seq> {
        assert_ne!(*self, Self::Position, "it does not know where it is");
        None
    }

    fn event<'a>(&'a self, _: &'a RunId, _: &'a Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>> {
        assert_ne!(*self, Self::Event, "it takes nothing");
        let name = *self == Self::Name;
        Box::pin(async move { if name { Err(SinkError("then its name is asked".to_owned())) } else { Ok(()) } })
    }

    fn delta(&self, _: &RunId, _: &Delta) {
        assert_ne!(*self, Self::Delta, "it shows nothing");
    }
}

/// Blocks in no method, and never finishes.
struct Endless;

impl EventSink for Endless {
    fn name(&self) -> &str {
        "endless"
    }

    fn event<'a>(&'a self, _: &'a RunId, _: &'a Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn promise_17_panicking_sink_stops_no_run_on_one_thread_or_several() {
    let one = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let several = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for runtime in [one(), several()] {
        runtime.block_on(async {
            let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet.").input("Hello!"));
            for panics in [Panics::Position, Panics::Event, Panics::Delta, Panics::Name] {
                let recorder = Recorder::new();
                let runner = Runner::new(ScriptedModel::new([Reply::text("Hi")]))
                    .sink(panics)
                    .sink(Endless)
                    .sink(recorder.clone());

                let run = runner.start(&greeter, ()).await.unwrap();

                assert_eq!(run.result().await, Ok(()), "{panics:?}");
                let log = run.events(Seq(0)).await.unwrap();
                while recorder.events().len() < log.len() {
                    tokio::task::yield_now().await;
                }
                assert_eq!(recorder.events(), log, "the other sinks miss nothing");
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn promise_17_sink_sees_every_event_once_however_often_the_run_is_claimed() {
    let (bench, sink) = (Bench::new(), Recorder::new());
    let shop = workshop(&Journal::default(), tools);
    let process = bench.process("work", says).sink(sink.clone()).brain(shop.clone());
    let mut held = vec![bench.start(&process, &shop).await];
    waits(&held[0]).await;
    held.push(bench.start(&process.clone(), &shop).await);
    let looked = process.open(&run_id()).await.unwrap();
    for _ in 0..3 {
        _ = process.resume(&run_id()).await;
    }
    held[1].approve(&path("Work/0.1"), "ann").await.unwrap();
    for run in &held {
        assert!(matches!(bench.settled(run).await, Settled::Completed(_)));
        assert!(run.flushed(Duration::from_secs(9)).await);
    }
    assert!(looked.flushed(Duration::from_secs(9)).await);

    assert_eq!(sink.events(), bench.checked().await);
}

#[tokio::test(start_paused = true)]
async fn promise_17_sink_sees_nothing_of_a_run_claimed_elsewhere() {
    let (bench, sink) = (Bench::new(), Recorder::new());
    let shop = workshop(&Journal::default(), tools);
    let says = |place: &str| if place == "Work/0" { slow_batch([("safe", "a", 9000)]) } else { done() };
    let run = bench.start(&bench.process("first", says), &shop).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let second = bench.process("second", says).sink(sink.clone()).brain(shop);
    let held = second.resume(&run_id()).await;
    let service = second.serve();
    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    tokio::time::sleep(Duration::from_secs(5)).await;

    assert!(matches!(held, Err(ResumeError::Claimed { .. })), "{held:?}");
    assert_eq!(sink.events(), []);
    drop(service);
}

#[tokio::test(start_paused = true)]
async fn promise_17_temporarily_unreadable_store_costs_a_sink_no_event() {
    let (fails, sink) = (Arc::new(AtomicU64::new(5)), Recorder::new());
    let left = Arc::clone(&fails);
    let store = FaultyStore::new(MemoryStore::new(), |_, _| None).reading(move |method| {
        let fails = method == "read"
            && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        fails.then(|| StoreError::Failed { message: "the disk is away".to_owned() })
    });
    let bench = Bench::on(store);
    let process = bench.process("work", |_| done()).sink(sink.clone());
    let run = bench.start(&process, &workshop(&Journal::default(), tools)).await;
    assert!(matches!(settled(&run).await, Settled::Completed(_)));

    assert!(run.flushed(Duration::from_secs(60)).await);

    assert_eq!(fails.load(Ordering::SeqCst), 0);
    assert_eq!(sink.events(), bench.checked().await);
}
